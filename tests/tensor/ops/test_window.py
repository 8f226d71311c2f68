"""Pooling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tensor.ops.reference import Array, run, tensors, windows

from tilewright.errors import TensorError
from tilewright.tensor import ops, te

rng = np.random.default_rng(0)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["max", "average"]), st.booleans(), st.booleans())
def test_pools_are_those_of_numpy(
    data: st.DataObject, kind: str, ceil_mode: bool, include: bool
) -> None:
    dims = data.draw(st.integers(1, 3))

    def each(strategy: st.SearchStrategy[int]) -> list[int]:
        return [data.draw(strategy) for _ in range(dims)]

    kernel, stride = each(st.integers(1, 3)), each(st.integers(1, 3))
    padding = [(data.draw(st.integers(0, k // 2)), data.draw(st.integers(0, k // 2))) for k in kernel]  # fmt: skip
    spatial = [k + n for k, n in zip(kernel, each(st.integers(0, 4)))]
    x = rng.standard_normal((1, 2, *spatial))
    out = ops.pool(
        tensors(x)[0], kind, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=include
    )  # fmt: skip
    sizes, extra = [], []
    for n, k, s, (b, a) in zip(spatial, kernel, stride, padding):
        starts = [
            p for p in range(-b, n + a, s)
            # one more window if it starts inside and the last whole one does not reach the end
            if p + k <= n + a or (ceil_mode and p < n and p - s + k < n + a)
        ]  # fmt: skip
        sizes.append(len(starts))
        extra.append(max(0, starts[-1] + k - n - a))
    inner = [(0, 0), (0, 0), *padding]
    outer = [(0, 0), (0, 0), *((0, e) for e in extra)]
    ones = [1] * dims
    tail = tuple(range(-dims, 0))

    def view(values: Array) -> Array:
        found = windows(values, kernel, stride, ones)
        whole = slice(None)
        return np.asarray(found[(whole, whole, *(slice(0, n) for n in sizes))])

    if kind == "max":
        low = np.pad(np.pad(x, inner, constant_values=-np.inf), outer, constant_values=-np.inf)
        expected = np.max(view(low), axis=tail)
    else:
        total = np.sum(view(np.pad(np.pad(x, inner), outer)), axis=tail)
        counted = np.pad(np.pad(np.ones_like(x), inner, constant_values=float(include)), outer)
        expected = total / np.sum(view(counted), axis=tail)
    assert out.shape == expected.shape
    np.testing.assert_allclose(run(out, x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("spatial", [(5,), (4, 3), (2, 3, 4)])
def test_global_pools_leave_ones(spatial: tuple[int, ...]) -> None:
    x = rng.standard_normal((2, 3, *spatial))
    p = tensors(x)[0]
    axes = tuple(range(2, x.ndim))
    np.testing.assert_array_equal(run(ops.global_pool(p, "max"), x), x.max(axes, keepdims=True))
    np.testing.assert_allclose(
        run(ops.global_pool(p, "average"), x), x.mean(axes, keepdims=True), rtol=1e-12
    )


x = te.placeholder((1, 2, 4, 4), name="x")
NONE = [(0, 0), (0, 0)]
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "kind": (
        lambda: ops.pool(x, "median", kernel=[2, 2], stride=[1, 1], padding=NONE),
        r"pool\(\[1, 2, 4, 4\], 'median'\): needs 'max', 'sum' or 'average'",
    ),
    "kernel": (
        lambda: ops.pool(x, "max", kernel=[5, 2], stride=[1, 1], padding=NONE),
        r"the kernel \[5, 2\] is larger than the padded input",
    ),
    "padding": (
        lambda: ops.pool(x, "max", kernel=[2, 2], stride=[1, 1], padding=NONE[:1]),
        r"padding has 1 entries; give one for each of 2 dimensions",
    ),
    "global": (lambda: ops.global_pool(x, "sum"), r"global_pool\(\[1, 2, 4, 4\], 'sum'\): needs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_pools_are_refused(case: str) -> None:
    build, message = REFUSED[case]
    with pytest.raises(TensorError, match=message):
        build()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_a_padded_maximum_of_integers_never_takes_the_padding(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.full((1, 1, 3, 3), info.min, dtype)
    x[0, 0, 2, 2] = info.max
    out = ops.pool(tensors(x)[0], "max", kernel=[2, 2], stride=[2, 2], padding=[(1, 0), (1, 0)])
    found = run(out, x)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found[0, 0], [[info.min, info.min], [info.min, info.max]])

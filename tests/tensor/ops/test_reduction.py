"""Reductions, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tensor.ops.reference import run, tensors

from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te

rng = np.random.default_rng(0)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)
NUMPY: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
}


@given(shapes, st.sampled_from(sorted(NUMPY)), st.booleans(), st.data())
def test_reductions_are_numpys(shape: list[int], op: str, keep: bool, data: st.DataObject) -> None:
    axes = data.draw(
        st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True, max_size=len(shape))
    )
    signed = [a - len(shape) if data.draw(st.booleans()) else a for a in axes]
    x = rng.standard_normal(shape)
    out = ops.reduce(tensors(x)[0], op, signed, keepdims=keep)
    expected = NUMPY[op](x, axis=tuple(axes), keepdims=keep)
    assert out.shape == expected.shape
    np.testing.assert_allclose(run(out, x), expected, rtol=1e-12, atol=1e-12)
    mean = ops.mean(tensors(x)[0], signed, keepdims=keep, name="m")
    np.testing.assert_allclose(
        run(mean, x), x.mean(tuple(axes), keepdims=keep), rtol=1e-12, atol=1e-12
    )
    assert [s.name for s in Workload.of(mean).stages] == ["m.sum", "m"]


@given(shapes, st.data())
def test_softmax_sums_to_one_and_does_not_overflow(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = rng.standard_normal(shape) * 1000
    e = np.exp(x - x.max(axis, keepdims=True))
    expected = e / e.sum(axis, keepdims=True)
    p = tensors(x)[0]
    np.testing.assert_allclose(run(ops.softmax(p, axis=axis), x), expected, rtol=1e-12)
    shifted = x - x.max(axis, keepdims=True)
    logs = shifted - np.log(e.sum(axis, keepdims=True))
    np.testing.assert_allclose(run(ops.log_softmax(p, axis=axis), x), logs, rtol=1e-12, atol=1e-12)


def test_softmax_has_stages_named_after_it() -> None:
    p = te.placeholder((2, 3))
    assert [s.name for s in Workload.of(ops.softmax(p, name="p")).stages] == [
        "p.max", "p.exp", "p.sum", "p.inv", "p"
    ]  # fmt: skip
    names = [s.name for s in Workload.of(ops.log_softmax(p, name="q")).stages]
    assert names == ["q.max", "q.sub", "q.exp", "q.sum", "q"]


@given(shapes, st.booleans(), st.booleans(), st.data())
def test_layer_norm_normalises_the_trailing_axes(
    shape: list[int], scaled: bool, shifted: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    axes = tuple(range(axis % len(shape), len(shape)))
    x = rng.standard_normal(shape) * 3 + 1
    inner = [shape[a] for a in axes]
    scale, bias = rng.standard_normal(inner), rng.standard_normal(inner)
    p, s, b = te.placeholder(shape, "float64", "x"), te.placeholder(inner, "float64", "s"), te.placeholder(inner, "float64", "b")  # fmt: skip
    out = ops.layer_norm(p, s if scaled else None, b if shifted else None, axis=axis, eps=1e-3)
    expected = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-3)
    expected = expected * (scale if scaled else 1) + (bias if shifted else 0)
    given_ = [x, *([scale] if scaled else []), *([bias] if shifted else [])]
    np.testing.assert_allclose(run(out, *given_), expected, rtol=1e-9, atol=1e-9)


x = te.placeholder((2, 3), name="x")
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "axis": (lambda: ops.reduce(x, "sum", [2]), r"axis 2 lies outside of the 2 dimensions"),
    "twice": (lambda: ops.reduce(x, "sum", [1, -1]), r"an axis occurs twice"),
    "none": (lambda: ops.reduce(x, "sum", []), r"no axis to reduce over"),
    "operation": (
        lambda: ops.reduce(x, "mean", [0]),
        r"unknown operation; choose one of \['max', 'min', 'prod', 'sum'\]",
    ),
    "softmax": (lambda: ops.softmax(x, axis=-3), r"axis -3 lies outside"),
    "norm": (lambda: ops.layer_norm(x, None, None, axis=2), r"axis 2 lies outside"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_reductions_are_refused(case: str) -> None:
    build, message = REFUSED[case]
    with pytest.raises(TensorError, match=message):
        build()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_norm_divides_by_the_root_of_the_mean_square(axis: int, scaled: bool) -> None:
    x, g = rng.standard_normal((3, 4, 5)), rng.standard_normal(5)
    p, q = tensors(x, g)
    out = ops.rms_norm(p, q if scaled else None, axis=axis, eps=1e-3)
    axes = tuple(range(axis % 3, 3))
    expected = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + 1e-3) * (g if scaled else 1)
    found = run(out, *([x, g] if scaled else [x]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)

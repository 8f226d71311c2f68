"""Transposed convolution: the adjoint of convolution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tensor.ops.reference import Array, run, tensors

from tilewright.errors import TensorError
from tilewright.tensor import ops, te

rng = np.random.default_rng(0)


def scattered(
    x: Array, w: Array, stride: list[int], padding: list[tuple[int, int]], more: list[int], groups: int
) -> Array:  # fmt: skip
    """Each element of the input adds its multiple of the weights to the result."""
    n, c_in, *space = x.shape
    per_group, kernel = w.shape[1], w.shape[2:]
    sizes = [(m - 1) * s + k + p for m, s, k, p in zip(space, stride, kernel, more)]
    out = np.zeros((n, per_group * groups, *sizes))
    own = c_in // groups
    for place in np.ndindex(*space):
        where = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, stride, kernel))
        for g in range(groups):
            part = x[(slice(None), slice(g * own, (g + 1) * own), *place)]
            to = slice(g * per_group, (g + 1) * per_group)
            out[(slice(None), to, *where)] += np.tensordot(part, w[g * own : (g + 1) * own], 1)
    cut = tuple(slice(b, m - a) for m, (b, a) in zip(sizes, padding))
    return np.asarray(out[(slice(None), slice(None), *cut)])


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 3), st.sampled_from([1, 2]))
def test_transposed_convolutions_scatter(data: st.DataObject, dims: int, groups: int) -> None:
    def each(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(dims)]

    space, kernel, stride = each(1, 4), each(1, 4), each(1, 3)
    padding = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(dims)]
    more = [data.draw(st.integers(0, s - 1)) for s in stride]
    x = rng.standard_normal((2, 2 * groups, *space))
    w = rng.standard_normal((2 * groups, 3, *kernel))
    sizes = [
        (n - 1) * s + k + p - b - a
        for n, s, k, p, (b, a) in zip(space, stride, kernel, more, padding)
    ]
    p, q = tensors(x, w)

    def ours() -> te.Compute:
        return ops.conv_transpose(
            p, q, stride=stride, padding=padding, output_padding=more, groups=groups
        )

    if min(sizes) < 1:
        with pytest.raises(TensorError, match="cuts everything away"):
            ours()
        return
    expected = scattered(x, w, stride, padding, more, groups)
    np.testing.assert_allclose(run(ours(), x, w), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "w", "more", "message"),
    [
        ((1, 4, 5), (3, 2, 3), {}, "the channels do not fit"),
        ((1, 4, 5, 5), (4, 2, 3), {}, "the same number in both"),
        ((1, 4, 5), (4, 2, 3), {"groups": 3}, "the channels do not fit"),
        ((1, 4, 5), (4, 2, 3), {"dilation": [2, 2]}, "dilation"),
        ((1, 4, 5), (4, 2, 3), {"stride": [1, 1]}, "stride"),
    ],
)
def test_malformed_transposed_convolutions_are_refused(
    x: tuple[int, ...], w: tuple[int, ...], more: dict[str, object], message: str
) -> None:
    options: dict[str, object] = {"stride": [1], "padding": [(0, 0)], **more}
    with pytest.raises(TensorError, match=message):
        ops.conv_transpose(te.placeholder(x, name="x"), te.placeholder(w, name="w"), **options)  # type: ignore[arg-type]

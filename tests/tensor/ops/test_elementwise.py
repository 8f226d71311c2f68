"""Elementwise functions and broadcasting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from tests.tensor.ops.reference import run, tensors

from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te

rng = np.random.default_rng(0)


@given(mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4), st.booleans())
def test_operands_broadcast_as_in_numpy(shapes: object, flip: bool) -> None:
    sizes = shapes.input_shapes  # type: ignore[attr-defined]
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in sizes)
    assert ops.broadcast_shape(*sizes) == np.broadcast_shapes(*sizes)
    p, q, r = tensors(a, b, c)
    out = ops.elementwise("y", lambda u, v, t: te.select(u < v, t * 2.0, u - v if flip else v), p, q, r)  # fmt: skip
    wide = [v.astype(np.float64) for v in (a, b, c)]
    expected = np.where(wide[0] < wide[1], wide[2] * 2, wide[0] - wide[1] if flip else wide[1])
    assert out.shape == expected.shape
    by_operand = {p: a, q: b, r: c}
    order = Workload.of(out).inputs
    np.testing.assert_array_equal(run(out, *(by_operand[t] for t in order)), expected)


def test_numbers_and_a_wider_shape_are_operands_too() -> None:
    a = rng.standard_normal((3, 1)).astype(np.float32)
    (p,) = tensors(a)
    out = ops.elementwise("y", lambda v, low: te.maximum(v, low), p, 0.25, shape=(2, 3, 4))
    assert out.name == "y"
    np.testing.assert_array_equal(
        run(out, a), np.broadcast_to(np.maximum(a.astype(np.float64), 0.25), (2, 3, 4))
    )


def test_a_unit_dimension_is_read_at_zero() -> None:
    a, b = te.placeholder((2, 3), name="a"), te.placeholder((2, 1), name="b")
    assert str(ops.elementwise("c", lambda u, v: u * v, a, b).body) == "a[i0, i1] * b[i0, 0]"


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(TensorError, match=r"dimension 1 has the sizes \[3, 4\]"):
        ops.elementwise("y", lambda u, v: u + v, te.placeholder((2, 3)), te.placeholder((4,)))

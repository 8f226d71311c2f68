"""Expressions of knobs as array code equal the expressions with numbers for knobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.schedule import arrays
from tilewright.schedule.arrays import compile_exprs
from tilewright.tensor import expr as ex
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Const, Expr, Knob, Unary, const_value, substitute

a, b = Knob("a"), Knob("b")


def _join(op: str, x: Expr, y: Expr) -> Expr:
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "min":
            return ex.minimum(x, y)
        case "max":
            return ex.maximum(x, y)
        case "select":
            return ex.select(x <= y, x, y + 1)
    divisor = ex.maximum(y, 1)
    return x // divisor if op == "//" else ex.ceildiv(x, divisor)


exprs = st.recursive(
    st.one_of(st.sampled_from([a, b]), st.integers(-9, 9).map(Const)),
    lambda inner: st.builds(
        _join, st.sampled_from(["+", "-", "*", "//", "ceildiv", "min", "max", "select"]), inner, inner
    ),
    max_leaves=10,
)  # fmt: skip


@given(
    st.lists(exprs, max_size=3),
    st.lists(st.tuples(*[st.integers(1, 40)] * 2), min_size=1, max_size=5),
)
@settings(max_examples=100, deadline=None)  # fmt: skip
def test_compiled_integers_are_exact(found: list[Expr], values: list[tuple[int, int]]) -> None:
    table = compile_exprs(found, [a, b], dtype=np.float64)(np.array(values, dtype=np.float64))
    assert table.shape == (len(values), len(found))
    for row, (x, y) in zip(table, values):
        known = [substitute(e, {a: Const(x), b: Const(y)}) for e in found]
        assert [int(v) for v in row] == [int(const_value(e) or 0) for e in known]


def test_conditions_and_logarithms() -> None:
    test = ex.logical_and(a * b <= 64, ex.logical_or(a < b, ex.equal(a, 8)), ex.not_equal(b, 7))
    values = np.array([[8, 8], [2, 7], [2, 9], [8, 9]], dtype=np.float64)
    found = compile_exprs([test], [a, b], dtype=np.bool_)(values)[:, 0]
    np.testing.assert_array_equal(found, [True, False, True, False])
    log = Unary("log", ex.cast(a, DType.FLOAT64), DType.FLOAT64)
    np.testing.assert_allclose(compile_exprs([log], [a])(values[:1]), [[3.0]])


def test_shared_parts_are_computed_once_and_large_tables_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 7)
    values = np.random.default_rng(0).integers(1, 50, (50, 2)).astype(np.float64)
    shared = ex.ceildiv(a, b)
    found = compile_exprs([shared * 2, shared + 1], [a, b])(values)
    quotient = np.ceil(values[:, 0] / values[:, 1])
    np.testing.assert_array_equal(found, np.stack([quotient * 2, quotient + 1], axis=1))


def test_no_expressions_and_no_rows() -> None:
    assert compile_exprs([], [a])(np.ones((3, 1))).shape == (3, 0)
    assert compile_exprs([a], [a])(np.ones((0, 1))).shape == (0, 1)

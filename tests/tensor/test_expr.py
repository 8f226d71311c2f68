"""Expressions: normal form, folding, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import TensorError
from tilewright.tensor import expr as ex
from tilewright.tensor import te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Const, Expr, Knob, Min, Poly, Var, as_expr

i, j = Var("i"), Var("j")
T = Knob("T")
x = te.placeholder((8,), name="x")[i]


def test_integer_sums_are_kept_in_normal_form() -> None:
    assert i * 64 + j * 8 - i * 64 == j * 8
    assert (i + j) * (i - j) == i * i - j * j
    assert i + j == j + i and hash(i + j) == hash(j + i)
    assert i - i == Const(0)
    assert (i + 3) - 3 is i
    assert -(i - j) == j - i
    assert T * i + i * T == 2 * (i * T)


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_normal_form_keeps_the_value(steps: list[tuple[str, int]]) -> None:
    leaves: list[tuple[Expr, int]] = [(i, 7), (j, -3), (T, 11), (as_expr(2), 2), (as_expr(-5), -5), (i // 2, 3)]  # fmt: skip
    expr, value = leaves[0]
    for op, n in steps:
        other, number = leaves[n]
        if op == "+":
            expr, value = expr + other, value + number
        elif op == "-":
            expr, value = expr - other, value - number
        else:
            expr, value = expr * other, value * number
    known = ex.substitute(expr, {i: as_expr(7), j: as_expr(-3), T: as_expr(11)})
    assert known == Const(value)


def test_integer_division_rounds_towards_minus_infinity() -> None:
    for a, b in itertools.product(range(-7, 8), (-3, -2, 2, 3)):
        assert as_expr(a) // b == Const(a // b)
        assert as_expr(a) % b == Const(a % b)
        assert ex.ceildiv(a, b) == Const(-(-a // b))


def test_division_by_one_and_by_itself_folds() -> None:
    assert i // 1 is i
    assert i % 1 == Const(0)
    assert ex.ceildiv(i, 1) is i
    assert (i + j) // (j + i) == Const(1)


def test_minima_are_flattened_and_folded() -> None:
    assert ex.minimum(3, 5) == Const(3)
    assert ex.minimum(i, i) is i
    assert ex.minimum(i + 3, i + 1) == i + 1
    nested = ex.minimum(ex.minimum(i, 64), ex.minimum(j, 32))
    assert isinstance(nested, Min)
    assert set(nested.args) == {Const(32), i, j}
    assert nested == ex.minimum(j, ex.minimum(32, ex.minimum(64, i)))
    assert ex.substitute(nested, {i: as_expr(5), j: as_expr(9)}) == Const(5)


def test_comparisons_of_a_constant_distance_fold() -> None:
    assert (i < i + 1) == Const(True, DType.BOOL)
    assert (i + 2 <= i) == Const(False, DType.BOOL)
    assert ex.equal(i, i) == Const(True, DType.BOOL)
    assert ex.not_equal(i, i + 1) == Const(True, DType.BOOL)
    assert (i > j) == (j < i)


def test_logic_folds_constants() -> None:
    test = i < j
    assert ex.logical_and(test, as_expr(True)) is test
    assert ex.logical_and(test, as_expr(False)) == Const(False, DType.BOOL)
    assert ex.logical_or(test, as_expr(True)) == Const(True, DType.BOOL)
    assert ex.logical_or(test, test) is test
    assert ex.select(as_expr(True), i, j) is i


def test_a_number_takes_the_type_of_the_other_operand() -> None:
    assert (x + 1).dtype is DType.FLOAT32
    assert (2 * x).dtype is DType.FLOAT32
    assert (x + float(np.float32(0.5))) == x + 0.5
    half = te.placeholder((8,), "float16", name="h")[i]
    assert (half * 0.5).dtype is DType.FLOAT16


def test_casts_fold_constants_and_leave_their_own_type_alone() -> None:
    assert ex.cast(3.7, "int64") == Const(3)
    assert ex.cast(x, "float32") is x
    assert ex.cast(2, "bool") == Const(True, DType.BOOL)
    assert ex.cast(i, "float32").dtype is DType.FLOAT32


def test_substitution_renormalises() -> None:
    assert ex.substitute(i * 8 + j, {j: i * -8 + 2}) == Const(2)
    moved = ex.substitute(i // 4, {i: as_expr(9)})
    assert moved == Const(2)
    assert ex.substitute(i, {}) is i


def test_walk_visits_parents_first() -> None:
    kinds = [type(n).__name__ for n in ex.walk(ex.select(i < 2, x, 0.0))]
    assert kinds == ["Select", "Binary", "Var", "Const", "Read", "Var", "Const"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: x + i, r"add\(x\[i\], i\): types float32 and int64 differ; cast one of them"),
        (lambda: i / 2, r"div\(i, 2\): integers have no true division; use // or cast"),
        (lambda: x // 2, r"floordiv\(x\[i\], 2\.0\): defined on integers only"),
        (lambda: as_expr(3) // 0, r"floordiv\(3, 0\): division by zero"),
        (lambda: as_expr(3) % 0, r"mod\(3, 0\): division by zero"),
        (lambda: te.exp(i), r"exp\(i\): the operand has type int64; cast it to a float type first"),
        (lambda: te.logical_not(x), r"not\(x\[i\]\): the operand has type float32, not bool"),
        (lambda: ex.unary("cbrt", x), r"unary\('cbrt'\): unknown operation"),
        (lambda: ex.select(x, 1.0, 2.0), r"the condition has type float32, not bool"),
        (lambda: bool(i < j), r"bool\(i < j\): an expression has no truth value"),
        (lambda: as_expr("k"), r"as_expr\('k'\): not an expression or a number"),  # type: ignore[arg-type]
        (lambda: as_expr(np.ones(2)), r"not an expression or a number"),  # type: ignore[arg-type]
        (lambda: i + 0.5, r"types int64 and float32 differ"),
    ],
)
def test_malformed_expressions_are_refused(build: object, message: str) -> None:
    with pytest.raises(TensorError, match=message):
        build()  # type: ignore[operator]


def test_equality_is_structural() -> None:
    assert isinstance(i * 2 + 1, Poly)
    assert te.exp(x) == te.exp(x)
    assert te.exp(x) != te.log(x)
    assert len({te.exp(x), te.exp(x), x}) == 2

"""Integer ranges of expressions hold for every value of the variables."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.codegen.ranges import bounds, pick_min, resolve
from tilewright.tensor import expr as ex
from tilewright.tensor.dtype import as_dtype
from tilewright.tensor.expr import Const, Expr, Min, Var, const_value, minimum, substitute

i, j = Var("i"), Var("j")
RANGES = {i: (2, 5), j: (0, 3)}

exprs = st.recursive(
    st.one_of(st.sampled_from([i, j]), st.integers(-5, 5).map(Const)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(minimum, inner, inner),
        st.builds(ex.maximum, inner, inner),
        st.builds(lambda a, c: a // c, inner, st.integers(1, 4)),
        st.builds(lambda a, c: ex.ceildiv(a, c), inner, st.integers(1, 4)),
        st.builds(lambda a, c: a % c, inner, st.integers(1, 4)),
        st.builds(lambda a, b: ex.select(a < b, a, b), inner, inner),
    ),
    max_leaves=6,
)


def values(e: Expr) -> list[int]:
    out = []
    for p, q in itertools.product(range(2, 6), range(4)):
        number = const_value(substitute(e, {i: Const(p), j: Const(q)}))
        assert number is not None
        out.append(int(number))
    return out


@given(exprs)
@settings(max_examples=300, deadline=None)
def test_every_value_is_inside_the_bounds(e: Expr) -> None:
    low, high = bounds(e, RANGES)
    assert all(low <= v <= high for v in values(e))


@given(exprs)
@settings(max_examples=300, deadline=None)
def test_what_is_resolved_has_that_value_everywhere(e: Expr) -> None:
    found = resolve(e, RANGES)
    assert found is None or set(values(e)) == {found}


def test_variables_without_a_range_are_unbounded() -> None:
    assert bounds(Var("k") + 1, RANGES) == (-math.inf, math.inf)
    assert bounds(Var("k") % 4, RANGES) == (0, 3)
    assert resolve(Var("k"), RANGES) is None


def test_the_least_argument_is_picked_where_it_is_known() -> None:
    tail = minimum(4, 10 - i)
    assert isinstance(tail, Min)
    assert pick_min(tail, {i: (0, 6)}) == Const(4)
    assert pick_min(tail, {i: (6, 9)}) == 10 - i
    assert pick_min(tail, {i: (0, 9)}) is None
    assert [resolve(tail, {i: (n, n)}) for n in (0, 7, 9)] == [4, 3, 1]


def test_an_infinite_number_has_no_integer_bounds() -> None:
    infinite = Const(float("-inf"), as_dtype("float32"))
    assert bounds(infinite, {}) == (-math.inf, math.inf)

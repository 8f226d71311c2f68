"""Symbolic bounds hold for every value of the loops and knobs."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.schedule.bounds import (
    divide,
    interval,
    lower_bound,
    nonnegative,
    prune,
    upper_bounds,
    var_free,
)
from tilewright.tensor import expr as ex
from tilewright.tensor.expr import Const, Expr, Knob, Var, as_expr, const_value, minimum, substitute

i, j, t, u = Var("i"), Var("j"), Knob("t"), Knob("u")
LOOPS = [(i, as_expr(5)), (j, minimum(3, 7 - i))]


def value(e: Expr, known: dict[Expr, Expr]) -> int:
    number = const_value(substitute(e, known))
    assert number is not None
    return int(number)


def points() -> list[dict[Expr, Expr]]:
    return [
        {i: Const(p), j: Const(q)} for p, q in itertools.product(range(5), range(3)) if q < 7 - p
    ]


terms = st.recursive(
    st.one_of(st.sampled_from([i, j]), st.integers(-5, 5).map(Const)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, c: a * c, inner, st.integers(-3, 3)),
        st.builds(minimum, inner, inner),
        st.builds(lambda a, c: a // c, inner, st.integers(1, 4)),
        st.builds(lambda a, c: ex.ceildiv(a, c), inner, st.integers(1, 4)),
        st.builds(lambda a, c: a % c, inner, st.integers(1, 4)),
    ),
    max_leaves=6,
)


@given(terms)
@settings(deadline=None)
def test_bounds_hold_at_every_point(e: Expr) -> None:
    seen = [value(e, p) for p in points()]
    low = lower_bound(e, LOOPS)
    if low is not None and const_value(low) is not None:
        assert value(low, {}) <= min(seen)
    for high in upper_bounds(e, LOOPS):
        if const_value(high) is not None:
            assert value(high, {}) >= max(seen)


@given(terms)
@settings(deadline=None)
def test_what_is_called_nonnegative_is(e: Expr) -> None:
    if nonnegative(e):
        assert all(value(e, p) >= 0 for p in points())


@given(terms, st.integers(1, 6))
@settings(deadline=None)
def test_quotients_and_remainders_are_those_of_division(e: Expr, factor: int) -> None:
    quotient, rest = divide(e, Const(factor), LOOPS)
    for p in points():
        assert divmod(value(e, p), factor) == (value(quotient, p), value(rest, p))


def test_an_aligned_tile_divides_without_division() -> None:
    loops = [(i, as_expr(9)), (j, minimum(t, 100 - i * t))]
    assert divide(i * t + j, t, loops) == (i, j)
    assert divide(i * 8 + 3, Const(4), loops) == (i * 2, Const(3))
    assert divide(i * t * u + j, t * u, [(i, as_expr(9)), (j, t * u)]) == (i, j)
    assert divide(j, Const(4), [(j, as_expr(5))]) == (j // 4, j % 4)


def test_the_interval_of_a_tile_is_its_size_or_what_is_left() -> None:
    span = interval(i * t + j, [(j, minimum(t, 100 - i * t))])
    assert span is not None
    assert span.low == i * t
    assert set(span.extents) == {t, 100 - i * t}
    assert span.extent == minimum(t, 100 - i * t)


def test_bounds_that_cannot_be_told_are_none() -> None:
    assert interval(i * i - i, [(i, as_expr(4))]) is None
    assert lower_bound(i % 3, [(i, as_expr(4))]) is None
    assert upper_bounds(i * j - j, LOOPS) == ()


def test_an_alternative_that_is_never_the_least_is_pruned() -> None:
    assert prune([t + 3, t]) == [t]
    assert prune([t, t]) == [t]
    assert set(prune([t, u])) == {t, u}


def test_round_ups_are_at_least_what_they_round() -> None:
    assert nonnegative(ex.ceildiv(u, t) * t - u)
    assert not nonnegative(u - ex.ceildiv(u, t) * t)
    assert nonnegative(t * u - 1) and not nonnegative(t - 2)


def test_knobs_are_no_loop_variables() -> None:
    assert var_free(t * 4 + minimum(u, 3))
    assert not var_free(t * i)

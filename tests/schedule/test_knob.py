"""Knobs: values, tiles, structural choices, constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ScheduleError
from tilewright.schedule.knob import Knobs, tile_sizes
from tilewright.tensor.expr import Const, Knob, as_expr


def test_values_are_sorted_and_distinct() -> None:
    knobs = Knobs()
    assert knobs.values("u", [8, 2, 4, 2]) == Knob("u")
    assert knobs.columns[0].values == (2, 4, 8)
    np.testing.assert_array_equal(knobs.columns[0].array, [2, 4, 8])


def test_a_single_value_is_no_knob() -> None:
    knobs = Knobs()
    assert knobs.values("u", [4, 4]) == Const(4)
    assert knobs.columns == []


@given(st.integers(1, 5000))
def test_tile_sizes_ascend_to_the_extent(limit: int) -> None:
    sizes = tile_sizes(limit)
    assert sizes == sorted(set(sizes))
    assert sizes[0] == 1 and sizes[-1] == limit
    assert all(math.ceil(limit / d) in sizes for d in (2, 3, 4))


def test_tiles_of_several_levels_fit_into_each_other() -> None:
    knobs = Knobs()
    outer, inner = knobs.tile("i", 100, levels=3, max_inner=16)
    assert [c.knob for c in knobs.columns] == [outer, inner]
    assert knobs.columns[0].values[-1] == 100 and knobs.columns[1].values[-1] == 16
    assert [str(c) for c in knobs.constraints] == ["i.t1*i.t2 - i.t2 <= 99"]


def test_the_extent_of_a_tile_may_be_an_expression_but_not_open() -> None:
    one, other = Knobs(), Knobs()
    assert one.tile("i", as_expr(60) + 40) == other.tile("i", 100)
    assert one.columns == other.columns
    with pytest.raises(ScheduleError, match="the extent depends on other knobs"):
        one.tile("j", Knob("u") * 2)


def test_choices_follow_the_script() -> None:
    knobs = Knobs([1])
    assert knobs.choice("order", ["a", "b"]) == "b"
    assert knobs.choice("pack", [True, False]) is True
    assert knobs.choices == [("order", "b", 1, 2), ("pack", "True", 0, 2)]


def test_a_true_constraint_is_dropped() -> None:
    knobs = Knobs()
    knobs.require(as_expr(3) <= 4)
    assert knobs.constraints == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k.values("u", []), "knob.values('u', []): needs integers of 1 or more"),
        (lambda k: k.values("u", [0, 2]), "knob.values('u', [0, 2]): needs integers of 1 or more"),
        (lambda k: (k.values("u", [1, 2]), k.values("u", [1, 2])), "knob.values('u'): the name is taken; give each knob its own"),
        (lambda k: k.choice("order", []), "knob.choice('order', []): no options"),
        (lambda k: k.require(as_expr(4) <= 3), "require: the constraint is false whatever the knobs; this branch has no candidates"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(call: object, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        call(Knobs())  # type: ignore[operator]
    assert str(error.value) == message

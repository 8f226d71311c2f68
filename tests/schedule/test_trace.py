"""Traces: text, JSON, replay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.schedule import workloads

from tilewright.errors import RecordError, ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Step, Trace
from tilewright.tensor.expr import Const, Knob

t = Knob("t")
OPEN = Trace((Step("split", ("i", (t, 2))), Step("cache_read", ("C", "B", ((1, t),)))))


def test_a_trace_prints_as_python_that_makes_the_schedule() -> None:
    s = Schedule(workloads.matmul(const=True))
    s.split("i", [4])
    s.cache_read("C", "B", pack=[(1, 4)])
    s.set_scope("C", "register")
    s.fuse("D.i", "D.j")
    again = Schedule(workloads.matmul(const=True))
    exec(str(s.trace), {"s": again})
    assert str(again.program) == str(s.program)
    assert str(s.trace).splitlines()[1] == "s.cache_read('C', 'B', [[1, 4]])"


def test_a_trace_survives_json() -> None:
    closed = OPEN.concrete({t: Const(8)})
    data = json.loads(json.dumps(closed.to_json()))
    assert data == [["split", "i", [8, 2]], ["cache_read", "C", "B", [[1, 8]]]]
    assert Trace.from_json(data) == closed


def test_open_knobs_are_found_and_replaced() -> None:
    assert OPEN.knobs == (t,)
    assert str(OPEN) == "s.split('i', [t, 2])\ns.cache_read('C', 'B', [[1, t]])"
    half = Trace((Step("split", ("i", (t * 2,))),)).concrete({t: Const(3)})
    assert half.steps[0].args == ("i", (6,)) and half.knobs == ()


def test_open_knobs_do_not_go_into_json() -> None:
    with pytest.raises(RecordError) as error:
        OPEN.to_json()
    assert str(error.value) == (
        "to_json: the trace still holds the knob expression t; make it concrete first"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "from_json: a trace is a list of steps, not dict"),
        ([[]], "from_json: [] is no step; expected [primitive, argument, ...]"),
        ([[1]], "from_json: [1] is no step; expected [primitive, argument, ...]"),
        (["split"], "from_json: 'split' is no step; expected [primitive, argument, ...]"),
        ([["split", "i", [True]]], "from_json: True is no argument of a step; expected text, an integer or a list"),
        ([["split", "i", 0.5]], "from_json: 0.5 is no argument of a step; expected text, an integer or a list"),
        ([["split", None]], "from_json: None is no argument of a step; expected text, an integer or a list"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused(data: Any, message: str) -> None:
    with pytest.raises(RecordError) as error:
        Trace.from_json(data)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("tile", ("i",)), r"replay: step 1, s\.tile\('i'\): no such primitive; there are \['cache_read', "),
        (Step("split", ("i", (2,))), r"replay: step 1, s\.split\('i', \[2\]\): loop\(i\): no such loop; there are i\.0, "),
        (Step("split", ("j", (0,))), r"replay: step 1, s\.split\('j', \[0\]\): split\(j, \['0'\]\): factor 0 is below 1"),
        (Step("split", ("j",)), r"replay: step 1, s\.split\('j'\): malformed arguments \("),
        (Step("split", ("j", 4)), r"replay: step 1, s\.split\('j', 4\): malformed arguments \("),
    ],
)  # fmt: skip
def test_replay_names_the_step_that_failed(step: Step, message: str) -> None:
    s = Schedule(workloads.matmul())
    with pytest.raises(ScheduleError, match=message):
        Trace((Step("split", ("i", (4,))), step)).replay(s)

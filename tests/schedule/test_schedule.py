"""The builder: random legal sequences keep the result, traces replay, refusals name the call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule import workloads
from tests.schedule.random_steps import WORKLOADS, Choice, choices, take

from tilewright.errors import ScheduleError
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.program import For, walk_stmts
from tilewright.schedule.schedule import PRIMITIVES, Schedule
from tilewright.schedule.trace import Step, Trace

DATA = {name: workloads.arrays(w) for name, w in WORKLOADS.items()}
EXPECTED = {name: interpret(lower(w), DATA[name]) for name, w in WORKLOADS.items()}


def check(name: str, drawn: list[Choice]) -> None:
    s = Schedule(WORKLOADS[name])
    take(s, drawn)
    names = [f.var for f in walk_stmts(s.program.body) if isinstance(f, For)]
    assert len(set(names)) == len(names), f"{s.trace}\n{s.program}"
    found = interpret(s.program, DATA[name])
    for a, b in zip(found, EXPECTED[name]):
        np.testing.assert_allclose(
            a, b, rtol=1e-5, atol=1e-6, err_msg=f"{name}\n{s.trace}\n{s.program}"
        )
    replayed = Schedule(WORKLOADS[name])
    Trace.from_json(s.trace.to_json()).replay(replayed)
    assert str(replayed.program) == str(s.program)
    assert replayed.trace == s.trace


@given(st.sampled_from(list(WORKLOADS)), choices)
@settings(max_examples=300, deadline=None)
def test_random_legal_steps_keep_the_result_and_replay(name: str, drawn: list[Choice]) -> None:
    check(name, drawn)


@pytest.mark.slow
@given(st.sampled_from(list(WORKLOADS)), choices)
@settings(max_examples=20_000, deadline=None)
def test_many_random_legal_steps_keep_the_result_and_replay(name: str, drawn: list[Choice]) -> None:
    check(name, drawn)


def test_a_schedule_tells_what_it_holds() -> None:
    s = Schedule(workloads.matmul())
    assert s.blocks() == ["C", "D"]
    assert [v.name for v in s.loops("C")] == ["i", "j", "k"]
    assert [v.name for v in s.spatial("C")] == ["i", "j"]
    assert [v.name for v in s.reduction("C")] == ["k"]
    assert str(s.extent("k")) == "5"
    assert s.consumers("C") == ["D"] and s.consumers("D") == []


def test_every_primitive_records_itself() -> None:
    assert set(PRIMITIVES) <= set(dir(Schedule))
    s = Schedule(workloads.matmul(4, 4, 4))
    s.split("k", [2])
    s.rfactor("C", "k.1")
    s.decompose_reduction("C", "k.1")
    s.transform_layout("C.rf", [2, 0, 1])
    s.reverse_compute_at("D", "i")
    s.cache_write("D")
    s.fuse("i")  # one loop alone is left as it is
    assert [step.primitive for step in s.trace.steps] == [
        "split", "rfactor", "decompose_reduction", "transform_layout", "reverse_compute_at", "cache_write"
    ]  # fmt: skip


def test_a_refused_step_leaves_no_trace() -> None:
    s = Schedule(workloads.matmul())
    before = s.program
    with pytest.raises(ScheduleError):
        s.parallel("k")
    assert s.program is before and s.trace == Trace()


def test_a_step_may_use_the_loop_of_a_step_before() -> None:
    s = Schedule(workloads.matmul())
    outer, inner = s.split("j", [4])
    s.reorder(outer, "i", inner)
    assert s.trace.steps[1] == Step("reorder", ("j.0", "i", "j.1"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.knob, "knob: this schedule has no knobs; make a tw.Space of the rule instead"),
        (lambda s: s.code_size(), "registers_used(), code_size(): need a target; make the schedule of a Task"),
        (lambda s: s.set_scope("C", "l1"), "set_scope(C, 'l1'): choose one of ['global', 'register']"),
    ],
)  # fmt: skip
def test_what_a_plain_schedule_lacks_is_refused(call: object, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        call(Schedule(workloads.matmul()))  # type: ignore[operator]
    assert str(error.value) == message

"""Elementwise rules: which choices large and small results have."""

from __future__ import annotations

from dataclasses import replace

from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, te

TARGET = Target.host(2)


def doubled() -> Workload:
    x = te.placeholder((30, 70), name="X")
    return Workload.of(te.compute((30, 70), lambda i, j: x[i, j] * 2.0, name="Y"))


def test_results_much_larger_than_the_last_cache_may_be_stored_past_it() -> None:
    small = replace(TARGET, l3_bytes=4 << 10)
    space = check_candidates(doubled(), "elementwise", small, least=4, most=12)
    texts = [str(s.program) for s in space.sketches if s.name.startswith("elementwise")]
    assert [("nontemporal" in t) for t in texts] == [False, True]


def test_results_that_a_cache_holds_have_no_such_choice() -> None:
    space = Space(Task(doubled(), TARGET))
    assert [s.name for s in space.sketches if s.name.startswith("elementwise")] == ["elementwise"]

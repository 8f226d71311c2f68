"""Sketches one by one, and drafts: schedules that nobody measured."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule import workloads

from tilewright.codegen.target import Target
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.rules.tile import tile
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.sketch import drafts, sketches_of
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, te

TARGET = Target.host(2)
WORKLOADS = {
    "matmul": workloads.matmul(),
    "conv": workloads.conv(),
    "softmax": workloads.softmax(),
    "transpose": workloads.transpose(),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_drafts_are_candidates_of_the_space_and_compute_the_workload(name: str) -> None:
    workload = WORKLOADS[name]
    task = Task(workload, TARGET)
    found = drafts(task, 3)
    assert 1 <= len(found) <= 3 and found == drafts(task, 3)  # the same every time
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)
    for trace in found:
        s = Schedule(task)
        s.apply(trace)
        for a, b in zip(interpret(s.program, data), expected):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_draft_is_predicted_to_be_nearly_as_fast_as_anything_in_the_space(name: str) -> None:
    task = Task(WORKLOADS[name], TARGET)
    space = Space(task)
    rows = space.sample_rows(3000, np.random.default_rng(1))
    rows = rows[rows[:, 0] > 0]
    best = min(space.analytic(rows))
    drafted = [found[0][0] for s in space.sketches[1:] if (found := s.best_drafts(1, 1500))]
    assert min(drafted) <= best * 1.05


def test_flipping_no_choice_gives_one_sketch() -> None:
    task = Task(WORKLOADS["conv"], TARGET)
    every = sketches_of(task, tile, {})
    first = sketches_of(task, tile, {}, flipped=1)
    assert sketches_of(task, tile, {}, flipped=0)[0].name == first[0].name == every[0].name
    assert 1 < len(first) < len(every)
    assert {s.name for s in first} <= {s.name for s in every}


def test_a_workload_without_loops_has_a_draft_or_none() -> None:
    x = te.placeholder((), name="x")
    task = Task(Workload.of(te.compute((), lambda: x[()] + 1.0, name="y")), TARGET)
    assert len(drafts(task)) <= 1

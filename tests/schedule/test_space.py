"""Spaces: every candidate of every sketch computes the same, tables round-trip."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from tests.schedule import workloads

from tilewright.errors import ScheduleError
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace
from tilewright.tensor import Workload

TARGET: Any = types.SimpleNamespace(
    vector_bits=128, n_registers=16, l1_bytes=32768, l2_bytes=1 << 20, l3_bytes=32 << 20, peak_gflops=50.0,
    bandwidth_gbs=10.0, fma_units=1, n_threads=2, fingerprint="test",
)  # fmt: skip

WORKLOADS = {
    "matmul": workloads.matmul(),
    "matmul_const": workloads.matmul(const=True, epilogue=False),
    "conv": workloads.conv(),
    "softmax": workloads.softmax(),
    "transpose": workloads.transpose(),
}


@pytest.fixture(params=list(WORKLOADS))
def workload(request: pytest.FixtureRequest) -> Workload:
    return WORKLOADS[request.param]


def test_every_sketch_computes_what_the_workload_says(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)
    rng = np.random.default_rng(1)
    rows = space.sample_rows(300, rng)
    for n in range(len(space.sketches)):
        mine = rows[rows[:, 0] == n][:3]
        assert len(mine) or space.sketches[n].size < 50
        for row in mine:
            found = interpret(space.program(row), data)
            for a, b in zip(found, expected):
                np.testing.assert_allclose(
                    a, b, rtol=1e-5, atol=1e-6, err_msg=space.row_ids(row)[0]
                )


def test_the_first_row_is_the_default_schedule(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    row = space.default_row()
    assert space.valid(row).all()
    assert space.row_ids(row) == ["naive|"]


def test_rows_survive_the_round_trip_through_a_table(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    rows = space.sample_rows(50, np.random.default_rng(0))
    np.testing.assert_array_equal(space.from_frame(space.to_frame(rows)), rows)


def test_traces_survive_json_and_replay_to_the_same_program(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    for row in space.sample_rows(10, np.random.default_rng(0)):
        trace = Trace.from_json(space.trace(row).to_json())
        replayed = Schedule(workload)
        replayed.apply(trace)
        assert str(replayed.program) == str(space.program(row))


def test_features_and_predictions_are_finite_and_positive(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    rows = space.sample_rows(200, np.random.default_rng(0))
    features = space.features(rows)
    assert features.shape == (len(rows), space.n_features)
    assert np.isfinite(features).all()
    assert (space.analytic(rows) > 0).all()


def test_samples_are_valid_distinct_and_seeded(workload: Workload) -> None:
    space = Space(Task(workload, TARGET))
    rows = space.sample_rows(100, np.random.default_rng(3))
    assert space.valid(rows).all()
    assert len(set(space.row_ids(rows))) == len(rows)
    again = space.sample_rows(100, np.random.default_rng(3))
    np.testing.assert_array_equal(rows, again)


def test_enumeration_gives_every_valid_row_once() -> None:
    space = Space(Task(workloads.transpose(), TARGET))
    rows = space.enumerate_rows(10_000)
    assert rows is not None
    assert len(set(space.row_ids(rows))) == len(rows)
    assert space.enumerate_rows(1) is None


def test_a_researchers_rule_makes_a_space() -> None:
    def mine(s: Schedule) -> None:
        i, j, k = s.loops("C")
        i0, i1 = s.split(i, s.knob.tile("i", 7))
        if s.knob.choice("swap", [False, True]):
            s.reorder(i1, i0, j, k)
        s.require(s.code_size() <= 100.0)

    space = Space(Task(workloads.matmul(), TARGET), rules=[mine])
    assert [s.name for s in space.sketches] == ["naive", "mine[swap=False]"]
    assert "mine[swap=True]" in space.refused


def test_from_frame_refuses_a_value_that_is_no_choice() -> None:
    space = Space(Task(workloads.transpose(), TARGET))
    frame = space.sample(5, seed=0)
    frame.loc[0, "sketch"] = "nothing"
    with pytest.raises(ScheduleError, match=r"from_frame: no sketch 'nothing' in the space"):
        space.from_frame(frame)

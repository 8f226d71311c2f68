"""Studies that go on from a log, from an interrupt, or with a pool that misbehaves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tuner.doubles import FormulaPool, cost, task

from tilewright.costmodel import CostModel
from tilewright.errors import MeasureError
from tilewright.measure import MeasureInput, MeasureResult, Status
from tilewright.records import Record, RecordStore, Stage
from tilewright.tuner import Study


def study(path: Path, pool: FormulaPool, **options: Any) -> Study:
    return Study([(task(), 1.0), (task(64, 32, 16), 3.0)], RecordStore(path), pool, **options)


def trials(store: RecordStore) -> list[Record]:
    return [r for r in store if r.stage is Stage.TRIAL]


def finals(store: RecordStore) -> list[Record]:
    return [r for r in store if r.stage is Stage.FINAL]


class PickyPool(FormulaPool):
    """Gives chosen statuses to chosen workloads."""

    def __init__(self, status: Status, workload: str | None = None, every: int = 1) -> None:
        super().__init__()
        self.status, self.workload, self.every = status, workload, every

    def results(self, timeout_s: float) -> list[MeasureResult]:
        out = []
        for r in super().results(timeout_s):
            i = self.measured[-1]
            hit = self.workload in (None, i.task.workload.key) and i.id % self.every == 0
            out.append(MeasureResult(i.id, self.status, message="planted") if hit else r)
        return out


def test_trial_numbers_go_on_where_the_log_ends(tmp_path: Path) -> None:
    study(tmp_path / "log", FormulaPool()).run(20)
    again = study(tmp_path / "log", FormulaPool()).run(40)
    numbers = [r.trial for r in again.store]
    assert len(set(numbers)) == len(numbers)


def test_a_default_that_was_lost_to_an_interrupt_is_measured_after_all(tmp_path: Path) -> None:
    full = study(tmp_path / "a", FormulaPool()).run(8)
    RecordStore(tmp_path / "b").append(*(r for r in trials(full.store) if not r.default))
    again = study(tmp_path / "b", FormulaPool()).run(16)
    assert sum(r.default for r in trials(again.store)) == 2
    assert len({(r.workload, r.row_id) for r in trials(again.store)}) == 16


def test_what_a_resumed_study_proposes_does_not_depend_on_the_order_of_the_log(
    tmp_path: Path,
) -> None:
    first = study(tmp_path / "a", FormulaPool()).run(32)
    mixed = np.random.default_rng(0).permutation(len(first.store))
    RecordStore(tmp_path / "b").append(*(first.store.records[k] for k in mixed))
    found = []
    for name in ("a", "b"):
        pool = FormulaPool()
        study(tmp_path / name, pool).run(72)
        found.append([str(i.trace) for i in pool.measured])
    assert found[0] == found[1]


def test_a_lost_trial_is_no_lesson_and_may_be_tried_again(tmp_path: Path) -> None:
    lessons: list[np.ndarray[Any, Any]] = []

    class Listening(CostModel):
        def fit(self, x: Any, y: Any, groups: Any) -> CostModel:
            lessons.append(np.asarray(y))
            self.n_fitted_ = len(x)
            return self

        def predict(self, x: Any) -> Any:
            return np.arange(len(x), dtype=np.float64)

        def save(self, path: Any) -> None:
            raise AssertionError

        @classmethod
        def load(cls, path: Any) -> CostModel:
            raise AssertionError

    pool = PickyPool(Status.LOST, every=3)
    s = study(tmp_path / "log", pool, model=Listening()).run(48)
    assert sum(r.status == "LOST" for r in trials(s.store)) >= 12
    assert lessons and all((y > 0).all() for y in lessons)
    again = study(tmp_path / "log", FormulaPool(), model=Listening())
    for state in again._states:
        lost = [
            r
            for r in trials(again.store)
            if r.workload == state.task.workload.key and r.status == "LOST"
        ]
        assert lost and state.seen.unknown(np.array([r.row for r in lost], dtype=np.int32)).all()


def test_a_task_that_always_fails_does_not_eat_the_trials_of_the_others(tmp_path: Path) -> None:
    dead = task(64, 32, 16).workload.key
    s = study(tmp_path / "log", PickyPool(Status.WRONG, dead)).run(160)
    spent = sum(r.workload == dead for r in trials(s.store))
    assert len(trials(s.store)) == 160 and spent <= 64


def test_a_study_in_which_everything_fails_ends(tmp_path: Path) -> None:
    s = study(tmp_path / "log", PickyPool(Status.BUILD_ERROR)).run(10_000)
    assert 8 <= s.n_trials <= 200 and finals(s.store) == []


def test_a_pool_that_loses_a_candidate_is_an_error_not_a_hang(tmp_path: Path) -> None:
    class Leaky(FormulaPool):
        def submit(self, inputs: Sequence[MeasureInput]) -> None:
            super().submit(inputs[1:])

    with pytest.raises(MeasureError, match=r"the pool has no result for 1 candidate\(s\)"):
        study(tmp_path / "log", Leaky()).run(20)


def test_results_that_are_ready_when_the_interrupt_comes_are_kept(tmp_path: Path) -> None:
    class Bursts(FormulaPool):
        """Finishes everything at once, then is interrupted while it waits."""

        ready: list[MeasureResult] = []  # noqa: RUF012

        def results(self, timeout_s: float) -> list[MeasureResult]:
            if timeout_s > 0:
                while self._waiting:
                    self.ready += super().results(0.0)
                if len(self.measured) > 40:
                    raise KeyboardInterrupt
            out, self.ready = self.ready, []
            return out

    pool = Bursts()
    s = study(tmp_path / "log", pool).run(100)
    assert s.interrupted
    assert len(trials(RecordStore(tmp_path / "log"))) == len(pool.measured)


def test_an_interrupted_study_can_be_run_again_in_the_same_process(tmp_path: Path) -> None:
    pool = FormulaPool(stop_after=25)
    s = study(tmp_path / "log", pool).run(100)
    assert s.interrupted
    pool.stop_after = None
    s.run(60)
    assert not s.interrupted
    assert (
        s.n_trials
        == len(trials(s.store))
        == len({(r.workload, r.row_id) for r in trials(s.store)})
        == 60
    )


def test_the_default_is_measured_beside_the_leaders(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(50)
    by_task: dict[str, list[Record]] = {}
    for r in finals(s.store):
        by_task.setdefault(r.workload, []).append(r)
    assert len(by_task) == 2
    for records in by_task.values():
        assert sum(r.default for r in records) == 1 and 2 <= len(records) <= 4


def test_new_leaders_of_a_resumed_study_are_measured_again_too(tmp_path: Path) -> None:
    study(tmp_path / "log", FormulaPool()).run(16)
    s = study(tmp_path / "log", FormulaPool()).run(120)
    for state in s._states:
        key, target = state.task.workload.key, state.task.target.fingerprint
        leader = min(
            (r for r in trials(s.store) if r.task_key == (key, target) and r.ok),
            key=lambda r: r.value,
        )
        assert leader.row_id in {r.row_id for r in finals(s.store) if r.workload == key}


def test_a_finished_study_measures_nothing_when_it_is_run_again(tmp_path: Path) -> None:
    study(tmp_path / "log", FormulaPool()).run(40)
    pool = FormulaPool()
    study(tmp_path / "log", pool).run(40)
    assert pool.measured == []


def test_a_budget_leaves_time_for_the_leaders(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(100_000, budget_s=4.0)
    assert {r.workload for r in finals(s.store)} == {t.task.workload.key for t in s._states}


def test_the_winner_is_never_slower_than_the_default_in_the_finals(tmp_path: Path) -> None:
    class Reversing(FormulaPool):
        """Trials flatter everything but the default; the finals tell the truth."""

        def measure(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
            out = []
            for r, i in zip(super().measure(inputs), inputs):
                value = 1e-6 if len(i.trace.steps) < 13 else 1e-3
                out.append(dataclasses.replace(r, seconds=(value,), value=value))
            return out

    s = study(tmp_path / "log", Reversing()).run(60)
    for state in s._states:
        best = s.store.best(state.task.workload.key, state.task.target.fingerprint)
        assert best is not None and best.default


def test_records_of_an_older_space_count_but_teach_nothing(tmp_path: Path) -> None:
    first = study(tmp_path / "a", FormulaPool()).run(24)
    old = [dataclasses.replace(r, row_id="old|" + r.row_id) for r in trials(first.store)]
    RecordStore(tmp_path / "b").append(*old)
    again = study(tmp_path / "b", FormulaPool())
    assert again.n_trials == 24 and all(not s.features for s in again._states)
    again.run(48)
    assert again.n_trials == 48 and math.isfinite(again.model_seconds())


def test_results_of_an_interrupted_study_are_never_taken_for_those_of_the_next(
    tmp_path: Path,
) -> None:
    pool = FormulaPool("lifo", stop_after=25)
    assert study(tmp_path / "a", pool).run(100).interrupted
    pool.stop_after = None
    s = study(tmp_path / "b", pool, seed=9).run(60)
    workloads = {t.task.workload.key: t.task for t in s._states}
    for r in s.store:
        assert r.value == cost(MeasureInput(0, workloads[r.workload], r.trace))

"""Studies: reproducible, resumable, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.tuner.doubles import FormulaPool, cost, task

from tilewright.records import RecordStore, Stage
from tilewright.tuner import Evolutionary, RandomSearch, Searcher, Study

ROOT = Path(__file__).resolve().parents[2]


def ids(store: RecordStore) -> list[tuple[str, str]]:
    return [(r.workload, r.row_id) for r in store if r.stage is Stage.TRIAL]


def tasks() -> list[tuple[object, float]]:
    return [(task(), 1.0), (task(64, 32, 16), 3.0)]


def study(path: Path, pool: FormulaPool, **kw: object) -> Study:
    return Study(tasks(), RecordStore(path), pool, **kw)  # type: ignore[arg-type]


def test_the_default_schedule_comes_first_and_trials_are_counted(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(40)
    records = [r for r in s.store if r.stage is Stage.TRIAL]
    assert len(records) == s.n_trials == 40
    assert [r.default for r in records].count(True) == 2
    for key in {r.workload for r in records}:
        assert next(r for r in records if r.workload == key).default


def test_no_candidate_is_tried_twice(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(120)
    assert len(set(ids(s.store))) == len(ids(s.store)) == 120


@pytest.mark.parametrize("order", ["lifo", "shuffled"])
def test_proposals_do_not_depend_on_the_order_of_results(tmp_path: Path, order: str) -> None:
    first = study(tmp_path / "a", FormulaPool(), seed=4).run(80)
    second = study(tmp_path / "b", FormulaPool(order), seed=4).run(80)
    assert set(ids(first.store)) == set(ids(second.store))
    by_trial = [
        {r.trial: r.row_id for r in s.store if r.stage is Stage.TRIAL} for s in (first, second)
    ]
    assert by_trial[0] == by_trial[1]


def test_another_seed_gives_other_proposals(tmp_path: Path) -> None:
    first = study(tmp_path / "a", FormulaPool(), seed=1).run(60)
    second = study(tmp_path / "b", FormulaPool(), seed=2).run(60)
    assert set(ids(first.store)) != set(ids(second.store))


def test_a_second_run_goes_on_from_the_log(tmp_path: Path) -> None:
    study(tmp_path / "log", FormulaPool()).run(30)
    pool = FormulaPool()
    again = study(tmp_path / "log", pool)
    assert again.n_trials == 30
    again.run(70)
    assert again.n_trials == 70
    assert len(set(ids(again.store))) == len(ids(again.store)) == 70
    finished = study(tmp_path / "log", FormulaPool()).run(70)
    assert finished.n_trials == 70 and len(ids(finished.store)) == 70


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool(stop_after=25)).run(100)
    assert s.interrupted
    assert len(ids(RecordStore(tmp_path / "log"))) == 25
    again = study(tmp_path / "log", FormulaPool()).run(60)
    assert not again.interrupted and len(set(ids(again.store))) == 60


def test_failures_are_logged_with_their_reason_and_the_study_goes_on(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool(failures=True)).run(100)
    records = [r for r in s.store if r.stage is Stage.TRIAL]
    failed = [r for r in records if not r.ok]
    assert len(records) == 100 and failed
    assert all(r.message == "planted" and r.value == float("inf") for r in failed)
    best = s.store.best(records[0].workload, records[0].target)
    assert best is not None and best.ok


def test_the_leaders_are_measured_again(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(50)
    finals = [r for r in s.store if r.stage is Stage.FINAL]
    assert {r.workload for r in finals} == {t.workload.key for t, _ in tasks()}  # type: ignore[attr-defined]
    assert len(finals) == 8  # three leaders and the default of each


def test_a_study_beats_random_search(tmp_path: Path) -> None:
    def best(search: Searcher, name: str, seed: int) -> float:
        s = Study(
            [(task(), 1.0)],
            RecordStore(tmp_path / f"{name}{seed}"),
            FormulaPool(),
            search=search,
            seed=seed,
        )
        return s.run(96).model_seconds()

    guided = [best(Evolutionary(), "e", n) for n in range(3)]
    blind = [best(RandomSearch(), "r", n) for n in range(3)]
    assert np.median(guided) < np.median(blind)


def test_a_budget_of_time_ends_the_study(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(100_000, budget_s=0.5)
    assert 0 < s.n_trials < 100_000


def test_a_study_ends_when_the_next_trials_would_save_too_little_and_says_so(
    tmp_path: Path,
) -> None:
    s = study(tmp_path / "log", FormulaPool(), min_gain=0.03).run(5_000)
    assert 8 < s.n_trials < 2_000
    assert s.stopped.startswith("the next trials are expected to save ")
    assert s.stopped.endswith("of the model's time, which is less than 3.00%")


def test_a_study_that_did_all_trials_has_no_reason_to_give(tmp_path: Path) -> None:
    assert study(tmp_path / "log", FormulaPool()).run(20).stopped == ""


def test_a_task_at_its_bound_gets_no_more_trials(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool())
    s._states[0].progress.bound_s = 1.0  # seconds: slower than anything that is measured
    s.run(200)
    counts = [len(state.ids) for state in s._states]
    assert counts[0] <= 12 and sum(counts) == 200, "what was in flight when its time was known"
    assert len(s.notes()) == 1 and "must take at least" in s.notes()[0]


def test_time_that_is_used_up_is_a_reason(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(100_000, budget_s=0.3)
    assert s.stopped == f"the time is used up after {s.n_trials} of 100000 trials"


def test_a_record_replays_to_the_measured_schedule(tmp_path: Path) -> None:
    from tilewright.measure import MeasureInput

    s = study(tmp_path / "log", FormulaPool()).run(20)
    for r in s.store:
        t = next(t for t, _ in tasks() if t.workload.key == r.workload)  # type: ignore[attr-defined]
        assert cost(MeasureInput(0, t, r.trace)) == r.value  # type: ignore[arg-type]


def test_reports_have_a_row_for_each_task_and_a_falling_curve(tmp_path: Path) -> None:
    s = study(tmp_path / "log", FormulaPool()).run(60)
    table, curve = s.table(), s.curve_info()
    assert len(table) == 2 and (table["speedup"] >= 1).all()
    assert curve["trial"].is_monotonic_increasing and curve["trial"].iloc[-1] == 60
    assert s.model_seconds() <= s.model_seconds(default=True)


def test_kill_9_at_any_moment_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rng = np.random.default_rng(0)
    seen: list[tuple[str, str]] = []
    for _ in range(4):
        command = [sys.executable, "-m", "tests.tuner.endless_study", str(log), "100000"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"started\n"
            time.sleep(float(rng.uniform(1.0, 3.5)))
            process.send_signal(signal.SIGKILL)
        store = RecordStore(log)
        now = ids(store)
        assert now[: len(seen)] == seen, "a finished trial was lost"
        assert len(set(now)) == len(now), "a trial was repeated"
        assert len(store.problems) <= 1, "only a torn last line may be unreadable"
        seen = now
    assert len(seen) > 4

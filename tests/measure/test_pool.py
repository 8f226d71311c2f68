"""Queues, retries and phases of a pool: first with workers that only pretend, then with real ones."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest

from tilewright.codegen.build import default_trace
from tilewright.codegen.target import Target
from tilewright.errors import MeasureError
from tilewright.measure import LocalPool, MeasureInput, MeasureResult, Status
from tilewright.measure.pool import Pool, QueuedPool, Slot
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Step, Trace
from tilewright.tensor import Workload, te

A = te.placeholder((33,), name="A")
WORKLOAD = Workload.of(te.compute((33,), lambda i: A[i] * 2.0, name="B"), "double")
TASK = Task(WORKLOAD, Target.host(1))
WIDE = Task(WORKLOAD, Target.host(2))


def numbered(n: int, task: Task = TASK) -> list[MeasureInput]:
    return [MeasureInput(k, task, Trace((Step("number", (k,)),))) for k in range(n)]


Script = Callable[[str, int, int], "Status | None"]


class PretendPool(QueuedPool):
    """Workers that answer the last request first; `script` makes them fail or die.

    The script gets the kind of work, the candidate's number and how often this was tried before.
    """

    def __init__(
        self, n_builders: int = 2, script: Script = lambda *_: Status.OK, n_runners: int = 1
    ) -> None:
        super().__init__()
        self.script = script
        self.slots = [Slot(kind, None) for kind in ["run"] * n_runners + ["build"] * n_builders]
        self.started: list[tuple[str, int]] = []
        self.at_once: list[tuple[set[str], int]] = []
        self.best: list[float] = []
        self.n_replaced = 0
        self._busy: list[Slot] = []

    def _send(self, slot: Slot, request: dict[str, Any]) -> None:
        assert slot.job is not None
        self.started.append((slot.kind, slot.job.input.id))
        if slot.kind == "run":
            assert request["kernel"] == f"kernel {slot.job.input.id}"
            self.best.append(request["best"])
        self._busy.append(slot)
        self.at_once.append(({s.kind for s in self._busy}, len(self._to_run)))

    def _wait(self, timeout_s: float) -> list[tuple[Slot, dict[str, Any] | None]]:
        slot = self._busy.pop()
        assert slot.job is not None
        number = slot.job.input.id
        before = self.started.count((slot.kind, number)) - 1
        status = self.script(slot.kind, number, before)
        if status is None:
            return [(slot, None)]
        answer: dict[str, Any] = {"status": status, "message": f"{slot.kind} {status}"}
        if status is Status.OK and slot.kind == "build":
            answer["kernel"] = f"kernel {number}"
        elif status is Status.OK:
            answer.update(value=1.0 + number, seconds=[1.0], reference_seconds=[2.0])
        return [(slot, answer)]

    def _replace(self, slot: Slot) -> None:
        self.n_replaced += 1

    def close(self) -> None:
        self.slots = []


def drain(pool: Pool) -> list[MeasureResult]:
    found: list[MeasureResult] = []
    while pool.pending:
        found += pool.results(1.0)
    return found


@pytest.mark.parametrize("n_builders", [1, 3])
@pytest.mark.parametrize("n_runners", [1, 2])
@pytest.mark.parametrize("task", [TASK, WIDE], ids=["one thread", "threads"])
@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_each_candidate_gets_one_result_in_order(
    n: int, task: Task, n_runners: int, n_builders: int
) -> None:
    pool = PretendPool(n_builders, n_runners=n_runners)
    results = pool.measure(numbered(n, task))
    assert [r.id for r in results] == list(range(n))
    assert [r.value for r in results] == [1.0 + k for k in range(n)]
    assert pool.pending == 0 and pool.results(0.0) == []


def test_candidates_are_started_in_the_order_of_submission() -> None:
    pool = PretendPool(1)
    pool.submit(numbered(5))
    pool.submit([MeasureInput(k, TASK, Trace()) for k in range(5, 9)])
    drain(pool)
    assert [k for kind, k in pool.started if kind == "build"] == list(range(9))


def test_submitting_returns_at_once_and_counts() -> None:
    pool = PretendPool()
    pool.submit(numbered(6))
    assert pool.pending == 6
    assert len(pool.started) == 2
    first = pool.results(1.0)
    assert pool.pending == 6 - len(first)
    assert len(first) + len(drain(pool)) == 6


def test_measuring_keeps_the_results_of_what_was_submitted_before() -> None:
    pool = PretendPool(1)
    pool.submit(numbered(5))
    (own,) = pool.measure([MeasureInput(9, TASK, Trace())])
    assert own.id == 9
    assert pool.pending == 5
    assert sorted(r.id for r in drain(pool)) == [0, 1, 2, 3, 4]


def test_a_closed_pool_takes_nothing() -> None:
    pool = PretendPool()
    pool.close()
    for call in (pool.submit, pool.measure):
        with pytest.raises(MeasureError, match="submit: the pool is closed"):
            call(numbered(1))
    assert pool.pending == 0 and pool.results(0.0) == []


def test_a_failure_takes_no_other_candidate_with_it() -> None:
    def script(kind: str, number: int, before: int) -> Status:
        if kind == "build":
            return {1: Status.ILLEGAL, 2: Status.BUILD_ERROR}.get(number, Status.OK)
        return {3: Status.WRONG, 4: Status.RUN_TIMEOUT}.get(number, Status.OK)

    results = PretendPool(script=script).measure(numbered(6))
    assert [r.status.name for r in results] == [
        "OK", "ILLEGAL", "BUILD_ERROR", "WRONG", "RUN_TIMEOUT", "OK",
    ]  # fmt: skip
    for r in results[1:5]:
        assert r.value == math.inf and r.seconds == () and r.message.endswith(str(r.status))


@pytest.mark.parametrize("kind", ["build", "run"])
@pytest.mark.parametrize("n_deaths", [1, 2, 3])
def test_a_candidate_is_tried_three_times(kind: str, n_deaths: int) -> None:
    def script(work: str, number: int, before: int) -> Status | None:
        return None if (work, number) == (kind, 3) and before < n_deaths else Status.OK

    pool = PretendPool(script=script)
    results = pool.measure(numbered(6))
    lost = [r for r in results if r.status is not Status.OK]
    assert pool.n_replaced == n_deaths
    if n_deaths < 3:
        assert not lost
    else:
        assert [(r.id, r.status) for r in lost] == [(3, Status.LOST)]
        assert lost[0].message == f"the {kind} worker died 3 times with this candidate"
        assert lost[0].value == math.inf


def test_workers_that_always_die_still_leave_an_answer_for_each() -> None:
    results = PretendPool(script=lambda *_: None).measure(numbered(5))
    assert [(r.id, r.status) for r in results] == [(k, Status.LOST) for k in range(5)]


def test_a_worker_that_cannot_be_reached_counts_as_dead() -> None:
    pool = PretendPool(1)
    send, failures = pool._send, [OSError("gone"), EOFError("gone")]

    def unreliable(slot: Slot, request: dict[str, Any]) -> None:
        if failures:
            raise failures.pop()
        send(slot, request)

    pool._send = unreliable  # type: ignore[method-assign]
    assert [r.status for r in pool.measure(numbered(2))] == [Status.OK] * 2
    assert pool.n_replaced == 2


def test_runners_learn_the_best_value_of_the_task_so_far() -> None:
    pool = PretendPool(1)
    pool.measure(list(reversed(numbered(3))))
    assert pool.best == [math.inf, 3.0, 2.0]
    pool.best.clear()
    pool.measure(numbered(1, WIDE))
    assert pool.best == [math.inf]  # another target is another task


@pytest.mark.parametrize("task", [TASK, WIDE], ids=["one thread", "threads"])
def test_few_built_kernels_wait(task: Task) -> None:
    pool = PretendPool(3)
    pool.measure(numbered(60, task))
    assert max(n for _, n in pool.at_once) <= pool.max_built + 3


def test_single_threaded_kernels_are_timed_while_others_build() -> None:
    pool = PretendPool(2)
    pool.measure(numbered(20))
    assert any(kinds == {"build", "run"} for kinds, _ in pool.at_once)


@pytest.mark.parametrize("n_builders", [1, 3])
def test_kernels_with_threads_have_the_machine_to_themselves(n_builders: int) -> None:
    pool = PretendPool(n_builders)
    pool.measure(numbered(40, WIDE))
    assert all(len(kinds) == 1 for kinds, _ in pool.at_once)


@pytest.mark.parametrize("n_builders", [1, 3])
def test_building_and_timing_take_turns_in_long_phases(n_builders: int) -> None:
    pool = PretendPool(n_builders)
    pool.measure(numbered(40, WIDE))
    phases = [kind for kind, _ in groupby(kind for kind, _ in pool.started)]
    assert len(phases) <= 2 * 40 / pool.max_built


# --------------------------------------------------------------- real workers

BUILDER = "tests.measure.bad_builders:build"
GOOD = default_trace(WORKLOAD, TASK.target)


def slow(number: int) -> MeasureInput:
    """A right candidate that takes some tenths of a second to time."""
    return MeasureInput(number, TASK, Trace((Step("fault", ("slow",)),)))


@pytest.fixture(scope="module")
def local() -> Iterator[LocalPool]:
    with LocalPool(1, builder=BUILDER) as pool:
        yield pool


def test_a_runner_killed_while_it_works_costs_no_candidate(local: LocalPool) -> None:
    runner = next(s for s in local.slots if s.kind == "run")
    local.submit([slow(1), slow(2)])
    found: list[MeasureResult] = []
    killed = False
    while local.pending:
        if runner.job is not None and not killed:
            os.kill(runner.worker.pid, signal.SIGKILL)
            killed = True
        found += local.results(0.05)
    assert killed
    assert sorted(r.id for r in found) == [1, 2]
    assert all(r.status is Status.OK for r in found)


def test_a_candidate_around_which_runners_keep_dying_is_lost(local: LocalPool) -> None:
    runner = next(s for s in local.slots if s.kind == "run")
    local.submit([slow(1)])
    found: list[MeasureResult] = []
    while local.pending:
        if runner.job is not None:
            os.kill(runner.worker.pid, signal.SIGKILL)
        found += local.results(0.05)
    assert [(r.id, r.status) for r in found] == [(1, Status.LOST)]
    assert "the run worker died 3 times" in found[0].message
    (after,) = local.measure([MeasureInput(2, TASK, GOOD)])
    assert after.status is Status.OK and math.isfinite(after.value)


def test_kernels_with_threads_are_measured(local: LocalPool) -> None:
    trace = default_trace(WORKLOAD, WIDE.target)
    results = local.measure([MeasureInput(k, WIDE, trace) for k in range(3)])
    assert [r.status for r in results] == [Status.OK] * 3
    assert all(r.build_s > 0 and r.run_s > 0 for r in results)


def test_measured_values_are_the_samples_relative_to_the_reference(local: LocalPool) -> None:
    (r,) = local.measure([MeasureInput(0, TASK, GOOD)])
    assert len(r.seconds) == len(r.reference_seconds) >= 2
    assert 0 < usual(r) < 0.1
    assert all(s > 0 for s in (*r.seconds, *r.reference_seconds))


def usual(r: MeasureResult) -> float:
    """What the runner took for the reference kernel's usual time."""
    return r.value * min(r.reference_seconds) / min(r.seconds)


def test_a_replaced_runner_goes_on_with_the_reference_time_of_the_session(
    local: LocalPool,
) -> None:
    runner = next(s for s in local.slots if s.kind == "run")
    before = local.measure([MeasureInput(0, TASK, GOOD)])[0]
    os.kill(runner.worker.pid, signal.SIGKILL)
    after = local.measure([MeasureInput(1, TASK, GOOD)])[0]
    assert usual(after) == pytest.approx(usual(before), rel=1e-9)

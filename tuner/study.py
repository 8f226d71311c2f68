"""A study: one tuning run over the tasks of a model, which can be interrupted and continued."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.analytic_model import AnalyticModel
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.pretrained import default_model
from tilewright.errors import MeasureError
from tilewright.measure.outcome import MeasureResult, Status
from tilewright.records.query import confirmed
from tilewright.records.record import Stage
from tilewright.records.store import RecordStore
from tilewright.schedule.space import Rows, Space
from tilewright.schedule.task import Task
from tilewright.tuner.evolutionary import Evolutionary
from tilewright.tuner.examples import examples
from tilewright.tuner.guide import Guide
from tilewright.tuner.reasons import notes, why_stopped
from tilewright.tuner.report import Event, ProgressSink
from tilewright.tuner.scheduler import pick
from tilewright.tuner.searcher import Searcher, distinct
from tilewright.tuner.state import Proposal, TaskState

if TYPE_CHECKING:
    import pandas as pd

    from tilewright.measure.pool import Pool

__all__ = ["Study"]

WARM_UP = 4  # trials of each task before the scheduler chooses
EARLY = 16  # trials of a task up to which batches are halved, so that the model learns soon
FINALISTS = 3
FINALS_BATCH = 16  # measured together, then the clock is read
FINALS_SHARE = 0.1  # of a time budget, kept for the finals
REFIT_SHARE = 0.2


class Study:
    """Tunes tasks; everything it learns is in the log.

    Parameters
    ----------
    tasks : sequence of (Task or tuple of Task, weight)
        The weight is how often the kernel is called in one run of the model. Tasks in a tuple are rivals:
        each computes the same, the fastest will be used, and the first gives the default.
    store : RecordStore
        Finished trials of these tasks that it holds already are not repeated.
    pool : Pool
    search : Searcher, optional
        `Evolutionary` by default.
    model : CostModel, optional
        `costmodel.default_model` by default: an `XGBRanker` that starts from the shipped weights.
    seed : int
    batch : int
        Trials that are proposed together.
    name : str
        Goes into every record.
    min_gain : float
        End when the next trials are expected to save less than this share of the model's time.
    space_of : callable
        From a task to its space: where own rules, or a part of a space, come in.

    Notes
    -----
    The same seed gives the same proposals in whatever order measurements return: a batch is
    proposed from the results of all batches but the last one, which is being measured meanwhile
    (of all batches, where timing needs every core of this machine: `Pool.alone`).
    """

    def __init__(
        self,
        tasks: Sequence[tuple[Task | tuple[Task, ...], float]],
        store: RecordStore,
        pool: Pool,
        *,
        search: Searcher | None = None,
        model: CostModel | None = None,
        seed: int = 0,
        batch: int = 8,
        name: str = "study",
        min_gain: float = 0.0,
        space_of: Callable[[Task], Space] = Space,
    ) -> None:
        self.store = store
        self.pool = pool
        self.search = search or Evolutionary(seed=seed)
        self.model = model or default_model(seed)
        self.draft = AnalyticModel()
        self.seed = seed
        self.batch = batch
        self.name = name
        self.min_gain = min_gain
        self.interrupted = False
        self.stopped = ""
        self._kernels = [
            [
                TaskState(t, w, seed, space_of)
                for t in (forms if isinstance(forms, tuple) else (forms,))
            ]
            for forms, w in tasks
        ]
        self._states = [s for forms in self._kernels for s in forms]
        self._statuses: Counter[str] = Counter()
        self._curve: list[tuple[int, float, float]] = []
        self._next_id = 0
        self._started = time.monotonic()
        self._n_done = 0
        self._in_flight: dict[int, Proposal] = {}
        self._arrived: dict[int, tuple[Proposal, MeasureResult]] = {}
        self._unwritten: list[MeasureResult] = []
        self._resume()

    # --------------------------------------------------------------- resume

    def _resume(self) -> None:
        """Take over what the log knows of these tasks."""
        for state in self._states:
            known = self.store.of_task(state.task.workload.key, state.task.target.fingerprint)
            for r in sorted(known, key=lambda r: (r.trial, r.row_id)):  # not as results came in
                self._next_id = max(self._next_id, r.trial + 1)
                if r.stage is Stage.TRIAL:
                    self._n_done += 1
                    self._statuses[r.status] += 1
                    state.recall(r)
            if known:
                state.draw_anew()
                state.progress.update(state.best_s, state.progress.n_trials)

    # ------------------------------------------------------------------ run

    @property
    def states(self) -> tuple[TaskState, ...]:
        """What is known of each task."""
        return tuple(self._states)

    @property
    def n_trials(self) -> int:
        """Finished trials of these tasks, those of earlier runs included."""
        return self._n_done

    def run(
        self, trials: int, *, budget_s: float | None = None, progress: ProgressSink | None = None
    ) -> Study:
        """Measure until the log holds that many trials of these tasks, or time is up.

        An interrupt (Ctrl-C) ends the run early: what has been measured is in the log, and running
        the same study again goes on from there.
        """
        self._started = time.monotonic()
        deadline = closing = math.inf
        if budget_s is not None:
            deadline = self._started + budget_s
            closing = self._started + budget_s * (1 - FINALS_SHARE)
        waiting: list[list[Proposal]] = []
        depth = 1 if any(self.pool.alone(s.task.target) for s in self._states) else 2
        total = trials
        start_done = self._n_done
        self.interrupted = False
        try:
            self._drain()
            while True:
                asked = self._n_done + len(self._in_flight)
                now = time.monotonic()
                if asked < total and now < closing:
                    proposals = self._propose(min(self.batch, total - asked))
                    if proposals:
                        self._in_flight.update({p.ticket: p for p in proposals})
                        self.pool.submit([p.input() for p in proposals])
                        waiting.append(proposals)
                        if len(waiting) < depth:
                            continue
                if not waiting:
                    break
                self._collect(waiting.pop(0), total, start_done, deadline, progress)
            self._stop(total, start_done, deadline, progress)
            if time.monotonic() < deadline:
                self._finals(deadline)
        except KeyboardInterrupt:
            self.interrupted = True
            self._take(0.0)  # what has finished is kept
        finally:
            self.store.flush()
            if progress is not None:
                progress.close()
        return self

    def _propose(self, n: int) -> list[Proposal]:
        """The next trials: every default first, a few more of every task, then where most is to be gained."""
        out: list[Proposal] = []
        for warm_up in (1, WARM_UP):
            for state in self._states:
                if len(out) >= n:
                    return out
                missing = warm_up - len(state.ids) if not state.progress.exhausted else 0
                if state.seen.unknown(state.space.default_row())[0]:
                    missing = max(missing, 1)
                if missing > 0:
                    out += self._rows_of(state, min(missing, n - len(out)))
        if out:
            return out
        for forms in self._kernels:
            best_s = min(s.best_s for s in forms)
            for s in forms:
                s.progress.rival_best_s = best_s
        for _ in range(len(self._states)):
            index = pick([s.progress for s in self._states], self.min_gain * self.model_seconds())
            if index is None:
                return []
            state = self._states[index]
            out = self._rows_of(state, n if len(state.ids) >= EARLY else -(-n // 2))
            if out:
                return out
        return []

    def _rows_of(self, state: TaskState, n: int) -> list[Proposal]:
        seen, default = state.seen, state.space.default_row()
        rows = default[seen.unknown(default)]  # first of all, unless the log has it
        seen.add(rows)
        if len(rows) < n:
            ask = self._draft if len(state.ids) < WARM_UP else self._ask
            rows = np.concatenate([rows, ask(state, n - len(rows))])
        seen.add(rows)
        if len(rows) < n:
            state.progress.exhausted = True
        out = []
        for row, row_id in zip(rows, state.space.row_ids(rows)):
            state.ids.append(row_id)
            out.append(Proposal(state, row, row_id, self._next_id))
            self._next_id += 1
        return out

    def _draft(self, state: TaskState, n: int) -> Rows:
        """Before anything is known of a task: a model that is informed without, or the analytic one."""
        if self.model.informed and self.model.n_fitted_ == 0:
            return self.search.ask(state.seen, n, Guide(state.space, self.model), state.rng)
        return self.search.ask(state.seen, n, Guide(state.space, self.draft), state.rng)

    def _ask(self, state: TaskState, n: int) -> Rows:
        self._refit()
        if self.model.n_fitted_ == 0:
            return self._draft(state, n)
        return self.search.ask(state.seen, n, Guide(state.space, self.model), state.rng)

    def _refit(self) -> None:
        """Fit the model again when there is enough new to learn."""
        found = examples(self._states)
        if found is not None and len(found[1]) >= max(8, self.model.n_fitted_ * (1 + REFIT_SHARE)):
            self.model.fit(*found)

    # -------------------------------------------------------------- results

    def _collect(
        self,
        proposals: list[Proposal],
        total: int,
        start_done: int,
        deadline: float,
        progress: ProgressSink | None,
    ) -> None:
        """Wait for a batch; write each result as it arrives, learn from them in order of proposal."""
        while missing := [p for p in proposals if p.ticket in self._in_flight]:
            idle = not self.pool.pending
            self._take(1.0)  # results of the next batch may come early
            if idle and all(p.ticket in self._in_flight for p in missing):
                raise MeasureError(
                    f"Study.run: the pool has no result for {len(missing)} candidate(s) and no work left; "
                    "open a new pool and run the study again"
                )
        self._learn([self._arrived.pop(p.ticket) for p in proposals])
        now = time.monotonic()
        if all(math.isfinite(min(s.best_s for s in forms)) for forms in self._kernels):
            self._curve.append((self._n_done, now - self._started, self.model_seconds()))
        if progress is not None:
            progress.update(self._event(total, start_done, deadline))

    def _take(self, timeout_s: float) -> None:
        """Write the results that are ready."""
        self._unwritten += self.pool.results(timeout_s)
        while self._unwritten:
            r = self._unwritten[0]
            if (
                r.id in self._in_flight
            ):  # else it belongs to a study that was interrupted on this pool
                self._write(self._in_flight[r.id], r, Stage.TRIAL)
                self._arrived[r.id] = (self._in_flight.pop(r.id), r)
            del self._unwritten[0]

    def _drain(self) -> None:
        """Learn what an interrupted run left in the pool."""
        while self._in_flight and self.pool.pending:
            self._take(1.0)
        self._in_flight.clear()
        self._learn([self._arrived.pop(ticket) for ticket in sorted(self._arrived)])

    def _learn(self, outcomes: list[tuple[Proposal, MeasureResult]]) -> None:
        """Tell the searcher and the scheduler, in order of proposal."""
        for p, r in outcomes:
            if r.status is Status.LOST:  # says nothing of the candidate
                continue
            p.state.learn(p.row, r.value)
        for state in {id(p.state): p.state for p, _ in outcomes}.values():
            state.progress.update(state.best_s, len(state.ids))

    def _write(self, p: Proposal, r: MeasureResult, stage: Stage) -> None:
        if stage is Stage.TRIAL:
            self._n_done += 1
            self._statuses[r.status.name] += 1
        self.store.append(p.record(r, stage, self.seed, self.name))

    def _finals(self, deadline: float) -> None:
        """Measure the leaders of every task and its default once more, side by side.

        The fastest of many is partly luck, and what is tuned must not be slower than the default.
        """
        waiting = [p for state in self._states for p in self._finalists(state)]
        while waiting and time.monotonic() < deadline:
            some = waiting[:FINALS_BATCH]
            del waiting[:FINALS_BATCH]
            for p, r in zip(some, self.pool.measure([p.input() for p in some])):
                self._write(p, r, Stage.FINAL)

    def _finalists(self, state: TaskState) -> list[Proposal]:
        """The leaders and the default of a task, unless the log has them side by side already."""
        if not math.isfinite(state.best_s):
            return []
        rows = state.seen.best(FINALISTS)
        if math.isfinite(state.default_s):
            rows = distinct(np.concatenate([rows, state.space.default_row()]))
        ids = state.space.row_ids(rows)
        key, target = state.task.workload.key, state.task.target.fingerprint
        known = confirmed(self.store.of_task(key, target), key, target)
        if len(rows) < 2 or known.issuperset(ids):
            return []
        self._next_id += len(rows)
        first = self._next_id - len(rows)
        return [Proposal(state, row, i, first + k) for k, (row, i) in enumerate(zip(rows, ids))]

    # -------------------------------------------------------------- reports

    def model_seconds(self, default: bool = False) -> float:
        """Seconds of all kernels of one run, with the best or the default schedules found so far.

        Kernels of which nothing is known yet are left out.
        """
        total = 0.0
        for forms in self._kernels:
            value = forms[0].default_s if default else min(s.best_s for s in forms)
            total += forms[0].weight * value if math.isfinite(value) else 0.0
        return total

    def _stop(
        self, total: int, start_done: int, deadline: float, progress: ProgressSink | None
    ) -> None:
        """Say why the trials end."""
        self.stopped = why_stopped(
            self._states, self._n_done, total, min_gain=self.min_gain, model_s=self.model_seconds()
        )
        if self.stopped and progress is not None:
            progress.update(replace(self._event(total, start_done, deadline), stopped=self.stopped))

    def notes(self) -> list[str]:
        """One sentence for each task that gets no more trials."""
        return notes(self._states)

    def _event(self, total: int, start_done: int, deadline: float) -> Event:
        now = time.monotonic()
        elapsed = now - self._started
        rate = (self._n_done - start_done) / elapsed if elapsed > 0 else 0.0
        left = (total - self._n_done) / rate if rate > 0 else math.inf
        failures = {k: v for k, v in self._statuses.items() if k != "OK"}
        return Event(
            self._n_done,
            total,
            elapsed,
            min(left, deadline - now),
            self.model_seconds(),
            self.model_seconds(default=True),
            failures,
            sum(math.isfinite(s.best_s) for s in self._states),
            len(self._states),
        )

    def table(self) -> pd.DataFrame:
        """One row a task: trials, default and best microseconds, speed-up, GFLOP/s."""
        import pandas as pd

        rows = []
        for s in self._states:
            best = s.best_s
            rows.append(
                {
                    "task": s.task.name, "weight": s.weight, "trials": len(s.ids), "default_us": s.default_s * 1e6,
                    "best_us": best * 1e6, "speedup": s.default_s / best if best else math.nan,
                    "gflops": s.task.workload.flops / best / 1e9 if math.isfinite(best) else 0.0,
                }
            )  # fmt: skip
        return pd.DataFrame(rows)

    def curve_info(self) -> pd.DataFrame:
        """Best-so-far of this run: columns trial, seconds (since its start), model_s.

        It begins when something is known of every kernel.
        """
        import pandas as pd

        return pd.DataFrame(self._curve, columns=["trial", "seconds", "model_s"])

    def _repr_html_(self) -> str:
        table: str = self.table().to_html(index=False)
        return table

"""What a study knows of one task, and the candidates it has sent out."""

from __future__ import annotations

import itertools
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.measure.outcome import MeasureInput, MeasureResult, Status
from tilewright.records.record import Provenance, Record, Stage
from tilewright.schedule.space import Rows, Space
from tilewright.schedule.task import Task
from tilewright.tuner.scheduler import Progress, lower_bound
from tilewright.tuner.searcher import Seen

__all__ = ["Proposal", "TaskState"]

_TICKETS = itertools.count()  # of a whole process: a pool may outlive a study


class TaskState:
    """One task of a study.

    Attributes
    ----------
    weight : float
        Calls of the kernel in one run of the model.
    ids : list of str
        Rows that were proposed, whatever came of them.
    features : list of arrays
        Of the rows in `seen.values`, in the same order.
    default_s : float
        Measured seconds of the default schedule.
    """

    def __init__(
        self, task: Task, weight: float, seed: int, space_of: Callable[[Task], Space] = Space
    ) -> None:
        self.task = task
        self.weight = weight
        self.progress = Progress(weight, lower_bound(task))
        self.ids: list[str] = []
        self.features: list[NDArray[np.float32]] = []
        self.default_s = math.inf
        self._seed = seed
        self._space_of = space_of
        self._space: Space | None = None
        self._seen: Seen | None = None
        self.draw_anew()

    def draw_anew(self) -> None:
        """Seed the task's generator by the number of trials, so that a resumed study draws afresh."""
        key = int(self.task.workload.key[:8], 16)
        self.rng = np.random.default_rng([self._seed, key, self.progress.n_trials])

    @property
    def space(self) -> Space:
        """Made when it is first needed."""
        if self._space is None:
            self._space = self._space_of(self.task)
        return self._space

    @property
    def seen(self) -> Seen:
        """Rows that were proposed, and the values that came of them."""
        if self._seen is None:
            self._seen = Seen(self.space)
        return self._seen

    @property
    def best_s(self) -> float:
        """The fastest measured so far, or infinity."""
        return (
            min(min(self.seen.values, default=math.inf), self.default_s) if self.ids else math.inf
        )

    def learn(self, row: Rows, value: float) -> None:
        """Note what a measurement gave: seconds, or infinity for a candidate that failed."""
        self.seen.record(row, value)
        self.features.append(self.space.features(row)[0])
        if not row.any():
            self.default_s = min(self.default_s, value)

    def recall(self, r: Record) -> None:
        """Note a trial of an earlier run."""
        self.progress.n_trials += 1
        self.ids.append(r.row_id)
        if r.status == Status.LOST.name:  # says nothing of the candidate, which may be tried again
            return
        row = np.array(r.row, dtype=np.int32)
        fits = row.shape == (1 + self.space.n_columns,) and self.space.valid(row[None])[0]
        if fits and self.space.row_ids(row)[0] == r.row_id:
            self.learn(row, r.value)
        elif r.default:  # the log is of an older space: no example for the model
            self.default_s = min(self.default_s, r.value)


@dataclass(frozen=True)
class Proposal:
    """A candidate that is to be measured."""

    state: TaskState
    row: Rows
    row_id: str
    trial: int
    ticket: int = field(default_factory=lambda: next(_TICKETS))

    def input(self) -> MeasureInput:
        """What the pool needs."""
        return MeasureInput(self.ticket, self.state.task, self.state.space.trace(self.row))

    def record(self, r: MeasureResult, stage: Stage, seed: int, study: str) -> Record:
        """What the log keeps."""
        import llvmlite.binding as llvm

        import tilewright

        space, row = self.state.space, self.row
        workload, target = self.state.task.workload, self.state.task.target
        try:
            text = json.dumps(space.trace(row).to_json(), sort_keys=True, separators=(",", ":"))
        except ScheduleError:
            text = "null"
        return Record(
            workload=workload.key, anchor=workload.anchor_key, name=workload.name, target=target.fingerprint,
            row_id=self.row_id, status=r.status.name, value=r.value if r.status is Status.OK else math.inf, trace_text=text,
            sketch=int(row[0]), row=tuple(int(v) for v in row), knobs=tuple(sorted(space.knobs(row).items())),
            seconds=r.seconds, reference_seconds=r.reference_seconds, message=r.message, build_s=r.build_s, run_s=r.run_s,
            trial=self.trial, default=not row.any(), stage=stage,
            provenance=Provenance(
                platform.node(), time.time(), seed, tilewright.__version__,
                ".".join(map(str, llvm.llvm_version_info)), study,
            ),
        )  # fmt: skip

"""The contract of measuring pools, and the queueing that all of them share."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.target import Target
from tilewright.errors import MeasureError
from tilewright.measure.outcome import MeasureInput, MeasureResult, Status
from tilewright.measure.wire import DEFAULT_BUILDER

__all__ = ["Pool", "QueuedPool"]


class Pool(ABC):
    """Builds, checks and times candidates: exactly one result for each that is submitted."""

    @abstractmethod
    def submit(self, inputs: Sequence[MeasureInput]) -> None:
        """Queue candidates; returns at once."""

    @abstractmethod
    def results(self, timeout_s: float) -> list[MeasureResult]:
        """Results that have come in since the last call; waits up to `timeout_s` for one."""

    @property
    @abstractmethod
    def pending(self) -> int:
        """Candidates submitted whose results have not been handed out."""

    def alone(self, target: Target) -> bool:
        """Whether timing kernels of a target takes all cores of the caller's machine.

        The caller then should compute nothing while candidates are pending.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Give all processes back; pending candidates are dropped."""

    def measure(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """Measure candidates and wait; results in the order of the inputs."""
        wanted = {i.id for i in inputs}
        self.submit(inputs)
        found: dict[int, MeasureResult] = {}
        while wanted - set(found):
            for r in self.results(1.0):
                found[r.id] = r
        return [found[i.id] for i in inputs]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass
class Job:
    """A candidate on its way."""

    input: MeasureInput
    attempts: int = 0
    kernel: KernelObject | None = None
    build_s: float = 0.0


@dataclass
class Slot:
    """A worker that does one thing at a time."""

    kind: str
    worker: Any
    job: Job | None = None
    since: float = field(default_factory=time.monotonic)


class QueuedPool(Pool):
    """Queues, retries and bookkeeping; subclasses carry requests to workers.

    Parameters
    ----------
    build_timeout_s, run_timeout_s : float
        Deadlines, counted from when the work starts.
    builder : str
        "module:function" that compiles (workload, trace, target) to a KernelObject.
    """

    max_attempts = 3
    max_built = 8

    def __init__(
        self,
        *,
        build_timeout_s: float = 20.0,
        run_timeout_s: float = 10.0,
        builder: str = DEFAULT_BUILDER,
    ) -> None:
        self.build_timeout_s = build_timeout_s
        self.run_timeout_s = run_timeout_s
        self.builder = builder
        self.slots: list[Slot] = []
        self._to_build: deque[Job] = deque()
        self._to_run: deque[Job] = deque()
        self._done: list[MeasureResult] = []
        self._best: dict[str, float] = {}
        self._usual_s: float | None = None  # of the reference kernel, as the first runner found it
        self._running_phase = False

    # -------------------------------------------------- for the subclasses

    @abstractmethod
    def _send(self, slot: Slot, request: dict[str, Any]) -> None:
        """Start work on a slot; raises OSError or EOFError if its worker is gone."""

    @abstractmethod
    def _wait(self, timeout_s: float) -> list[tuple[Slot, dict[str, Any] | None]]:
        """Answers of busy slots; None for a worker that died."""

    @abstractmethod
    def _replace(self, slot: Slot) -> None:
        """Give a slot a fresh worker."""

    # ------------------------------------------------------------ contract

    @property
    def pending(self) -> int:
        busy = sum(s.job is not None for s in self.slots)
        return len(self._to_build) + len(self._to_run) + busy + len(self._done)

    def submit(self, inputs: Sequence[MeasureInput]) -> None:
        if not self.slots:
            raise MeasureError("submit: the pool is closed; open a new one")
        self._to_build.extend(Job(i) for i in inputs)
        self._feed()

    def results(self, timeout_s: float) -> list[MeasureResult]:
        deadline = time.monotonic() + timeout_s
        while not self._done and self.pending:
            self._feed()
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for slot, answer in self._wait(left):
                self._finish(slot, answer)
            self._check_deadlines()
        self._feed()
        done, self._done = self._done, []
        return done

    def measure(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        wanted = {i.id for i in inputs}
        earlier: list[MeasureResult] = []
        found: dict[int, MeasureResult] = {}
        self.submit(inputs)
        while len(found) < len(wanted):
            for r in self.results(1.0):
                if r.id in wanted:
                    found[r.id] = r
                else:
                    earlier.append(r)
        self._done += earlier  # results() is still to hand them out
        return [found[i.id] for i in inputs]

    # -------------------------------------------------------------- queues

    def _exclusive(self) -> bool:
        """Whether timing needs the whole machine: then builders pause meanwhile."""
        jobs = (*self._to_run, *(s.job for s in self.slots if s.job and s.kind == "run"))
        return any(j.input.task.target.n_threads > 1 for j in jobs)

    def _feed(self) -> None:
        runners = [s for s in self.slots if s.kind == "run"]
        builders = [s for s in self.slots if s.kind == "build"]
        building = any(s.job for s in builders)
        if self._exclusive():
            if len(self._to_run) >= self.max_built or not self._to_build:
                self._running_phase = True  # until nothing is left to run
            may_build, may_run = not self._running_phase, self._running_phase and not building
        else:
            self._running_phase = False
            may_build = may_run = True
        for slot in builders:
            while (
                may_build
                and slot.job is None
                and self._to_build
                and len(self._to_run) < self.max_built
            ):
                self._start(slot, self._to_build.popleft())
        for slot in runners:
            while may_run and slot.job is None and self._to_run:
                self._start(slot, self._to_run.popleft())

    def _start(self, slot: Slot, job: Job) -> None:
        task = job.input.task
        if slot.kind == "build":
            request: dict[str, Any] = {
                "workload": task.workload, "trace": job.input.trace, "target": task.target,
                "builder": self.builder, "timeout_s": self.build_timeout_s,
            }  # fmt: skip
        else:
            request = {
                "workload": task.workload, "kernel": job.kernel, "best": self._best.get(task.key, math.inf),
                "timeout_s": self.run_timeout_s, "usual_s": self._usual_s,
            }  # fmt: skip
        slot.job, slot.since = job, time.monotonic()
        try:
            self._send(slot, request)
        except (OSError, EOFError):
            self._died(slot)

    def _finish(self, slot: Slot, answer: dict[str, Any] | None) -> None:
        if answer is None:
            self._died(slot)
            return
        job = slot.job
        slot.job = None
        if job is None:
            return
        status: Status = answer["status"]
        if slot.kind == "build":
            job.build_s = float(answer.get("build_s", 0.0))
            if status is Status.OK:
                job.kernel = answer["kernel"]
                self._to_run.append(job)
                return
        self._usual_s = self._usual_s or answer.get("usual_s")
        value = float(answer.get("value", math.inf))
        key = job.input.task.key
        self._best[key] = min(self._best.get(key, math.inf), value)
        self._done.append(
            MeasureResult(
                job.input.id, status, tuple(answer.get("seconds", ())), tuple(answer.get("reference_seconds", ())),
                value, str(answer.get("message", "")), job.build_s, float(answer.get("run_s", 0.0)),
            )
        )  # fmt: skip

    def _died(self, slot: Slot) -> None:
        """The worker of a slot is gone: replace it, try its job again a few times."""
        job = slot.job
        slot.job = None
        self._replace(slot)
        if job is None:
            return
        job.attempts += 1
        if job.attempts >= self.max_attempts:
            text = f"the {slot.kind} worker died {job.attempts} times with this candidate"
            self._done.append(
                MeasureResult(job.input.id, Status.LOST, message=text, build_s=job.build_s)
            )
        elif slot.kind == "build":
            self._to_build.appendleft(job)
        else:
            self._to_run.appendleft(job)

    def _check_deadlines(self) -> None:
        """A worker that is silent long after its own deadline hangs."""
        now = time.monotonic()
        for slot in self.slots:
            limit = self.build_timeout_s if slot.kind == "build" else self.run_timeout_s
            if slot.job is not None and now - slot.since > limit + 60.0:
                self._died(slot)

"""A pool that measures by formula, so that studies run in milliseconds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from tilewright.codegen.target import Target
from tilewright.measure import MeasureInput, MeasureResult, Pool, Status
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te

__all__ = ["FormulaPool", "cost", "task"]


def task(m: int = 96, n: int = 64, k: int = 48) -> Task:
    """A matrix product."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B", const=True)
    return Task(Workload.of(ops.matmul(a, b), f"matmul[{m}x{n}x{k}]"), Target.host(1))


def cost(i: MeasureInput) -> float:
    """Seconds that depend on the trace alone: smooth in the numbers, with a little noise."""
    numbers = [
        v
        for s in i.trace.steps
        for a in s.args
        for v in (a if isinstance(a, tuple) else (a,))
        if isinstance(v, int)
    ]
    digest = hashlib.sha256(str(i.trace).encode()).digest()
    smooth = sum(abs(math.log2(v) - 2.5) for v in numbers) if len(i.trace.steps) > 12 else 60.0
    return 1e-5 * (1 + smooth + digest[0] / 256)


class FormulaPool(Pool):
    """Answers at once, in a chosen order; some statuses by the trace's hash.

    Parameters
    ----------
    order : {"fifo", "lifo", "shuffled"}
    failures : bool
        Whether every seventh candidate or so fails, each time in the same way.
    stop_after : int, optional
        Raise KeyboardInterrupt instead of the result of that number.
    """

    def __init__(
        self, order: str = "fifo", *, failures: bool = False, stop_after: int | None = None
    ) -> None:
        self.order = order
        self.failures = failures
        self.stop_after = stop_after
        self.measured: list[MeasureInput] = []
        self._waiting: list[MeasureInput] = []
        self._rng = np.random.default_rng(5)

    def submit(self, inputs: Sequence[MeasureInput]) -> None:
        self._waiting.extend(inputs)

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def results(self, timeout_s: float) -> list[MeasureResult]:
        stopped = self.stop_after is not None and len(self.measured) > self.stop_after
        if not self._waiting or (stopped and timeout_s <= 0):
            return []
        n = {"fifo": 0, "lifo": len(self._waiting) - 1}.get(
            self.order, int(self._rng.integers(len(self._waiting)))
        )
        i = self._waiting.pop(n)
        self.measured.append(i)
        if self.stop_after is not None and len(self.measured) > self.stop_after:
            raise KeyboardInterrupt
        digest = hashlib.sha256(str(i.trace).encode()).digest()[1]
        if self.failures and digest % 7 == 0:
            status = [s for s in Status if s is not Status.OK][digest % 8]
            return [MeasureResult(i.id, status, message="planted")]
        seconds = cost(i)
        return [MeasureResult(i.id, Status.OK, (seconds,), (1e-4,), seconds)]

    def close(self) -> None:
        self._waiting.clear()

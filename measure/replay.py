"""The pool that measures nothing: it serves tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tilewright.errors import MeasureError
from tilewright.measure.outcome import MeasureInput, MeasureResult, Status
from tilewright.measure.pool import Pool
from tilewright.measure.table import Table, digest

__all__ = ["ReplayPool"]


class ReplayPool(Pool):
    """Answers from recorded tables, at once and in order of submission.

    A candidate that no table holds is LOST: nothing is known of it.

    Parameters
    ----------
    tables : sequence of Table
        At most one for each task.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = {t.task_key: t for t in tables}
        if len(self._tables) < len(tables):
            raise MeasureError("ReplayPool: two tables of one task; merge them or drop one")
        self._rows = {
            key: {int(d): n for n, d in enumerate(t.digests)} for key, t in self._tables.items()
        }
        self._waiting: deque[MeasureInput] = deque()
        self._closed = False

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def submit(self, inputs: Sequence[MeasureInput]) -> None:
        if self._closed:
            raise MeasureError("submit: the pool is closed; open a new one")
        self._waiting.extend(inputs)

    def results(self, timeout_s: float) -> list[MeasureResult]:
        out = [self._result(i) for i in self._waiting]
        self._waiting.clear()
        return out

    def measure(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        if self._closed:
            raise MeasureError("submit: the pool is closed; open a new one")
        return [self._result(i) for i in inputs]

    def _result(self, i: MeasureInput) -> MeasureResult:
        key = i.task.key
        number = self._rows.get(key, {}).get(digest(i.trace))
        if number is None:
            why = (
                "the table lacks this candidate" if key in self._tables else "no table of this task"
            )
            return MeasureResult(i.id, Status.LOST, message=why)
        return self._tables[key].result(number, i.id)

    def close(self) -> None:
        self._waiting.clear()
        self._closed = True

"""What a log knows about a task."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.records.record import Record, Stage

__all__ = ["best", "confirmed", "nearest"]


@dataclass(slots=True)
class _Row:
    """All correct measurements of one candidate."""

    trials: list[Record]
    finals: list[Record]

    @property
    def trial_value(self) -> float:
        return min((r.value for r in self.trials or self.finals), default=float("inf"))

    @property
    def final_value(self) -> float:
        return statistics.median(r.value for r in self.finals)

    def representative(self) -> Record:
        """The record that stands for the candidate: of the finals the median, else the fastest."""
        records = sorted(self.finals or self.trials, key=_order)
        return records[(len(records) - 1) // 2] if self.finals else records[0]


def best(records: Iterable[Record], workload: str, target: str) -> Record | None:
    """The winner of a task among its correct records, or None.

    Where leaders have been measured again side by side (stage FINAL), these measurements decide among
    them: the fastest of many single trials is partly luck. A candidate without a final wins only when
    its trial is faster than every trial of a confirmed candidate, that is, when it was found
    after the finals. Ties go to the smaller row id.

    Parameters
    ----------
    records : iterable of Record
    workload : str
        Workload key.
    target : str
        Target fingerprint. Records of other targets never match.
    """
    rows = _rows(r for r in records if r.task_key == (workload, target))
    if not rows:
        return None
    leader = min(rows, key=lambda i: (rows[i].trial_value, not rows[i].finals, i))
    finals = [i for i, row in rows.items() if row.finals]
    if rows[leader].finals:
        leader = min(finals, key=lambda i: (rows[i].final_value, i))
    return rows[leader].representative()


def confirmed(records: Iterable[Record], workload: str, target: str) -> frozenset[str]:
    """Row ids of the candidates of a task that have a correct FINAL record."""
    return frozenset(
        r.row_id
        for r in records
        if r.task_key == (workload, target) and r.ok and r.stage is Stage.FINAL
    )


def nearest(records: Iterable[Record], anchor: str, target: str) -> tuple[Record, ...]:
    """The best record of each workload that shares an anchor on a target, fastest first.

    They differ from what was asked for in prologue or epilogue. Measure before you believe.
    """
    matching = [r for r in records if r.anchor == anchor and r.target == target and r.ok]
    found = (best(matching, w, target) for w in sorted({r.workload for r in matching}))
    return tuple(sorted((r for r in found if r is not None), key=_order))


def _rows(records: Iterable[Record]) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for r in records:
        if r.ok:
            row = rows.setdefault(r.row_id, _Row([], []))
            (row.finals if r.stage is Stage.FINAL else row.trials).append(r)
    return rows


def _order(r: Record) -> tuple[float, str, str, float, int]:
    return r.value, r.workload, r.row_id, r.provenance.time, r.trial

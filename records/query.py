"""What a log knows about a task."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tilewright.records.record import Record, Stage

__all__ = ["Measured", "best", "confirmed", "in_order", "nearest", "shape_of", "similar", "winner"]


class Measured(Protocol):
    """What decides between the records of one task: a `Record`, or what an index keeps of one."""

    @property
    def workload(self) -> str: ...
    @property
    def row_id(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def value(self) -> float: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def time(self) -> float: ...
    @property
    def trial(self) -> int: ...


M = TypeVar("M", bound=Measured)


@dataclass(slots=True)
class _Row(Generic[M]):
    """All correct measurements of one candidate."""

    trials: list[M]
    finals: list[M]

    @property
    def trial_value(self) -> float:
        return min((r.value for r in self.trials or self.finals), default=float("inf"))

    @property
    def final_value(self) -> float:
        return statistics.median(r.value for r in self.finals)

    def representative(self) -> M:
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
    return winner(r for r in records if r.task_key == (workload, target))


def winner(records: Iterable[M]) -> M | None:
    """The winner among the records of one task: see `best`."""
    rows = _rows(records)
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
    return in_order(r for r in found if r is not None)


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """The fastest first, ties in an order that does not depend on the log's."""
    return tuple(sorted(records, key=_order))


def similar(found: Iterable[Record], name: str, n: int = 3) -> tuple[Record, ...]:
    """Of best records, those of the same kind of workload with another shape, closest shape first.

    Kind and shape are read from the readable name: `matmul[8x8x8,f32]+relu` is a matmul of 8, 8 and 8. The
    distance is the sum of the logarithms of the ratios between dimensions. Nothing says that such a schedule is
    legal or fast elsewhere: replay it and bound it before you believe.
    """
    kind, dims = shape_of(name)
    ranked: list[tuple[float, str, Record]] = []
    for r in found:
        other, sizes = shape_of(r.name)
        if r.ok and other == kind and len(sizes) == len(dims) and r.name != name:
            gap = sum(abs(math.log(max(a, 1) / max(b, 1))) for a, b in zip(dims, sizes))
            ranked.append((gap, r.workload, r))
    return tuple(r for _, _, r in sorted(ranked, key=lambda k: k[:2])[:n])


def shape_of(name: str) -> tuple[str, tuple[int, ...]]:
    """Kind and dimensions in a workload's readable name.

    Examples
    --------
    >>> shape_of("conv[1x3x8x8,4x3x3x3,s2x2]+relu")
    ('conv', (1, 3, 8, 8, 4, 3, 3, 3, 2, 2))
    """
    kind, _, rest = name.partition("[")
    inside = rest.partition("]")[0]
    parts = [p for p in inside.split(",") if re.fullmatch(r"[a-z]*\d{1,9}(x\d{1,9})*", p)]
    numbers = [p for p in parts if not re.fullmatch(r"[a-z]+\d+", p)]
    return kind, tuple(int(n) for p in numbers for n in re.findall(r"\d+", p))


def _rows(records: Iterable[M]) -> dict[str, _Row[M]]:
    rows: dict[str, _Row[M]] = {}
    for r in records:
        if r.ok:
            row = rows.setdefault(r.row_id, _Row([], []))
            (row.finals if r.stage is Stage.FINAL else row.trials).append(r)
    return rows


def _order(r: Measured) -> tuple[float, str, str, float, int]:
    return r.value, r.workload, r.row_id, r.time, r.trial

"""What differs between two logs, and what a log cost: tables with a row for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tilewright.records.record import Record, Stage
from tilewright.records.store import RecordStore

__all__ = ["Change", "TaskStats", "diff", "stats"]

Verdict: TypeAlias = Literal["better", "worse", "same", "new", "missing"]


@dataclass(frozen=True, slots=True)
class Change:
    """How the winner of a task differs between two logs.

    Parameters
    ----------
    before, after : float or None
        Seconds of the winners; None without a correct record.
    """

    name: str
    workload: str
    target: str
    before: float | None
    after: float | None
    verdict: Verdict

    @property
    def speedup(self) -> float | None:
        """Seconds before over seconds after."""
        return None if self.before is None or self.after is None else self.before / self.after


@dataclass(frozen=True, slots=True)
class TaskStats:
    """What was spent on a task, and what came of it.

    Parameters
    ----------
    failures : tuple of (str, int)
        Outcomes other than OK, most frequent first.
    best, default : float or None
        Seconds of the winner and of the default schedule.
    build_s, run_s : float
        Time spent on building and on running candidates.
    """

    name: str
    workload: str
    target: str
    n_trials: int
    n_finals: int
    failures: tuple[tuple[str, int], ...]
    best: float | None
    default: float | None
    build_s: float
    run_s: float

    @property
    def n_failed(self) -> int:
        """How many measurements failed."""
        return sum(n for _, n in self.failures)


def diff(before: RecordStore, after: RecordStore, *, tolerance: float = 0.02) -> list[Change]:
    """Compare the winners of every task of two logs.

    Parameters
    ----------
    tolerance : float
        Relative difference up to which two times count as the same.

    Returns
    -------
    list of Change
        Tasks in order of first appearance, of the first log, then of the second. A task that has a correct
        record in one log only is new or missing; one that has none in both is left out.
    """
    names = {r.task_key: r.name for log in (after, before) for r in log}
    keys = dict.fromkeys(r.task_key for log in (before, after) for r in log)
    out = []
    for key in keys:
        a, b = before.best(*key), after.best(*key)
        old, new = a.value if a else None, b.value if b else None
        if old is not None or new is not None:
            out.append(Change(names[key], *key, old, new, _verdict(old, new, tolerance)))
    return out


def _verdict(old: float | None, new: float | None, tolerance: float) -> Verdict:
    if old is None:
        return "new"
    if new is None:
        return "missing"
    if new < old / (1 + tolerance):
        return "better"
    return "worse" if new > old * (1 + tolerance) else "same"


def stats(log: RecordStore) -> list[TaskStats]:
    """What a log spent on each of its tasks, in order of first appearance."""
    return list(_stats(log))


def _stats(log: RecordStore) -> Iterator[TaskStats]:
    for key in dict.fromkeys(r.task_key for r in log):
        found = log.of_task(*key)
        best = log.best(*key)
        failures = Counter(r.status for r in found if not r.ok)
        default = min((r.value for r in found if r.default and r.ok), default=None)
        yield TaskStats(
            found[0].name, *key, _count(found, Stage.TRIAL), _count(found, Stage.FINAL), tuple(failures.most_common()),
            best.value if best else None, default, sum(r.build_s for r in found), sum(r.run_s for r in found),
        )  # fmt: skip


def _count(found: tuple[Record, ...], stage: Stage) -> int:
    return sum(r.stage is stage for r in found)

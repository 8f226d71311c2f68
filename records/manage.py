"""Care for logs: merge, dedup, distill, validate. Each returns a report of what it did."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import RecordError, TilewrightError
from tilewright.records import query
from tilewright.records.record import Record
from tilewright.records.store import Problem, RecordStore, write_new

__all__ = [
    "DedupReport", "DistillReport", "MergeReport", "ValidateReport", "dedup", "distill", "merge", "validate",
]  # fmt: skip

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What `merge` did."""

    n_read: int
    n_added: int
    n_present: int  # already in the destination, or in an earlier source
    problems: tuple[tuple[str, Problem], ...]  # path and skipped line

    def __str__(self) -> str:
        return (
            f"merge: {self.n_added} of {self.n_read} records added, {self.n_present} were there, "
            f"{len(self.problems)} lines skipped"
        )


@dataclass(frozen=True, slots=True)
class DedupReport:
    """What `dedup` did."""

    n_read: int
    n_kept: int
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"dedup: {self.n_kept} of {self.n_read} records kept, {len(self.problems)} lines skipped"


@dataclass(frozen=True, slots=True)
class DistillReport:
    """What `distill` did."""

    n_read: int
    n_kept: int
    n_tasks: int
    untuned: tuple[str, ...]  # readable names of tasks without one correct record
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        text = f"distill: {self.n_kept} of {self.n_read} records kept for {self.n_tasks} tasks"
        return text + (f"; none is correct for {', '.join(self.untuned)}" if self.untuned else "")


@dataclass(frozen=True, slots=True)
class ValidateReport:
    """What `validate` found."""

    n_records: int
    n_tasks: int
    outcomes: tuple[tuple[str, int], ...]  # status name and count, most frequent first
    problems: tuple[Problem, ...]
    unreadable_traces: tuple[tuple[str, str], ...]  # row id and reason

    @property
    def ok(self) -> bool:
        """Whether every line is a sound record."""
        return not self.problems and not self.unreadable_traces

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {s}" for s, n in self.outcomes) or "empty"
        return (
            f"validate: {self.n_records} records of {self.n_tasks} tasks ({counts}); "
            f"{len(self.problems)} lines skipped, {len(self.unreadable_traces)} traces unreadable"
        )


def merge(sources: Sequence[PathLike], destination: PathLike) -> MergeReport:
    """Append to `destination` the records of the sources that it lacks.

    The destination may exist, and may be in use by a running study.
    """
    store = RecordStore(destination)
    present = {r.checksum for r in store}
    n_read = n_added = 0
    problems: list[tuple[str, Problem]] = []
    for source in sources:
        log = _open(source)
        problems.extend((str(source), p) for p in log.problems)
        new = [r for r in log if r.checksum not in present]
        store.append(*new)
        present.update(r.checksum for r in new)
        n_read, n_added = n_read + len(log), n_added + len(new)
    store.flush()
    return MergeReport(n_read, n_added, n_read - n_added, tuple(problems))


def dedup(source: PathLike, destination: PathLike) -> DedupReport:
    """Write a new log with one record for each candidate, stage and task.

    Of several, correct ones go before failures, then the fastest stays. File order is kept.
    """
    log = _open(source)
    keep: dict[tuple[object, ...], Record] = {}
    for r in log:
        key = (r.task_key, r.row_id, r.stage)
        if key not in keep or r.value < keep[key].value:
            keep[key] = r
    kept = {id(r) for r in keep.values()}
    n = write_new(Path(destination), (r for r in log if id(r) in kept))
    return DedupReport(len(log), n, log.problems)


def distill(source: PathLike, destination: PathLike, *, keep_default: bool = True) -> DistillReport:
    """Write a new log with the winner of each task: what a build commits and replays.

    Parameters
    ----------
    source, destination : path
    keep_default : bool
        Also keep the default schedule's record, so that the speed-up stays known.
    """
    log = _open(source)
    tasks = sorted({r.task_key for r in log})
    kept: list[Record] = []
    untuned: list[str] = []
    for workload, target in tasks:
        records = log.of_task(workload, target)
        winner = query.best(records, workload, target)
        if winner is None:
            untuned.append(records[0].name)
            continue
        kept.append(winner)
        defaults = [r for r in records if r.default and r.ok and r.row_id != winner.row_id]
        default = query.best(defaults, workload, target)
        if keep_default and default is not None and default.value > winner.value:
            kept.append(default)
    n = write_new(Path(destination), kept)
    return DistillReport(len(log), n, len(tasks), tuple(untuned), log.problems)


def validate(source: PathLike, *, traces: bool = True) -> ValidateReport:
    """Check every line and, with `traces`, that every correct record's trace can be read."""
    log = _open(source)
    unreadable: list[tuple[str, str]] = []
    if traces:
        for r in log:
            if r.ok:
                try:
                    r.trace  # noqa: B018
                except (TilewrightError, KeyError, TypeError, ValueError) as e:
                    unreadable.append((r.row_id, str(e)))
    outcomes = tuple(Counter(r.status for r in log).most_common())
    n_tasks = len({r.task_key for r in log})
    return ValidateReport(len(log), n_tasks, outcomes, log.problems, tuple(unreadable))


def _open(path: PathLike) -> RecordStore:
    if not Path(path).is_file():
        raise RecordError(f"open({path}): no such log")
    return RecordStore(path)

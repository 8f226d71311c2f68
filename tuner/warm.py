"""Warm starts: schedules that won for other shapes come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from tilewright.records.query import best
from tilewright.records.record import Record
from tilewright.schedule.space import Rows, Space
from tilewright.tuner.searcher import Score, Searcher, Seen, distinct

__all__ = ["WarmStart", "transfer"]


class WarmStart(Searcher):
    """Proposes what won elsewhere before it lets another searcher go on.

    Parameters
    ----------
    search : Searcher
        Goes on when the transferred rows are used up.
    records : iterable of Record
        A log, or several. Records of the task itself are no news and are left out.
    n_rows : int
        At most so many rows are transferred.
    """

    def __init__(
        self, search: Searcher, records: Iterable[Record], *, n_rows: int = 8, seed: int = 0
    ) -> None:
        super().__init__(seed=seed)
        self.search = search
        self.records = tuple(records)
        self.n_rows = n_rows
        self._transferred: WeakKeyDictionary[Seen, Rows] = WeakKeyDictionary()

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        width = 1 + seen.space.n_columns
        rows = np.empty((0, width), dtype=np.int32)
        if self.records:
            if seen not in self._transferred:
                self._transferred[seen] = transfer(seen.space, self.records, self.n_rows)
            rows = self._transferred[seen]
            rows = rows[seen.unknown(rows)][:n]
        if len(rows) < n:
            more = self.search.ask(seen, n, score, rng)
            rows = distinct(np.concatenate([rows, more]))[:n]
        return rows


def transfer(space: Space, records: Sequence[Record], n: int) -> Rows:
    """Rows of a space that the winners of other workloads on the same target suggest.

    A winner fits when the space has a sketch of its name with the same knobs. Each knob takes the
    value that is nearest on a logarithmic scale. First come those of the same anchor (which differ
    in their epilogue only), then those that change least: a shape that is near in the table's terms.

    Returns
    -------
    (at most n, 1 + n_columns) int32, distinct and valid
    """
    task = space.task
    own, target = task.workload.key, task.target.fingerprint
    others = [r for r in records if r.ok and r.target == target and r.workload != own]
    names = {s.name: k for k, s in enumerate(space.sketches)}
    found: list[tuple[bool, float, int, Rows]] = []
    by_workload: dict[str, list[Record]] = {}
    for r in others:
        by_workload.setdefault(r.workload, []).append(r)
    for workload in sorted(by_workload):
        winner = best(by_workload[workload], workload, target)
        sketch = names.get(winner.row_id.partition("|")[0]) if winner else None
        fitted = _fit(space, sketch, winner) if winner and sketch is not None else None
        if fitted is not None and space.valid(fitted[1][None])[0]:
            other = winner is not None and winner.anchor != task.workload.anchor_key
            found.append((other, fitted[0], len(found), fitted[1]))
    rows = [f[3] for f in sorted(found, key=lambda f: f[:3])]
    width = 1 + space.n_columns
    return distinct(np.array(rows, dtype=np.int32).reshape(-1, width))[:n]


def _fit(space: Space, sketch: int, r: Record) -> tuple[float, Rows] | None:
    """How much a record's knobs must change (in octaves), and the row; None for other knobs."""
    columns = space.sketches[sketch].columns
    knobs = dict(r.knobs)
    if {c.knob.name for c in columns} != set(knobs):
        return None
    row = np.zeros(1 + space.n_columns, dtype=np.int32)
    row[0] = sketch
    change = 0.0
    for k, c in enumerate(columns):
        gap = np.abs(np.log2(c.array) - np.log2(float(knobs[c.knob.name])))
        row[1 + k] = int(gap.argmin())
        change += float(gap.min())
    return change, row

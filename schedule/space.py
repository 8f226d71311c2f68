"""A schedule space: the sketches of a task, seen as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.schedule.features import FEATURE_NAMES, FEATURE_SCHEMA
from tilewright.schedule.program import Program
from tilewright.schedule.rules.choose import Rule, default_rules
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.sketch import Sketch, sketches_of
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Rows", "Space"]

Rows: TypeAlias = NDArray[np.int32]


class Space:
    """All candidates of a task.

    Parameters
    ----------
    task : Task
    rules : sequence of callables, optional
        Functions on a `Schedule` with knobs; by default the built-in ones. A researcher's own
        template is such a function.

    Attributes
    ----------
    sketches : tuple of Sketch
        Sketch 0 is the default schedule.
    refused : dict
        Rule branches that gave no sketch, and why.

    Notes
    -----
    Searchers see a candidate as a *row*: int32, column 0 the sketch, the others positions in the
    knobs' value lists. `sample`, `to_frame` and `from_frame` speak pandas.
    """

    feature_schema = FEATURE_SCHEMA
    feature_names = FEATURE_NAMES
    n_features = len(FEATURE_NAMES)

    def __init__(self, task: Task, rules: Sequence[Rule] | None = None) -> None:
        self.task = task
        self.refused: dict[str, str] = {}
        builtin = default_rules(task.workload)
        found: list[Sketch] = []
        for rule in (builtin[0], *(builtin[1:] if rules is None else rules)):
            found.extend(sketches_of(task, rule, self.refused))
        if not found:
            raise ScheduleError(f"Space({task.name}): no rule applies: {self.refused}")
        self.sketches = tuple(found)
        self.n_columns = max(len(s.columns) for s in found)
        self.cardinality: NDArray[np.int32] = np.ones((len(found), self.n_columns), dtype=np.int32)
        longest = max((len(c.values) for s in found for c in s.columns), default=1)
        self._values = np.ones((len(found), self.n_columns, longest), dtype=np.float64)
        for n, s in enumerate(found):
            for k, c in enumerate(s.columns):
                self.cardinality[n, k] = len(c.values)
                self._values[n, k, : len(c.values)] = c.array

    # ------------------------------------------------------------- rows

    def size(self) -> int:
        """Number of candidates, before constraints."""
        return sum(s.size for s in self.sketches)

    def _groups(self, rows: Rows) -> list[tuple[int, NDArray[np.intp]]]:
        ids = rows[:, 0]
        return [(int(n), np.flatnonzero(ids == n)) for n in np.unique(ids)]

    def values(self, rows: Rows, sketch: int) -> NDArray[np.float64]:
        """Knob values of rows that all belong to one sketch, shape (n, n_knobs)."""
        k = len(self.sketches[sketch].columns)
        picks = rows[:, 1 : 1 + k]
        return np.asarray(self._values[sketch, np.arange(k)[None, :], picks])

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are candidates: known positions, all constraints met."""
        rows = np.atleast_2d(np.asarray(rows, dtype=np.int32))
        good = (rows[:, 0] >= 0) & (rows[:, 0] < len(self.sketches))
        safe = np.where(good, rows[:, 0], 0)
        good &= ((rows[:, 1:] >= 0) & (rows[:, 1:] < self.cardinality[safe])).all(axis=1)
        known = np.flatnonzero(good)
        for n, where in self._groups(rows[known]):
            index = known[where]
            good[index] = self.sketches[n].valid(self.values(rows[index], n))
        return good

    def features(self, rows: Rows | pd.DataFrame) -> NDArray[np.float32]:
        """Features for cost models, shape (n, n_features)."""
        rows = self._rows(rows)
        out = np.zeros((len(rows), self.n_features), dtype=np.float32)
        for n, where in self._groups(rows):
            out[where] = self.sketches[n].features(self.values(rows[where], n))
        return out

    def analytic(self, rows: Rows | pd.DataFrame) -> NDArray[np.float64]:
        """Seconds that the draft model predicts, shape (n,)."""
        rows = self._rows(rows)
        out = np.zeros(len(rows))
        for n, where in self._groups(rows):
            out[where] = self.sketches[n].seconds(self.values(rows[where], n))
        return out

    def _rows(self, rows: Rows | pd.DataFrame) -> Rows:
        if hasattr(rows, "columns"):
            return self.from_frame(rows)
        return np.atleast_2d(np.asarray(rows, dtype=np.int32))

    def default_row(self) -> Rows:
        """Candidate zero: the default schedule, shape (1, 1 + n_columns)."""
        return np.zeros((1, 1 + self.n_columns), dtype=np.int32)

    def sample_rows(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw distinct valid rows, spread evenly over sketches; fewer when the space is small."""
        found = np.empty((0, 1 + self.n_columns), dtype=np.int32)
        weights = np.array([min(s.size, 1 << 40) for s in self.sketches], dtype=np.float64) ** 0.25
        weights /= weights.sum()
        for _ in range(12):
            need = n - len(found)
            if need <= 0:
                break
            m = max(64, 2 * need)
            draw = np.zeros((m, 1 + self.n_columns), dtype=np.int32)
            draw[:, 0] = rng.choice(len(self.sketches), size=m, p=weights)
            draw[:, 1:] = rng.integers(0, self.cardinality[draw[:, 0]])
            found = unique_rows(np.concatenate([found, draw[self.valid(draw)]]))
        return found[:n]

    def enumerate_rows(self, limit: int) -> Rows | None:
        """All valid rows, or None when the space has more than `limit`."""
        if self.size() > limit:
            return None
        parts = []
        for n in range(len(self.sketches)):
            sizes = tuple(int(c) for c in self.cardinality[n])
            grids = np.indices(sizes).reshape(self.n_columns, int(np.prod(sizes))).T
            parts.append(
                np.concatenate([np.full((len(grids), 1), n), grids], axis=1).astype(np.int32)
            )
        rows = np.concatenate(parts)
        return rows[self.valid(rows)]

    # ------------------------------------------------------- candidates

    def knobs(self, row: Rows | Sequence[int]) -> dict[str, int]:
        """The knob values of one row."""
        one = np.asarray(row, dtype=np.int32).reshape(-1)
        sketch = self.sketches[int(one[0])]
        return {c.knob.name: c.values[int(one[1 + k])] for k, c in enumerate(sketch.columns)}

    def row_ids(self, rows: Rows) -> list[str]:
        """Names of candidates, the same in every process: what resuming compares."""
        rows = np.atleast_2d(rows)
        out = []
        for r in rows:
            knobs = self.knobs(r)
            out.append(
                f"{self.sketches[int(r[0])].name}|{','.join(f'{k}={v}' for k, v in knobs.items())}"
            )
        return out

    def trace(self, row: Rows | Any) -> Trace:
        """The concrete trace of one row (or DataFrame row)."""
        one = self._one(row)
        sketch = self.sketches[int(one[0])]
        return sketch.concrete([c.values[int(one[1 + k])] for k, c in enumerate(sketch.columns)])

    def program(self, row: Rows | Any) -> Program:
        """The concrete program of one row (or DataFrame row)."""
        schedule = Schedule(self.task)
        schedule.apply(self.trace(row))
        return schedule.program

    def _one(self, row: Any) -> Rows:
        if hasattr(row, "to_frame") and not isinstance(row, np.ndarray):
            return np.asarray(self.from_frame(row.to_frame().T)[0])
        return np.asarray(row, dtype=np.int32).reshape(-1)

    # ----------------------------------------------------------- pandas

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """Draw candidates as a table: one row each, knob values as columns."""
        return self.to_frame(self.sample_rows(n, np.random.default_rng(seed)))

    def to_frame(self, rows: Rows) -> pd.DataFrame:
        """Rows as a table; knobs that a sketch lacks are missing values."""
        import pandas as pd

        rows = np.atleast_2d(rows)
        names = list(dict.fromkeys(c.knob.name for s in self.sketches for c in s.columns))
        records = [{"sketch": self.sketches[int(r[0])].name, **self.knobs(r)} for r in rows]
        frame = pd.DataFrame(records, columns=["sketch", *names])
        return frame.astype({n: "Int64" for n in names})

    def from_frame(self, frame: pd.DataFrame) -> Rows:
        """The inverse of `to_frame`.

        Raises
        ------
        ScheduleError
            If a sketch or a knob value is not one of this space.
        """
        ids = {s.name: n for n, s in enumerate(self.sketches)}
        out = np.zeros((len(frame), 1 + self.n_columns), dtype=np.int32)
        for position, record in enumerate(frame.to_dict("records")):
            n = ids.get(record["sketch"])
            if n is None:
                raise ScheduleError(
                    f"from_frame: no sketch {record['sketch']!r} in the space of {self.task.name}"
                )
            out[position, 0] = n
            for k, c in enumerate(self.sketches[n].columns):
                value = record[c.knob.name]
                if value not in c.values:
                    raise ScheduleError(
                        f"from_frame: {c.knob.name}={value} is not one of {list(c.values)}"
                    )
                out[position, 1 + k] = c.values.index(value)
        return out

    def __repr__(self) -> str:
        return f"Space({self.task.name}: {len(self.sketches)} sketches, {self.size():,} candidates)"

    def describe(self) -> pd.DataFrame:
        """One row a sketch: its name, knobs and size."""
        import pandas as pd

        return pd.DataFrame(
            {
                "sketch": [s.name for s in self.sketches],
                "knobs": [", ".join(c.knob.name for c in s.columns) for s in self.sketches],
                "size": [s.size for s in self.sketches],
            }
        )

    def _repr_html_(self) -> str:
        table: str = self.describe().to_html(index=False)
        return f"<p>{self!r}</p>{table}"


def unique_rows(rows: Rows) -> Rows:
    """Drop repeated rows, keeping the first of each."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]

"""The contract of searchers: ask for candidates, tell what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.space import Rows, Space

__all__ = ["SMALL_SPACE", "Score", "Searcher", "Seen"]

SMALL_SPACE = 20_000  # candidates; up to here listing all of them costs milliseconds

Score: TypeAlias = "Callable[[Rows], NDArray[np.float64]]"  # higher is better


class Seen:
    """Which rows have been proposed, and what is known of them."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._known: set[bytes] = set()
        self.rows: list[Rows] = []
        self.values: list[float] = []

    def add(self, rows: Rows) -> None:
        """Mark rows as proposed."""
        self._known.update(r.tobytes() for r in np.ascontiguousarray(rows, np.int32))

    def unknown(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows have not been proposed."""
        return np.array(
            [r.tobytes() not in self._known for r in np.ascontiguousarray(rows, np.int32)],
            dtype=bool,
        )

    def record(self, row: Rows, value: float) -> None:
        """Keep a measurement; the value is infinite for a failure."""
        self.add(row.reshape(1, -1))
        self.rows.append(row.reshape(-1))
        self.values.append(value)

    def best(self, n: int) -> Rows:
        """The n fastest rows measured so far."""
        order = [k for k in np.argsort(self.values, kind="stable") if np.isfinite(self.values[k])][
            :n
        ]
        width = 1 + self.space.n_columns
        return np.array([self.rows[k] for k in order], dtype=np.int32).reshape(-1, width)


class Searcher(ABC):
    """Proposes candidates of one space.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @abstractmethod
    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        """Up to n rows that `seen` does not know, best first; fewer only when the space runs out.

        `score` ranks rows, higher is better; None asks for a search without a model. A study passes
        a `Guide`, which also knows features and uncertainty.

        What is returned depends on the arguments alone, so that the same seed and the same results
        give the same proposals.
        """


def fill_random(seen: Seen, n: int, rng: np.random.Generator) -> Rows:
    """Random unknown rows; fewer than n only when the space runs out."""
    out = np.empty((0, 1 + seen.space.n_columns), dtype=np.int32)
    for _ in range(4):
        if len(out) >= n:
            break
        rows = seen.space.sample_rows(max(32, 2 * n), rng)
        out = distinct(np.concatenate([out, rows[seen.unknown(rows)]]))
    if len(out) < n and (everything := seen.space.enumerate_rows(SMALL_SPACE)) is not None:
        rest = everything[seen.unknown(everything)]  # draws rarely hit the last few
        out = distinct(np.concatenate([out, rest[rng.permutation(len(rest))]]))
    return out[:n]


def part_of(n: int, share: float, rng: np.random.Generator) -> int:
    """A share of n as a whole number, right on average: small batches get theirs now and then."""
    return int(n * share + rng.random())


def distinct(rows: Rows) -> Rows:
    """Rows without repetitions, in order."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]

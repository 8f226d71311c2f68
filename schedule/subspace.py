"""A part of a space: some rows of the table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.space import Rows, Space, unique_rows

__all__ = ["SubSpace"]


class SubSpace(Space):
    """A space of which only given rows are candidates.

    Parameters
    ----------
    space : Space
    rows : (n, 1 + n_columns) int32
        The default row is always among the candidates.
    """

    def __init__(self, space: Space, rows: Rows) -> None:
        self.__dict__.update(space.__dict__)
        kept = np.concatenate([space.default_row(), np.asarray(rows, dtype=np.int32)])
        self._kept = unique_rows(kept)
        self._known = {r.tobytes() for r in np.ascontiguousarray(self._kept)}

    def size(self) -> int:
        """Number of candidates."""
        return len(self._kept)

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are candidates."""
        rows = np.ascontiguousarray(np.atleast_2d(rows), dtype=np.int32)
        return np.array([r.tobytes() in self._known for r in rows], dtype=bool)

    def sample_rows(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw distinct candidates, all of them when n is large."""
        return self._kept[rng.permutation(len(self._kept))[:n]]

    def enumerate_rows(self, limit: int) -> Rows | None:
        """All candidates, or None when there are more than `limit`."""
        return self._kept if len(self._kept) <= limit else None

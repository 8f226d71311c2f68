"""Coordinate descent from the incumbent."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.space import Rows
from tilewright.tuner.batch import batch_of
from tilewright.tuner.moves import candidates, line, ranked
from tilewright.tuner.searcher import Score, Searcher, Seen, distinct, fill_random

__all__ = ["CoordinateDescent"]


class CoordinateDescent(Searcher):
    """Measures the neighbours of the fastest row, one knob apart, then further along each knob.

    When a line is used up it goes on with the next fastest row. A model only orders neighbours (and
    picks the start); without one their order is random.

    Parameters
    ----------
    n_starts : int
        How many of the fastest rows are descended from.
    start_population : int
        Rows that are scored for the start, when nothing has been measured.

    References
    ----------
    Canesche et al., "The Droplet Search Algorithm for Kernel Scheduling", 2024.
    """

    def __init__(self, *, n_starts: int = 4, start_population: int = 4096, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.n_starts = n_starts
        self.start_population = start_population

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        found = np.empty((0, 1 + seen.space.n_columns), dtype=np.int32)
        starts = seen.best(self.n_starts)
        if not len(starts) and score is not None:
            rows = candidates(seen, self.start_population, rng)
            found = batch_of(ranked(rows, score), n, score)
        for row in starts:
            for distance in (1, 2, 4, 8):
                if len(found) >= n:
                    return found[:n]
                near = line(seen.space, row, distance)
                near = near[seen.unknown(near)]
                near = near[rng.permutation(len(near))] if score is None else ranked(near, score)
                found = distinct(np.concatenate([found, near]))
        if len(found) < n:
            more = fill_random(seen, n + len(found), rng)
            found = distinct(np.concatenate([found, more]))
        return found[:n]

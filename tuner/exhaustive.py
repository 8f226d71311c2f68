"""Score everything: what array operations make affordable."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.space import Rows
from tilewright.tuner.batch import batch_of
from tilewright.tuner.moves import candidates, ranked
from tilewright.tuner.searcher import Score, Searcher, Seen, distinct, fill_random, part_of

__all__ = ["Exhaustive"]


class Exhaustive(Searcher):
    """Every candidate of a space is scored; of a larger one a big random draw.

    Parameters
    ----------
    limit : int
        Spaces up to this size are scored whole.
    population : int
        Rows that are drawn from larger spaces.
    random_share, uncertain_share : float
        Parts of each proposal that are drawn blindly, and where the model is least sure.
    """

    def __init__(
        self,
        *,
        limit: int = 200_000,
        population: int = 16384,
        random_share: float = 0.1,
        uncertain_share: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        self.limit = limit
        self.population = population
        self.random_share = random_share
        self.uncertain_share = uncertain_share

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        if score is None:
            return fill_random(seen, n, rng)
        rows = candidates(seen, self.population, rng, exhaustive=self.limit)
        n_guided = n - part_of(n, self.random_share, rng)
        found = batch_of(ranked(rows, score), n_guided, score, uncertain_share=self.uncertain_share)
        if len(found) == n:
            return found
        return distinct(np.concatenate([found, fill_random(seen, n + len(found), rng)]))[:n]

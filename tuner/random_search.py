"""The baseline searcher."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.space import Rows
from tilewright.tuner.searcher import Score, Searcher, Seen, fill_random

__all__ = ["RandomSearch"]


class RandomSearch(Searcher):
    """Unknown rows drawn at random, whatever the model says."""

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        return fill_random(seen, n, rng)

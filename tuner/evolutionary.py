"""Evolution over the table: whole populations as matrices."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.space import Rows, Space
from tilewright.tuner.batch import batch_of
from tilewright.tuner.searcher import (
    SMALL_SPACE,
    Score,
    Searcher,
    Seen,
    distinct,
    fill_random,
    part_of,
)

__all__ = ["Evolutionary"]


class Evolutionary(Searcher):
    """Mutation and crossover guided by a model; the default searcher.

    Parameters
    ----------
    population : int
        Rows of a generation.
    generations : int
    random_share : float
        Part of each proposal drawn blindly, so that the model also learns where it is wrong.
    uncertain_share : float
        Part of the rest that goes where the model is least sure, if it knows.
    exhaustive : int
        Spaces up to this size are scored whole.
    """

    def __init__(
        self,
        *,
        population: int = 2048,
        generations: int = 4,
        random_share: float = 0.1,
        uncertain_share: float = 0.1,
        exhaustive: int = SMALL_SPACE,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        self.population = population
        self.generations = generations
        self.random_share = random_share
        self.uncertain_share = uncertain_share
        self.exhaustive = exhaustive

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        blind = n if score is None else part_of(n, self.random_share, rng)
        found = np.empty((0, 1 + seen.space.n_columns), dtype=np.int32)
        if score is not None and n > blind:
            pool = self._pool(seen, score, rng)
            found = batch_of(pool, n - blind, score, uncertain_share=self.uncertain_share)
        if len(found) < n:
            more = fill_random(seen, n, rng)  # as many as cover those that were found already
            found = distinct(np.concatenate([found, more]))[:n]
        return found

    def _pool(self, seen: Seen, score: Score, rng: np.random.Generator) -> Rows:
        """Unknown rows, best score first."""
        space = seen.space
        everything = space.enumerate_rows(self.exhaustive)
        if everything is not None:
            rows = everything[seen.unknown(everything)]
            return rows[np.argsort(-score(rows), kind="stable")[:256]] if len(rows) else rows
        parents = np.concatenate([seen.best(64), space.sample_rows(self.population, rng)])
        scores = score(parents)
        for _ in range(self.generations):
            order = np.argsort(-scores, kind="stable")[: self.population // 4]
            parents, scores = parents[order], scores[order]
            children = _children(space, parents, self.population, rng)
            children = children[space.valid(children)]
            if len(children):
                parents = np.concatenate([parents, children])
                scores = np.concatenate([scores, score(children)])
                keep = np.sort(np.unique(parents, axis=0, return_index=True)[1])
                parents, scores = parents[keep], scores[keep]
        order = np.argsort(-scores, kind="stable")[:512]
        rows = parents[order]
        return rows[seen.unknown(rows)]


def _children(space: Space, parents: Rows, n: int, rng: np.random.Generator) -> Rows:
    """Mutants of one or two columns, and crossings of parents of the same sketch."""
    count = len(parents)
    rank = np.minimum(
        rng.geometric(4.0 / max(8, count), size=n) - 1, count - 1
    )  # better ones more often
    out = parents[rank].copy()
    mates = parents[rng.integers(0, count, size=n)]
    crossing = (rng.random(n) < 0.3) & (mates[:, 0] == out[:, 0])
    take = (rng.random(out.shape) < 0.5) & crossing[:, None]
    out[take] = mates[take]
    limits = space.cardinality[out[:, 0]]
    for _ in range(2):
        column = rng.integers(0, space.n_columns, size=n)
        index = np.arange(n)
        limit = limits[index, column]
        value = out[index, 1 + column]
        near = np.clip(value + rng.choice([-2, -1, 1, 2], size=n), 0, limit - 1)
        far = (rng.random(n) * limit).astype(np.int32)
        change = rng.random(n) < 0.7
        out[index, 1 + column] = np.where(change, np.where(rng.random(n) < 0.6, near, far), value)
    jump = rng.random(n) < 0.05
    if jump.any():
        fresh = space.sample_rows(int(jump.sum()), rng)
        out[np.flatnonzero(jump)[: len(fresh)]] = fresh
    return out

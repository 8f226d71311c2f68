"""Bayesian optimisation: the next trials are those that may improve most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.space import Rows
from tilewright.tuner.guide import features_of, uncertainty_of
from tilewright.tuner.moves import candidates
from tilewright.tuner.searcher import SMALL_SPACE, Score, Searcher, Seen, distinct, fill_random

__all__ = ["Bayesian", "expected_improvement"]

SHORTLIST = 256


class Bayesian(Searcher):
    """Expected improvement over the incumbent, under a model that knows its uncertainty.

    Meant for `Ensemble`, `Forest` and `GaussianProcess`; with a model that claims to be sure it
    is greedy. A batch is chosen one by one: what lies near a chosen row counts less.

    Parameters
    ----------
    population : int
        Rows that are looked at in a large space.
    exhaustive : int
        Spaces up to this size are looked at whole.

    References
    ----------
    Jones et al., "Efficient Global Optimization of Expensive Black-Box Functions", 1998; Gonzalez et
    al., "Batch Bayesian Optimization via Local Penalization", 2016.
    """

    def __init__(
        self, *, population: int = 4096, exhaustive: int = SMALL_SPACE, seed: int = 0
    ) -> None:
        super().__init__(seed=seed)
        self.population = population
        self.exhaustive = exhaustive

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        if score is None:
            return fill_random(seen, n, rng)
        rows = candidates(seen, self.population, rng, exhaustive=self.exhaustive)
        found = rows[:0]
        if len(rows):
            mean, best = score(rows), seen.best(32)
            incumbent = float(score(best).max()) if len(best) else float(np.median(mean))
            gain = expected_improvement(mean, uncertainty_of(score, rows), incumbent)
            short = np.lexsort((-mean, -gain))[:SHORTLIST]
            found = rows[short][_spread(gain[short], features_of(score, rows[short]), n)]
        if len(found) < n:
            found = distinct(np.concatenate([found, fill_random(seen, n + len(found), rng)]))[:n]
        return found


def expected_improvement(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], incumbent: float
) -> NDArray[np.float64]:
    """E[max(0, score - incumbent)] for normal scores; deviation 0 gives the plain difference."""
    from scipy.special import ndtr

    ahead = mean - incumbent
    safe = np.where(deviation > 0, deviation, 1.0)
    z = ahead / safe
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.where(deviation > 0, ahead * ndtr(z) + safe * density, np.maximum(ahead, 0.0))


def _spread(gain: NDArray[np.float64], features: NDArray[Any], n: int) -> NDArray[np.intp]:
    """Positions of n rows, greedily by gain times the distance factor to those already chosen."""
    x = np.asarray(features, dtype=np.float64)
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    length = 0.5 * np.sqrt(x.shape[1])
    factor = np.ones(len(x))
    order = np.arange(len(x))
    chosen: list[int] = []
    for _ in range(min(n, len(x))):
        worth = np.where(np.isin(order, chosen), -np.inf, gain * factor)
        k = int(worth.argmax())
        chosen.append(k)
        distance = np.square(x - x[k]).sum(axis=1)
        factor = factor * (1 - np.exp(-distance / (2 * length**2)))
    return np.array(chosen, dtype=np.intp)

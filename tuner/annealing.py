"""Simulated annealing (Kirkpatrick et al., 1983) as AutoTVM uses it: chains over the model's scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.space import Rows
from tilewright.tuner.batch import batch_of
from tilewright.tuner.moves import ranked, step
from tilewright.tuner.searcher import Score, Searcher, Seen, distinct, fill_random, part_of

__all__ = ["Annealing"]


class Annealing(Searcher):
    """Many chains walk at once, each row of a matrix one; they accept losses while they are hot.

    Without a model the walk is over measurements: proposals are steps from measured rows, drawn by
    Boltzmann's law at a temperature that falls with the number of trials.

    Parameters
    ----------
    n_chains, n_steps : int
    temperature : float
        At the start, in standard deviations of the score; it falls to nothing linearly.
    random_share : float
        Part of each proposal drawn blindly.
    """

    def __init__(
        self,
        *,
        n_chains: int = 128,
        n_steps: int = 40,
        temperature: float = 1.0,
        random_share: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        self.n_chains = n_chains
        self.n_steps = n_steps
        self.temperature = temperature
        self.random_share = random_share

    def ask(self, seen: Seen, n: int, score: Score | None, rng: np.random.Generator) -> Rows:
        n_guided = n - part_of(n, self.random_share, rng)
        if score is None:
            found = self._measured_steps(seen, n_guided, rng)
        else:
            visited = self._walk(seen, score, rng)
            found = batch_of(ranked(visited, score), n_guided, score)
        if len(found) == n:
            return found
        return distinct(np.concatenate([found, fill_random(seen, n + len(found), rng)]))[:n]

    def _walk(self, seen: Seen, score: Score, rng: np.random.Generator) -> Rows:
        """Unknown rows that the chains came by."""
        space = seen.space
        state = np.concatenate(
            [seen.best(self.n_chains // 4), space.sample_rows(self.n_chains, rng)]
        )
        value = score(state)
        visited = [state]
        scale = max(float(value.std()), 1e-9)
        for k in range(self.n_steps):
            heat = scale * self.temperature * (1 - k / self.n_steps)
            new = step(space, state, rng)
            legal = space.valid(new)
            gain = np.full(len(new), -np.inf)
            if legal.any():
                gain[legal] = score(new[legal]) - value[legal]
            accept = rng.random(len(new)) < _boltzmann(gain, heat)
            state = np.where(accept[:, None], new, state)
            value = np.where(accept, value + np.where(accept, gain, 0.0), value)
            visited.append(new[legal])
        rows = distinct(np.concatenate(visited))
        return rows[seen.unknown(rows)]

    def _measured_steps(self, seen: Seen, n: int, rng: np.random.Generator) -> Rows:
        """Unknown steps from measured rows, the faster the likelier."""
        space, best = seen.space, seen.best(len(seen.values))
        empty = np.empty((0, 1 + space.n_columns), dtype=np.int32)
        if not len(best):
            return empty
        values = np.sort([v for v in seen.values if np.isfinite(v)])
        heat = self.temperature * 0.5 * 0.98 ** len(seen.values)
        weight = _boltzmann(-np.log(values / values[0]), heat)
        starts = best[rng.choice(len(best), size=8 * n, p=weight / weight.sum())]
        rows = step(space, starts, rng)
        rows = distinct(rows[space.valid(rows)])
        return rows[seen.unknown(rows)][:n] if len(rows) else empty


def _boltzmann(gain: NDArray[np.float64], heat: float) -> NDArray[np.float64]:
    """Probability that a change is accepted."""
    return np.asarray(np.exp(np.minimum(gain, 0.0) / max(heat, 1e-12)))

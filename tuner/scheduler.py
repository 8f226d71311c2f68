"""Which task gets the next trials."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tilewright.schedule.task import Task

__all__ = ["Progress", "lower_bound", "pick"]

HOPELESS = 32  # trials after which a task without one correct candidate is given up


def lower_bound(task: Task) -> float:
    """Seconds that no kernel of a task can beat: its arithmetic at the peak of all cores."""
    target = task.target
    return task.workload.flops / (target.peak_gflops * 1e9 * 1.6 * target.n_threads)


@dataclass
class Progress:
    """What the scheduler knows of one task."""

    weight: float
    bound_s: float
    best_s: float = math.inf
    rival_best_s: float = math.inf  # of the tasks that compute the same in another way
    n_trials: int = 0
    rounds_without_gain: int = 0
    exhausted: bool = False
    history: list[float] = field(default_factory=list)

    def update(self, best_s: float, n_trials: int) -> None:
        """Note the state after a round of trials."""
        if best_s < self.best_s * 0.99:
            self.rounds_without_gain = 0
        else:
            self.rounds_without_gain += 1
        self.best_s = min(self.best_s, best_s)
        self.n_trials = n_trials
        self.history.append(self.best_s)

    @property
    def gain_s(self) -> float:
        """Seconds of the whole model that another round may save: distance to the bound, discounted
        by how long nothing was gained."""
        if self.exhausted:
            return 0.0
        if not math.isfinite(self.best_s):
            return math.inf if self.n_trials < HOPELESS else 0.0
        room = max(0.0, min(self.best_s, self.rival_best_s) - self.bound_s)
        return (
            self.weight * room * 0.6**self.rounds_without_gain / math.sqrt(1 + self.n_trials / 16)
        )


def pick(progress: list[Progress]) -> int | None:
    """The task with the largest expected gain, or None when none is left."""
    gains = [p.gain_s for p in progress]
    best = max(range(len(gains)), key=lambda k: gains[k], default=None)
    return None if best is None or gains[best] <= 0.0 else best

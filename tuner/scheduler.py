"""Which task gets the next trials, and why a task gets no more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tilewright.schedule.task import Task

__all__ = ["Progress", "bounds", "lower_bound", "pick"]

HOPELESS = 32  # trials after which a task without one correct candidate is given up
NEAR = 1.03  # times the bound: measurements are no finer
FIRST_GAIN = 0.25  # share of the room above the bound that a task's first round is expected to gain
CLOCK = 1.6  # a core may run so much faster than the target's estimate says
MEMORY = 4.0  # and its memory may be so much faster than its estimate
MOVES = 6.0  # bytes that a core loads and stores in the time of one float32 operation at its peak


def bounds(task: Task) -> dict[str, float]:
    """Seconds that no kernel of a task can beat, by what forbids it (the roofline model).

    Its operations at the peak of all cores; each of its bytes through the cores' load and store
    ports; and what no cache can hold through the memory's.

    References
    ----------
    Williams, Waterman and Patterson, "Roofline", 2009.
    """
    target, w = task.target, task.workload
    peak = target.peak_gflops * 1e9 * CLOCK * target.n_threads
    uncached = max(0, w.n_bytes - 2 * target.l3_bytes)
    bandwidth = target.bandwidth_gbs * 1e9 * MEMORY * target.n_threads
    return {
        "arithmetic": w.flops / peak,
        "loads and stores": w.n_bytes / (MOVES * peak),
        "memory": uncached / bandwidth,
    }


def lower_bound(task: Task) -> float:
    """Seconds that no kernel of a task can beat."""
    return max(bounds(task).values())


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
    def at_bound(self) -> bool:
        """Whether nothing measurable is left to gain."""
        return self.best_s <= self.bound_s * NEAR

    @property
    def hopeless(self) -> bool:
        """Whether no candidate was ever correct."""
        return not math.isfinite(self.best_s) and self.n_trials >= HOPELESS

    @property
    def gain_s(self) -> float:
        """Seconds of the whole model that another round is expected to save: a share of the distance
        to the bound, discounted by how long nothing was gained."""
        if self.exhausted or self.hopeless or self.at_bound:
            return 0.0
        if not math.isfinite(self.best_s):
            return math.inf
        room = FIRST_GAIN * max(0.0, min(self.best_s, self.rival_best_s) - self.bound_s)
        return (
            self.weight * room * 0.6**self.rounds_without_gain / math.sqrt(1 + self.n_trials / 16)
        )

    def why_not(self, task: Task) -> str:
        """One sentence on why the task gets no more trials; empty where it may get some."""
        if self.exhausted:
            return f"{task.name}: all candidates of its space were tried"
        if self.hopeless:
            return f"{task.name}: none of {self.n_trials} candidates was correct, so it is given up"
        if self.at_bound:
            found = bounds(task)
            what = max(found, key=lambda k: found[k])
            return (
                f"{task.name}: {self.best_s * 1e6:.3g} us is within {NEAR - 1:.0%} of what its {what} "
                f"must take at least, {self.bound_s * 1e6:.3g} us"
            )
        return ""


def pick(progress: list[Progress], least_s: float = 0.0) -> int | None:
    """The task with the largest expected gain, or None when none is left that gains more than `least_s`."""
    gains = [p.gain_s for p in progress]
    best = max(range(len(gains)), key=lambda k: gains[k], default=None)
    return None if best is None or gains[best] <= least_s else best

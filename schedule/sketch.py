"""Sketches: schedules with holes, made by running rules on a schedule with knobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.schedule.arrays import compile_exprs
from tilewright.schedule.features import SketchFeatures
from tilewright.schedule.knob import Column, Knobs
from tilewright.schedule.program import Program
from tilewright.schedule.rules.choose import Rule, default_rules
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace
from tilewright.tensor.expr import Const, Expr, logical_and, substitute

__all__ = ["Sketch", "drafts", "sketches_of"]

POPULATION = 1500  # candidates of a sketch that are looked at for a draft
REFINED = 8  # of them are varied, one knob at a time
REFINEMENTS = 4  # times at most


@dataclass(frozen=True)
class Sketch:
    """A trace and program with knobs left open."""

    name: str
    columns: tuple[Column, ...]
    constraints: tuple[Expr, ...]
    trace: Trace
    program: Program
    derived: SketchFeatures

    @cached_property
    def _model(self) -> Any:
        """Features, then predicted seconds, as one array function of the knobs' values."""
        return compile_exprs(
            (*self.derived.exprs, self.derived.seconds), [c.knob for c in self.columns]
        )

    @cached_property
    def _check(self) -> Any:
        condition = logical_and(*self.constraints)
        return compile_exprs([condition], [c.knob for c in self.columns], dtype=np.bool_)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Features of candidates given by knob values, shape (n, n_knobs)."""
        return self._model(values)[:, :-1]  # type: ignore[no-any-return]

    def seconds(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The draft model's prediction."""
        return self._model(values)[:, -1].astype(np.float64)  # type: ignore[no-any-return]

    def valid(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which candidates meet all constraints."""
        return self._check(values)[:, 0]  # type: ignore[no-any-return]

    @cached_property
    def _draft(self) -> Any:
        """Predicted seconds alone: features are not wanted where nothing is learned."""
        return compile_exprs([self.derived.seconds], [c.knob for c in self.columns])

    def best_drafts(self, n: int, population: int) -> list[tuple[float, Trace]]:
        """The candidates that the draft model likes best, of all or of a fixed random population.

        Of those that it cannot tell apart (prefetches do not count, for example) it names one.

        Returns
        -------
        list
            At most n of (predicted seconds, concrete trace), best first.
        """
        sizes = [len(c.values) for c in self.columns]
        if self.size <= population:
            picks = np.indices(sizes).reshape(len(sizes), self.size).T
        else:
            rng = np.random.default_rng(0)
            picks = np.unique(rng.integers(0, sizes, (population, len(sizes))), axis=0)
            picks = self._refined(picks)
        seconds, values = self._rated(picks)
        best = np.unique(seconds, return_index=True)[1][:n]
        return [(float(seconds[r]), self.concrete(values[r])) for r in best if seconds[r] < np.inf]

    def _rated(self, picks: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predicted seconds (infinite where a constraint is not met) and knob values of candidates."""
        values = np.ones((len(picks), len(self.columns)))
        for k, c in enumerate(self.columns):
            values[:, k] = c.array[picks[:, k]]
        seconds = np.full(len(picks), np.inf)
        good = self.valid(values)
        seconds[good] = self._draft(values[good])[:, 0]
        return seconds, values

    def _refined(self, picks: NDArray[Any]) -> NDArray[Any]:
        """The best of some candidates and what changes of one knob at a time make of them."""
        seconds = self._rated(picks)[0]
        for _ in range(REFINEMENTS):
            keep = np.argsort(seconds, kind="stable")[:REFINED]
            picks, before = picks[keep], seconds[keep]
            near = [picks]
            for k, c in enumerate(self.columns):
                other = np.repeat(picks, len(c.values), axis=0)
                other[:, k] = np.tile(np.arange(len(c.values)), len(picks))
                near.append(other)
            picks = np.unique(np.concatenate(near), axis=0)
            seconds = self._rated(picks)[0]
            if seconds.min() >= before.min():
                break
        return picks

    def concrete(self, values: Sequence[float] | NDArray[np.float64]) -> Trace:
        """The trace with a value for each knob."""
        numbers: dict[Any, Expr] = {c.knob: Const(int(v)) for c, v in zip(self.columns, values)}
        return self.trace.concrete(numbers)

    @property
    def size(self) -> int:
        """Number of candidates, before constraints."""
        out = 1
        for c in self.columns:
            out *= len(c.values)
        return out


def sketches_of(
    task: Task, rule: Rule, refused: dict[str, str], *, flipped: int | None = None
) -> list[Sketch]:
    """Run a rule once for each answer to its structural choices.

    Parameters
    ----------
    refused : dict
        Gets the name of each branch that gives no sketch, and why.
    flipped : int, optional
        Answer only so many of the first choices in every way, and the others by their first option.
    """
    out: list[Sketch] = []
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop(0)
        knobs = Knobs(script)
        schedule = Schedule(task, knobs)
        error: ScheduleError | None = None
        try:
            rule(schedule)
        except ScheduleError as e:
            error = e
        picks = tuple(p for _, _, p, _ in knobs.choices)
        for position in range(len(script), len(knobs.choices)):
            if flipped is not None and position >= flipped:
                break
            for other in range(1, knobs.choices[position][3]):
                scripts.append((*picks[:position], other))
        options = ",".join(f"{n}={o}" for n, o, _, _ in knobs.choices)
        name = rule.__name__ + (f"[{options}]" if options else "")
        if error is not None:
            refused[name] = str(error)
            continue
        used = set(schedule.trace.knobs)
        columns = tuple(c for c in knobs.columns if c.knob in used)
        fixed: dict[Any, Expr] = {
            c.knob: Const(c.values[0]) for c in knobs.columns if c.knob not in used
        }
        constraints = tuple(substitute(c, fixed) for c in knobs.constraints)
        if any(isinstance(c, Const) and not c.value for c in constraints):
            refused[name] = "its constraints leave no candidate"
            continue
        out.append(
            Sketch(
                name, columns, constraints, schedule.trace, schedule.program, schedule.features()
            )
        )
    return out


def drafts(task: Task, n: int = 3) -> list[Trace]:
    """Schedules without any measurement: what the draft model predicts to be fastest, best first.

    Of each built-in rule it looks at the branches of the first structural choice only (which axis
    becomes vector lanes), so that it takes hundredths of a second.
    """
    found: list[tuple[float, Trace]] = []
    for rule in default_rules(task.workload)[1:]:
        for sketch in sketches_of(task, rule, {}, flipped=1):
            found += sketch.best_drafts(n, POPULATION)
    found.sort(key=lambda f: f[0])
    return [t for _, t in found[:n]]

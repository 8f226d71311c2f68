"""Traces: the list of primitive steps that made a schedule.

A trace with concrete numbers is what a record stores; it replays on the workload's first program
without the rule that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import RecordError
from tilewright.tensor.expr import Expr, Knob, const_value, substitute

if TYPE_CHECKING:
    from tilewright.schedule.schedule import Schedule

__all__ = ["Argument", "Step", "Trace"]

Argument: TypeAlias = "str | int | Expr | tuple[Argument, ...]"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a primitive: its name and arguments (loops and buffers by name)."""

    primitive: str
    args: tuple[Argument, ...]

    def __str__(self) -> str:
        return f"s.{self.primitive}({', '.join(map(_text, self.args))})"


def _text(arg: Argument) -> str:
    if isinstance(arg, tuple):
        return f"[{', '.join(map(_text, arg))}]"
    return str(arg) if isinstance(arg, Expr) else repr(arg)


def _concrete(arg: Argument, values: Mapping[Any, Expr]) -> Argument:
    if isinstance(arg, tuple):
        return tuple(_concrete(a, values) for a in arg)
    if isinstance(arg, Expr):
        new = substitute(arg, dict(values))
        number = const_value(new)
        return new if number is None else int(number)
    return arg


def _plain(arg: Argument) -> Any:
    if isinstance(arg, tuple):
        return [_plain(a) for a in arg]
    if isinstance(arg, Expr):
        raise RecordError(
            f"to_json: the trace still holds the knob expression {arg}; make it concrete first"
        )
    return arg


def _frozen(arg: Any) -> Argument:
    if isinstance(arg, list):
        return tuple(map(_frozen, arg))
    if isinstance(arg, bool) or not isinstance(arg, (str, int)):
        raise RecordError(
            f"from_json: {arg!r} is no argument of a step; expected text, an integer or a list"
        )
    return arg


@dataclass(frozen=True, slots=True)
class Trace:
    """An immutable list of steps.

    Examples
    --------
    >>> trace = Trace((Step("split", ("i", (4,))), Step("parallel", ("i.0",))))
    >>> print(trace)
    s.split('i', [4])
    s.parallel('i.0')
    >>> Trace.from_json(trace.to_json()) == trace
    True
    """

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def concrete(self, values: Mapping[Any, Expr]) -> Trace:
        """The trace with knobs replaced by numbers."""
        return Trace(
            tuple(
                Step(s.primitive, tuple(_concrete(a, values) for a in s.args)) for s in self.steps
            )
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs that are still open."""
        from tilewright.tensor.expr import walk

        found: dict[Knob, None] = {}

        def visit(arg: Argument) -> None:
            if isinstance(arg, tuple):
                for a in arg:
                    visit(a)
            elif isinstance(arg, Expr):
                found.update({n: None for n in walk(arg) if isinstance(n, Knob)})

        for step in self.steps:
            visit(step.args)
        return tuple(found)

    def to_json(self) -> list[list[Any]]:
        """As nested lists of text and integers."""
        return [[s.primitive, *map(_plain, s.args)] for s in self.steps]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Trace:
        """Read what `to_json` wrote.

        Raises
        ------
        RecordError
            If the data is no trace.
        """
        steps = []
        if not isinstance(data, list):
            raise RecordError(f"from_json: a trace is a list of steps, not {type(data).__name__}")
        for entry in data:
            if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
                raise RecordError(
                    f"from_json: {entry!r} is no step; expected [primitive, argument, ...]"
                )
            steps.append(Step(entry[0], tuple(map(_frozen, entry[1:]))))
        return cls(tuple(steps))

    def replay(self, schedule: Schedule) -> Schedule:
        """Apply the steps to a schedule.

        Raises
        ------
        ScheduleError
            If a step is no longer legal; the message names the step.
        """
        schedule.apply(self)
        return schedule

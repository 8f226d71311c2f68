"""Knobs: the open choices of a rule, each a column of the table, and structural branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tilewright.errors import ScheduleError
from tilewright.tensor.expr import Const, Expr, Knob, const_value

__all__ = ["Column", "Knobs"]

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A knob and the values it may take, ascending."""

    knob: Knob
    values: tuple[int, ...]

    @property
    def array(self) -> np.ndarray:
        """The values, int64."""
        return np.array(self.values, dtype=np.int64)


class Knobs:
    """Collects what a rule opens while it runs once; `script` answers its structural choices."""

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.columns: list[Column] = []
        self.constraints: list[Expr] = []
        self.choices: list[tuple[str, str, int, int]] = []  # name, option, position, options
        self._script = tuple(script)

    def values(self, name: str, options: Sequence[int], *, least: int = 1) -> Expr:
        """A knob that takes one of the given integers; a single one is no knob at all.

        Sizes and factors are 1 or more, which what is derived of extents and indices relies on;
        only what is neither, such as the distance of a prefetch, may start at another `least`.
        """
        found = tuple(sorted({int(v) for v in options}))
        if not found or found[0] < least:
            raise ScheduleError(
                f"knob.values({name!r}, {list(options)}): needs integers of {least} or more"
            )
        if any(c.knob.name == name for c in self.columns):
            raise ScheduleError(f"knob.values({name!r}): the name is taken; give each knob its own")
        if len(found) == 1:
            return Const(found[0])
        column = Column(Knob(name), found)
        self.columns.append(column)
        return column.knob

    def tile(
        self, name: str, extent: int | Expr, levels: int = 2, max_inner: int = 64
    ) -> tuple[Expr, ...]:
        """Sizes of the inner levels of a tiled loop, outermost first; they need not divide.

        Parameters
        ----------
        extent : int or constant expression
            Of the loop.
        levels : int
            Number of loops that the split makes; one size less is returned.
        max_inner : int
            Largest size of the innermost level.
        """
        size = extent if isinstance(extent, int) else const_value(extent)
        if size is None:
            raise ScheduleError(
                f"knob.tile({name!r}, {extent}): the extent depends on other knobs; tile the whole loop"
            )
        whole = int(size)
        out = []
        for level in range(1, levels):
            limit = min(whole, max_inner) if level == levels - 1 else whole
            out.append(self.values(f"{name}.t{level}", tile_sizes(limit)))
        for a, b in zip(out, out[1:]):
            self.require((a - 1) * b <= whole - 1)
        return tuple(out)

    def choice(self, name: str, options: Sequence[T]) -> T:
        """A structural choice: one sketch for each option."""
        if not options:
            raise ScheduleError(f"knob.choice({name!r}, []): no options")
        position = len(self.choices)
        pick = self._script[position] if position < len(self._script) else 0
        self.choices.append((name, str(options[pick]), pick, len(options)))
        return options[pick]

    def require(self, constraint: Expr) -> None:
        """Demand that a condition on knobs holds in every candidate."""
        if isinstance(constraint, Const):
            if not constraint.value:
                raise ScheduleError(
                    "require: the constraint is false whatever the knobs; this branch has no candidates"
                )
            return
        self.constraints.append(constraint)


def tile_sizes(limit: int) -> list[int]:
    """Sizes worth trying up to a limit: small ones, multiples of powers of two, and the limit."""
    base = [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        10,
        12,
        14,
        16,
        20,
        24,
        28,
        32,
        40,
        48,
        56,
        64,
        96,
        128,
        192,
        256,
        384,
        512,
    ]
    return sorted({v for v in base if v < limit} | {limit} | {-(-limit // d) for d in (2, 3, 4)})

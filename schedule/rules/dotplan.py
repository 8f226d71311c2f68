"""Which axes of a product can become lanes and groups of dot-product instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Dot
from tilewright.schedule.rules.common import extent_of, stride_in
from tilewright.schedule.rules.tile import AT_LOAD, VectorAxis
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Binary, Cast, Expr, Load, Poly, Reduce, Var, walk
from tilewright.tensor.workload import Workload

__all__ = ["Panel", "Plan", "dot_patterns", "may_use_dots", "plans_of"]


@dataclass(frozen=True)
class Panel:
    """How an operand is packed: along the lanes and the groups, or the groups only."""

    buffer: str
    lanes: int | None  # the dimension of the lanes, if they are cut into panels
    group: int
    rank: int

    @property
    def order(self) -> list[int]:
        """The permutation of what `cache_read` makes: batches, panels, groups, the rest, lanes, group."""
        packed = sorted(d for d in (self.lanes, self.group) if d is not None)
        plain = [d for d in range(self.rank) if d not in packed]
        made = [*(("panel", d) for d in packed), *(("all", d) for d in plain), *(("in", d) for d in packed)]  # fmt: skip
        first = [("all", d) for d in plain if d < packed[0]]
        rest = [("all", d) for d in plain if d > packed[0]]
        lead = [d for d in (self.lanes, self.group) if d is not None]
        wanted = [*first, *(("panel", d) for d in lead), *rest, *(("in", d) for d in lead)]
        return [made.index(w) for w in wanted]


@dataclass(frozen=True)
class Plan:
    """An axis for the lanes, one for the groups, and the operands to pack for that."""

    vector: VectorAxis
    group: Var
    panels: tuple[Panel, ...]

    def __str__(self) -> str:
        return str(self.vector)


def may_use_dots(workload: Workload) -> bool:
    """Whether the anchor is a sum of products of the types that instructions multiply."""
    anchor = workload.anchor
    if anchor is None or not isinstance(anchor.body, Reduce):
        return False
    return next(dot_patterns(anchor.body.value), None) is not None


def dot_patterns(value: Expr) -> Iterator[Dot]:
    """The patterns that a value fits, the largest group first."""
    match value:
        case Poly(((monomial, 1),), 0) if len(monomial) == 2:
            x, y = monomial
        case Binary("mul", x, y):
            pass
        case _:
            return
    if not isinstance(x, Cast) or not isinstance(y, Cast):
        return
    for group in (4, 2):
        try:
            yield Dot(x.a.dtype, y.a.dtype, value.dtype, group)
        except ScheduleError:
            continue


def plans_of(s: Schedule, anchor: str, pattern: Dot) -> list[Plan]:
    """The plans for a block, those with contiguous results first."""
    store = s.program.blocks()[anchor]
    factors = pattern.factors(store.value)
    if factors is None or not all(isinstance(f, Load) for f in factors):
        return []
    loads = [f for f in factors if isinstance(f, Load)]
    groups = sorted(s.reduction(anchor), key=lambda v: -extent_of(s, v))
    found = []
    for v in s.spatial(anchor):
        contiguous = stride_in(store.indices[-1], v) == 1
        for g in groups:
            panels = [_panel(s, x, v, g) for x in loads]
            used = sum(any(n == v for i in x.indices for n in walk(i)) for x in loads)
            if extent_of(s, v) < 2 or extent_of(s, g) < 2 or used != 1 or None in panels:
                continue
            kept = tuple(p for p in panels if p is not None and p.buffer)
            at_load = all(s.program.buffer(p.buffer).role in AT_LOAD for p in kept if p.lanes is not None)  # fmt: skip
            if contiguous or at_load:
                found.append(Plan(VectorAxis(v, (), (), contiguous), g, kept))
                break
    return sorted(found, key=lambda p: not p.vector.contiguous)


def _panel(s: Schedule, load: Load, v: Var, g: Var) -> Panel | None:
    """How to pack an operand; a panel of no buffer if it can stay; None if it cannot be done."""
    rank = len(load.indices)
    groups = [d for d, i in enumerate(load.indices) if any(n == g for n in walk(i))]
    lanes = [d for d, i in enumerate(load.indices) if any(n == v for n in walk(i))]
    if len(groups) != 1 or load.indices[groups[0]] != g or len(lanes) > 1:
        return None
    if not lanes:
        return Panel("" if groups[0] == rank - 1 else load.buffer, None, groups[0], rank)
    if load.indices[lanes[0]] == v:
        return Panel(load.buffer, lanes[0], groups[0], rank)
    if lanes[0] == rank - 1 and stride_in(load.indices[-1], v) == 1:
        return Panel(load.buffer, None, groups[0], rank)
    return None

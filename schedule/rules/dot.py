"""Products of integers (or bfloat16) by dot-product instructions: matmul and convolution.

Like `tile`, with the reduction in groups of 4 (or 2) that one instruction takes at once. Operands
are packed so that a group lies side by side: constants at load time, others by interleaving rows at
each call. Offered where the target has the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Dot, Interleave
from tilewright.schedule.nests import loads_of
from tilewright.schedule.program import Role
from tilewright.schedule.rules.common import (
    anchor_of,
    epilogue_of,
    extent_of,
    inline_cheap,
    lane_count,
    plain_nest,
    stride_in,
)
from tilewright.schedule.rules.tile import (
    AT_LOAD,
    VectorAxis,
    accumulate,
    finish_epilogue,
    finish_init,
    is_scheduled,
    reduction_order,
    require_registers,
    tile_levels,
    window_options,
)
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Poly,
    Reduce,
    Var,
    const_value,
    walk,
)
from tilewright.tensor.workload import Workload

__all__ = ["dot", "may_use_dots"]


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
    return next(_dots(anchor.body.value), None) is not None


def _dots(value: Expr) -> Iterator[Dot]:
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


def dot(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    assert s.task is not None
    anchor = anchor_of(s, "dot")
    inline_cheap(s, keep=())
    features = frozenset(s.task.target.features.split(","))
    fitting = list(_dots(s.program.blocks()[anchor].value))
    usable = [d for d in fitting if d.available(features)]
    if not usable:
        why = (
            f"needs one of {', '.join(fitting[0].needs)}"
            if fitting
            else "is no product of such types"
        )
        raise ScheduleError(f"dot: {anchor} {why}")
    pattern = usable[0]
    plans = _plans(s, anchor, pattern)
    if not plans:
        raise ScheduleError(f"dot: no axes of {anchor} can become lanes and groups")
    _schedule(s, anchor, pattern, s.knob.choice("vector", plans))


def _plans(s: Schedule, anchor: str, pattern: Dot) -> list[Plan]:
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


def _schedule(s: Schedule, anchor: str, pattern: Dot, plan: Plan) -> None:
    axis, lanes = plan.vector.axis, lane_count(s, anchor)
    spatial, reduced = s.spatial(anchor), s.reduction(anchor)
    levels = {v: tile_levels(s, v, axis, lanes) for v in spatial}
    rows = _row_axes(s, anchor, axis)
    require_registers(s, levels, axis, lanes)
    _require_splats(s, levels, axis, rows, lanes)
    window, main = reduction_order(s, [v for v in reduced if v != plan.group]) if len(reduced) > 1 else ([], [])  # fmt: skip
    unroll_window = bool(window) and s.knob.choice("unroll_window", window_options(s, window))
    epilogue = epilogue_of(s, anchor)
    outer: list[Var] = []
    cache: list[Var] = []
    register: list[Var] = []
    lane, n_rows = axis, 0
    for v in spatial:
        sizes = levels[v]
        if sizes is None:
            outer.append(v)
            continue
        v0, v1, v2 = s.split(v, list(sizes))
        outer.append(v0)
        cache.append(v1)
        if v == axis:
            lane = v2
        elif v in rows:  # outside, so that a row of vectors is used up before the next is read
            register.insert(n_rows, v2)
            n_rows += 1
        else:
            register.append(v2)
    n_groups = -(-extent_of(s, plan.group) // pattern.group)
    unroll = s.knob.values(f"{plan.group.name}.u", [u for u in (1, 2, 4, 8) if u <= n_groups])
    g0, g1, g2 = s.split(plan.group, [unroll, pattern.group])
    s.reorder(*outer, *cache, g0, *main, *window, g1, *register, lane, g2)
    size = levels[axis]
    assert size is not None
    packed = [_pack(s, anchor, p, size[1], pattern.group) for p in plan.panels]
    shared = s.fuse(*outer)
    home = cache[-1]
    local = accumulate(s, anchor, epilogue, home)
    for v in (g1, *(window if unroll_window else [])):
        s.unroll(v)
    s.decompose_reduction(anchor, g0)
    for v in register:
        s.unroll(v)
    s.tensorize(lane, g2, pattern)
    finish_init(s, f"{anchor}.init", home, lane)
    if local is not None:
        finish_epilogue(s, local, home, plan.vector)
    s.parallel(shared)
    for name, panel in zip(packed, plan.panels):
        _schedule_pack(s, name, panel, pattern.group)
    for block in s.blocks():
        if s.loops(block) and not is_scheduled(s, block):
            plain_nest(s, block)
    s.require(s.code_size() <= 1200.0)


def _row_axes(s: Schedule, anchor: str, axis: Var) -> list[Var]:
    """The other axes that move the operand which is read in vectors."""
    store = s.program.blocks()[anchor]
    moved = [
        {v for i in n.indices for v in walk(i)} for n in walk(store.value) if isinstance(n, Load)
    ]
    return [v for v in s.spatial(anchor) if v != axis and any({v, axis} <= m for m in moved)]


def _require_splats(
    s: Schedule, levels: dict[Var, tuple[Expr, Expr] | None], axis: Var, rows: list[Var], lanes: int
) -> None:
    """Where tiles have several rows, demand room for what all of them are multiplied by."""
    assert s.task is not None
    sizes = {v: size[1] for v, size in levels.items() if size is not None}
    if not any(v in sizes for v in rows):
        return
    vectors = (sizes[axis] + (lanes - 1)) // lanes
    splats: Expr = Const(1)
    tall: Expr = Const(1)
    for v, size in sizes.items():
        if v in rows:
            tall = tall * size
        elif v != axis:
            splats = splats * size
    needed = tall * splats * vectors + splats + vectors
    if const_value(needed) is None:
        s.require(needed <= s.task.target.n_registers - 2)


def _pack(s: Schedule, anchor: str, panel: Panel, lanes: Expr, group: int) -> str:
    """Let the anchor read a packed copy, which also does what an elementwise producer did before."""
    sizes: list[tuple[int, Expr | int]] = [(panel.group, group)]
    if panel.lanes is not None:
        sizes.append((panel.lanes, lanes))
    producer = s.program.blocks().get(panel.buffer)
    name = s.cache_read(anchor, panel.buffer, pack=sizes)
    if panel.order != list(range(len(panel.order))):
        s.transform_layout(name, panel.order)
    if (
        producer is not None
        and producer.reduce is None
        and s.program.buffer(panel.buffer).role is Role.TEMP
        and len(s.consumers(panel.buffer)) == 1
        and not any(
            loads_of(producer.value, b.name) for b in s.program.buffers if b.role is Role.PACKED
        )
    ):
        s.compute_inline(panel.buffer)
    return name


def _schedule_pack(s: Schedule, block: str, panel: Panel, group: int) -> None:
    """Interleave the rows of a group for whole vectors; what is packed at load time stays plain."""
    store = s.program.blocks()[block]
    if s.program.buffer(store.buffer).role is Role.PACKED or len(store.indices) < 2:
        return
    loops, inner = s.loops(block), store.indices[-1]
    lane = store.indices[-2]
    if not isinstance(lane, Var) or not isinstance(inner, Var):
        s.parallel(s.fuse(*loops))
        return
    outer = [v for v in loops if v not in (lane, inner)]
    s.reorder(*outer, lane, inner)
    s.tensorize(lane, inner, Interleave(group))
    if outer:
        s.parallel(s.fuse(*outer))

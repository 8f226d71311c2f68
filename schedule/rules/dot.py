"""Products of integers (or bfloat16) by dot-product instructions: matmul and convolution.

Like `tile`, with the reduction in groups of 4 (or 2) that one instruction takes at once. Operands
are packed so that a group lies side by side: constants at load time, others by interleaving rows at
each call. Offered where the target has the instruction.
"""

from __future__ import annotations

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
)
from tilewright.schedule.rules.dotplan import Panel, Plan, dot_patterns, plans_of
from tilewright.schedule.rules.tile import (
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
from tilewright.tensor.expr import Const, Expr, Load, Var, as_expr, const_value, walk

__all__ = ["dot"]


def dot(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    assert s.task is not None
    anchor = anchor_of(s, "dot")
    inline_cheap(s, keep=())
    features = frozenset(s.task.target.features.split(","))
    fitting = list(dot_patterns(s.program.blocks()[anchor].value))
    usable = [d for d in fitting if d.available(features)]
    if not usable:
        why = (
            f"needs one of {', '.join(fitting[0].needs)}"
            if fitting
            else "is no product of such types"
        )
        raise ScheduleError(f"dot: {anchor} {why}")
    pattern = usable[0]
    plans = plans_of(s, anchor, pattern)
    if not plans:
        raise ScheduleError(f"dot: no axes of {anchor} can become lanes and groups")
    _schedule(s, anchor, pattern, s.knob.choice("vector", plans))


def _schedule(s: Schedule, anchor: str, pattern: Dot, plan: Plan) -> None:
    epilogue = epilogue_of(s, anchor)
    tiles = _tile(s, anchor, pattern, plan)
    packed = [_pack(s, anchor, p, tiles.panel, pattern.group) for p in plan.panels]
    shared = s.fuse(*tiles.outer)
    local = accumulate(s, anchor, epilogue, tiles.home)
    for v in tiles.unrolled:
        s.unroll(v)
    s.decompose_reduction(anchor, tiles.first)
    for v in tiles.register:
        s.unroll(v)
    s.tensorize(tiles.lane, tiles.group, pattern)
    finish_init(s, f"{anchor}.init", tiles.home, tiles.lane)
    if local is not None:
        finish_epilogue(s, local, tiles.home, plan.vector)
    s.parallel(shared)
    for name in packed:
        _schedule_pack(s, name, pattern.group)
    for block in s.blocks():
        if s.loops(block) and not is_scheduled(s, block):
            plain_nest(s, block)
    s.require(s.code_size() <= 1200.0)


@dataclass(frozen=True)
class _Tiles:
    """The loops of the tiled anchor that later steps need."""

    outer: tuple[Var, ...]
    home: Var  # holds a register tile
    first: Var  # the outermost loop of the reduction
    unrolled: tuple[Var, ...]  # of the reduction
    register: tuple[Var, ...]
    lane: Var
    group: Var
    panel: Expr  # lanes of a tile


def _tile(s: Schedule, anchor: str, pattern: Dot, plan: Plan) -> _Tiles:
    """Split the anchor's loops and put them in order."""
    axis, lanes = plan.vector.axis, lane_count(s, anchor)
    spatial, reduced = s.spatial(anchor), s.reduction(anchor)
    levels = {v: tile_levels(s, v, axis, lanes) for v in spatial}
    rows = _row_axes(s, anchor, axis)
    require_registers(s, levels, axis, lanes)
    _require_splats(s, levels, axis, rows, lanes)
    others = [v for v in reduced if v != plan.group]
    window, main = reduction_order(s, others) if others else ([], [])
    unroll_window = bool(window) and s.knob.choice("unroll_window", window_options(s, window))
    outer: list[Var] = [v for v in spatial if levels[v] is None]
    cache: list[Var] = []
    tall: list[Var] = []  # outside, so that a row of vectors is used up before the next is read
    wide: list[Var] = []
    lane, panel = axis, as_expr(1)
    for v in spatial:
        sizes = levels[v]
        if sizes is None:
            continue
        v0, v1, v2 = s.split(v, list(sizes))
        outer.append(v0)
        cache.append(v1)
        if v == axis:
            lane, panel = v2, sizes[1]
        else:
            (tall if v in rows else wide).append(v2)
    n_groups = -(-extent_of(s, plan.group) // pattern.group)
    unroll = s.knob.values(f"{plan.group.name}.u", [u for u in (1, 2, 4, 8) if u <= n_groups])
    g0, g1, g2 = s.split(plan.group, [unroll, pattern.group])
    s.reorder(*outer, *cache, g0, *main, *window, g1, *tall, *wide, lane, g2)
    unrolled = (g1, *(window if unroll_window else []))
    return _Tiles(tuple(outer), cache[-1], g0, unrolled, (*tall, *wide), lane, g2, panel)


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


def _schedule_pack(s: Schedule, block: str, group: int) -> None:
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

"""Blocks of the reduction: long products, whose panels for the whole reduction would not stay in a cache.

Loops, outermost first: blocks shared among threads; blocks of the reduction; tiles; the steps of a block;
a register tile, unrolled, with whole vectors innermost. Registers sum one block, memory adds up the blocks.

References
----------
Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
"""

from __future__ import annotations

from tilewright.errors import ScheduleError
from tilewright.schedule.program import Role, Scope
from tilewright.schedule.rules.common import (
    anchor_of,
    epilogue_of,
    extent_of,
    inline_cheap,
    lane_count,
    pack_nest,
    plain_nest,
)
from tilewright.schedule.rules.tile import (
    AT_LOAD,
    finish_init,
    is_scheduled,
    pack_in_tile,
    reduction_order,
    require_registers,
    tile_levels,
    vector_axes,
)
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Expr, Var

__all__ = ["blocked"]

STEPS = (64, 128, 192, 256, 384, 512, 768, 1024)  # of a block of the reduction


def blocked(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    assert s.task is not None
    anchor = anchor_of(s, "blocked")
    inline_cheap(s, keep=())
    axes = [a for a in vector_axes(s, anchor) if a.contiguous]
    if not axes:
        raise ScheduleError(f"blocked: no axis of {anchor} lies beside itself in memory")
    window, main = reduction_order(s, s.reduction(anchor))
    if len(main) != 1 or extent_of(s, main[0]) < 2 * STEPS[1]:
        raise ScheduleError(
            f"blocked: the reduction of {anchor} is short; tiles keep it in a cache"
        )
    vector = s.knob.choice("vector", axes)
    lanes = lane_count(s, anchor)
    spatial = s.spatial(anchor)
    levels = {v: tile_levels(s, v, vector.axis, lanes) for v in spatial}
    require_registers(s, levels, vector.axis, lanes)
    whole = extent_of(s, main[0])
    block = s.knob.values(f"{main[0].name}.b", [n for n in STEPS if n < whole])
    unroll = s.knob.values(f"{main[0].name}.u", [1, 2, 4, 8])
    packs = list(vector.must_pack)
    at_block: list[str] = []
    for buffer, dim in vector.may_pack:
        if s.program.buffer(buffer).role in AT_LOAD:
            packs.append((buffer, dim))
        elif s.knob.choice(f"pack.{buffer}", [True, False]):
            packs.append((buffer, dim))
            at_block.append(buffer)
    epilogue = epilogue_of(s, anchor)

    k0, k1 = s.split(main[0], [block])
    partial = s.rfactor(anchor, k0)
    panel = levels[vector.axis]
    assert panel is not None
    outer: list[Var] = []
    cache: list[Var] = []
    register: list[Var] = []
    lane = vector.axis
    for v in spatial:
        sizes = levels[v]
        if sizes is None:
            outer.append(v)
            continue
        v0, v1, v2 = s.split(v, list(sizes))
        outer.append(v0)
        if v == vector.axis:
            lane = v2
            cache.insert(0, v1)
        else:
            register.append(v2)
            cache.append(v1)
    s.reorder(*outer, k0, *cache, *register, lane)
    shared = s.fuse(*outer)
    s.compute_at(partial, cache[-1])
    packed = {b: s.cache_read(partial, b, pack=[(d, panel[1])]) for b, d in packs}
    _sum_block(s, partial, cache[-1], (k0, *window, k1), unroll, vector.axis)
    for v in register:
        s.unroll(v)
    s.vectorize(lane)
    s.decompose_reduction(anchor, k0)
    s.vectorize(s.loops(f"{anchor}.init")[-1])
    if epilogue is not None:
        s.reverse_compute_at(epilogue, shared)
        s.vectorize(s.loops(epilogue)[-1])
    s.parallel(shared)
    for buffer, name in packed.items():
        if buffer in at_block:
            pack_in_tile(s, name, k0)
        elif s.program.buffer(name).role is Role.TEMP:
            pack_nest(s, name)
    for name in s.blocks():
        if s.loops(name) and not is_scheduled(s, name):
            plain_nest(s, name)
    s.require(s.code_size() <= 400.0)


def _sum_block(
    s: Schedule, partial: str, home: Var, reduced: tuple[Var, ...], unroll: Expr, axis: Var
) -> None:
    """Sum one block of the reduction, already inside a tile, in registers."""
    loops = s.loops(partial)
    block, *window, steps = reduced
    one = Var(f"{partial}.{block.name}")  # the block itself: one iteration
    lane = Var(f"{partial}.{axis.name}")
    register = [v for v in loops[loops.index(home) + 1 :] if v not in (*reduced, one, lane)]
    s0, s1 = s.split(steps, [unroll])
    s.reorder(one, s0, *window, s1, *register, lane)
    s.set_scope(s.program.blocks()[partial].buffer, Scope.REGISTER)
    s.unroll(s1)
    s.decompose_reduction(partial, s0)
    for v in register:
        s.unroll(v)
    s.vectorize(lane)
    finish_init(s, f"{partial}.init", one, lane)

"""Reductions that read each element of a large operand once: sums of columns, vector times matrix.

Loops, outermost first: blocks of results shared among threads; the reduction; a block of results in
the first cache, a few vectors at a time, each updated for several steps of the reduction at once. So
the operand streams through in the order in which it lies in memory. One that the second cache does
not hold may be fetched some steps ahead.
"""

from __future__ import annotations

from tilewright.errors import ScheduleError
from tilewright.schedule.nests import loads_of
from tilewright.schedule.rules.common import (
    anchor_of,
    epilogue_of,
    extent_of,
    inline_cheap,
    lane_count,
    n_bytes_of,
    plain_nest,
    vector_sizes,
)
from tilewright.schedule.rules.tile import vector_axes
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Load, Var, walk

__all__ = ["stream"]

MOST_REUSE = 4  # of the streamed operand; with more, register tiles are better
AHEAD = (0, 4, 8, 16)  # steps that the operand may be fetched before it is used
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def stream(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    anchor = anchor_of(s, "stream")
    inline_cheap(s, keep=())
    axes = [a for a in vector_axes(s, anchor) if a.contiguous and not a.must_pack]
    spatial, reduced = s.spatial(anchor), s.reduction(anchor)
    if not axes or not reduced:
        raise ScheduleError(f"stream: no axis of {anchor} is contiguous in all its operands")
    vector = axes[0].axis
    others = [v for v in spatial if v != vector]
    reuse = 1
    for v in others:
        reuse *= extent_of(s, v)
    if reuse > MOST_REUSE or extent_of(s, reduced[0]) < 8:
        raise ScheduleError(f"stream: {anchor} uses its operands {reuse} times; tiles are better")
    lanes, n = lane_count(s, anchor), extent_of(s, vector)
    size = s.knob.values(f"{vector.name}.r", vector_sizes(n, lanes))
    count = s.knob.values(f"{vector.name}.c", [b for b in BLOCKS if (b - 1) * lanes < n])
    s.require((count - 1) * size <= n - 1)
    steps = s.knob.values(f"{reduced[0].name}.u", [u for u in (1, 2, 4, 8, 16) if u <= extent_of(s, reduced[0])])  # fmt: skip
    length, large = extent_of(s, reduced[0]), _streamed(s, anchor, (vector, reduced[0]))
    j0, j1, j2 = s.split(vector, [count, size])
    k0, k1 = s.split(reduced[0], [steps])
    s.reorder(*others, j0, k0, *reduced[1:], j1, k1, j2)
    shared = s.fuse(*others, j0)
    epilogue = epilogue_of(s, anchor)
    if epilogue is not None:
        s.reverse_compute_at(epilogue, shared)
    ahead = s.knob.values(f"{anchor}.ahead", AHEAD if large else AHEAD[:1], least=0)
    s.require(ahead * steps <= length)
    for buffer in large:
        s.prefetch(anchor, buffer, k0, ahead)
    s.decompose_reduction(anchor, k0)
    s.unroll(k1)
    s.vectorize(j2)
    for block in (f"{anchor}.init", *([epilogue] if epilogue else [])):
        s.vectorize(s.loops(block)[-1])
    s.parallel(shared)
    for block in s.blocks():
        if block not in (anchor, f"{anchor}.init", epilogue):
            plain_nest(s, block)
    s.require(s.code_size() <= 1200.0)


def _streamed(s: Schedule, anchor: str, loops: tuple[Var, ...]) -> list[str]:
    """Operands that the second cache does not hold and that all the given loops move."""
    assert s.task is not None
    value = s.program.blocks()[anchor].value
    names = dict.fromkeys(n.buffer for n in walk(value) if isinstance(n, Load))
    return [
        b
        for b in names
        if n_bytes_of(s, b) > s.task.target.l2_bytes
        and all(_moves(n, loops) for n in loads_of(value, b))
    ]


def _moves(load: Load, loops: tuple[Var, ...]) -> bool:
    used = {n for i in load.indices for n in walk(i)}
    return used.issuperset(loops) and not any(isinstance(n, Load) for n in used)

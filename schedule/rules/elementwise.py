"""Elementwise, injective and layout-changing workloads."""

from __future__ import annotations

from tilewright.schedule.program import Pragma
from tilewright.schedule.rules.common import (
    extent_of,
    inline_cheap,
    lane_count,
    n_bytes_of,
    stride_in,
    vector_sizes,
)
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Load, Var, walk

__all__ = ["elementwise"]

MANY_CACHES = 2  # sizes of the last cache from which results are sent past it


def elementwise(s: Schedule) -> None:
    """One pass over each output: everything inlined, tiles of whole vectors, parallel outside."""
    inline_cheap(s, everything=True)
    for block in s.blocks():
        _schedule(s, block)


def _schedule(s: Schedule, block: str) -> None:
    loops = s.loops(block)
    if not loops:
        return
    lanes = lane_count(s, block)
    last = loops[-1]
    axis = _transposed(s, block, last)
    vector = last
    if axis is not None:
        vector = s.knob.choice(f"{block}.vector", [last, axis])
    size = s.knob.values(
        f"{block}.v", vector_sizes(extent_of(s, vector), lanes, most=8 if axis is None else 2)
    )
    v0, v1 = s.split(vector, [size])
    if vector == last and _large(s, block) and s.knob.choice(f"{block}.nontemporal", [False, True]):
        s.pragma(block, Pragma.NONTEMPORAL)
    if axis is None:
        s.vectorize(v1)
        s.parallel(s.fuse(*(v0 if v == vector else v for v in loops)))
        return
    other = axis if vector == last else last
    tile = s.knob.values(f"{block}.t", [t for t in (1, 2, 4, 8, 16) if t <= extent_of(s, other)])
    o0, o1 = s.split(other, [tile])
    outer = [{vector: v0, other: o0}.get(v, v) for v in loops]
    s.reorder(*outer, o1, v1)
    s.vectorize(v1)
    s.unroll(o1)
    s.parallel(s.fuse(*outer))


def _large(s: Schedule, block: str) -> bool:
    """Whether no cache holds a block's result until it is read."""
    return (
        s.task is not None
        and n_bytes_of(s, s.program.blocks()[block].buffer) >= MANY_CACHES * s.task.target.l3_bytes
    )


def _transposed(s: Schedule, block: str, last: Var) -> Var | None:
    """An axis along which an operand is contiguous although the result is not."""
    store = s.program.blocks()[block]
    for load in walk(store.value):
        if isinstance(load, Load) and load.indices and stride_in(load.indices[-1], last) != 1:
            for v in s.loops(block)[:-1]:
                if stride_in(load.indices[-1], v) == 1 and extent_of(s, v) > 1:
                    return v
    return None

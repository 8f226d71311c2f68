"""Prefetches: one for each cache line that a block will read some iterations later."""

from __future__ import annotations

from tilewright.codegen import memory
from tilewright.codegen.state import Lanes, State
from tilewright.schedule.program import Store
from tilewright.tensor.expr import Const, Load, Var

__all__ = ["emit_prefetches"]

LINE = 64  # bytes that caches fetch at once


def emit_prefetches(st: State, s: Store, lanes: Lanes | None) -> None:
    """Ask for the cache lines of a block's prefetches, for one element or for some lanes."""
    for p in s.prefetches:
        if p.distance == Const(0) or st.layout.places[p.load.buffer].register:
            continue
        stride = memory.lane_stride(st, p.load.buffer, p.load.indices, lanes)
        if lanes is not None and stride is None:
            for n in range(lanes.count):
                with memory.bound(st, lanes.var, lanes.base + n):
                    _fetch(st, p.load, None, [0])
            continue
        count = lanes.count if lanes is not None and stride else 1
        _fetch(st, p.load, lanes, [n * (stride or 0) for n in range(count)])


def _fetch(st: State, e: Load, lanes: Lanes | None, elements: list[int]) -> None:
    """Fetch elements behind an access, each line of them once in this region of the code."""
    n_bytes = e.dtype.n_bytes
    pointer, const = memory.moving_address(st, e.buffer, e.indices, lanes)
    for n in elements:
        offset = (const + n) * n_bytes
        key = ("prefetch", pointer, offset // LINE)
        if st.recall(key) is None:
            st.remember(key, pointer)
            _line(st, e, lanes, st.fb.value(f"getelementptr i8, ptr {pointer}, i64 {offset}"))


def _line(st: State, e: Load, lanes: Lanes | None, pointer: str) -> None:
    fb = st.fb
    fb.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    call = f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)"
    loop, step = _innermost(st, e, lanes)
    if loop is None or step >= LINE:
        fb.line(call)
        return
    # Several iterations stay in a line: ask where one begins, and in the first iteration.
    number = fb.value(f"ptrtoint ptr {pointer} to i64")
    inside = fb.value(f"and i64 {number}, {LINE - 1}")
    begins = fb.value(f"icmp ult i64 {inside}, {step}")
    first = fb.value(f"icmp eq i64 {st.names[loop]}, 0")
    test = fb.value(f"or i1 {begins}, {first}")
    fetch, after = fb.label("fetch"), fb.label("after")
    fb.line(f"br i1 {test}, label %{fetch}, label %{after}")
    fb.start(fetch)
    fb.line(call)
    fb.line(f"br label %{after}")
    fb.start(after)


def _innermost(st: State, e: Load, lanes: Lanes | None) -> tuple[Var | None, int]:
    """The innermost running loop that moves an access, and by how many bytes."""
    terms = st.linear(e.buffer, e.indices).terms
    moving = [
        (st.order[v], v, c)
        for v, c in terms
        if not isinstance(st.names.get(v, 0), int) and (lanes is None or v != lanes.var)
    ]
    if not moving:
        return None, 0
    _, loop, c = max(moving, key=lambda m: m[0])
    return loop, abs(c) * e.dtype.n_bytes

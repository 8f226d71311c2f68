"""Stores that go past the caches: whole aligned vectors, and the fence behind them."""

from __future__ import annotations

from tilewright.codegen.irbuilder import FunctionBuilder
from tilewright.codegen.state import State

__all__ = ["finish_past_caches", "store_past_caches"]

LEAST = 16  # bytes of a vector that such an instruction exists for
ONE = "!0 = !{i32 1}"


def store_past_caches(st: State, value: str, pointer: str, element_bytes: int, width: int) -> None:
    """Store a vector past the caches if its address is a multiple of its size, else as usual.

    The caller's arrays begin anywhere, so that is asked at run time.
    """
    fb = st.fb
    n_bytes = element_bytes * width
    if n_bytes < LEAST:
        fb.line(f"store {value}, ptr {pointer}, align {element_bytes}")
        return
    fb.declare(ONE)
    number = fb.value(f"ptrtoint ptr {pointer} to i64")
    behind = fb.value(f"and i64 {number}, {n_bytes - 1}")
    aligned = fb.value(f"icmp eq i64 {behind}, 0")
    past, usual, after = fb.label("past"), fb.label("usual"), fb.label("after")
    fb.line(f"br i1 {aligned}, label %{past}, label %{usual}")
    fb.start(past)
    fb.line(f"store {value}, ptr {pointer}, align {n_bytes}, !nontemporal !0")
    fb.line(f"br label %{after}")
    fb.start(usual)
    fb.line(f"store {value}, ptr {pointer}, align {element_bytes}")
    fb.line(f"br label %{after}")
    fb.start(after)
    fb.past_caches = True


def finish_past_caches(fb: FunctionBuilder) -> None:
    """Let what was stored past the caches be seen before what the function's caller does next.

    Elsewhere than on x86 the barriers of the thread pool order such stores with all others.
    """
    if fb.past_caches and "+sse" in fb.module.features:
        fb.declare("declare void @llvm.x86.sse.sfence()")
        fb.line("call void @llvm.x86.sse.sfence()")

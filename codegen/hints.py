"""Stores past the caches."""

from __future__ import annotations

from tilewright.codegen.state import State

__all__ = ["fence", "store_past_caches"]


def store_past_caches(st: State, buffer: str, pointer: str, value: str, n_bytes: int) -> None:
    """Store a whole vector, past the caches if it lies at a multiple of its size.

    Parameters
    ----------
    value : str
        Type and name.
    """
    fb, (aligned, plain, after) = st.fb, (st.fb.label(n) for n in ("aligned", "plain", "after"))
    address = fb.value(f"ptrtoint ptr {pointer} to i64")
    rest = fb.value(f"and i64 {address}, {n_bytes - 1}")
    test = fb.value(f"icmp eq i64 {rest}, 0")
    fb.line(f"br i1 {test}, label %{aligned}, label %{plain}")
    fb.start(aligned)
    fb.line(f"store {value}, ptr {pointer}, align {n_bytes}, !nontemporal !{fb.module.one()}")
    fb.line(f"br label %{after}")
    fb.start(plain)
    fb.line(f"store {value}, ptr {pointer}, align {st.layout.places[buffer].dtype.n_bytes}")
    fb.line(f"br label %{after}")
    fb.start(after)
    st.past_caches = True


def fence(st: State) -> None:
    """Let other threads see what was stored past the caches."""
    if st.past_caches and st.fb.module.is_x86:
        st.fb.declare("declare void @llvm.x86.sse.sfence()")
        st.fb.line("call void @llvm.x86.sse.sfence()")

"""What a builder returns: object code and what its caller must know.

Entries of the object are ``void f(ptr args, ptr workspace, ptr runtime)``. `args` is an array of
pointers, one for each parameter, then one for each packed buffer. `runtime` points to
``{ptr parallel_for; i64 n_threads}``; ``parallel_for(runtime, fn, ctx, n)`` calls
``fn(ctx, begin, end, thread)`` on every thread with its share of ``range(n)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schedule.program import Role
from tilewright.tensor.dtype import DType

__all__ = ["KernelObject", "Param"]


@dataclass(frozen=True)
class Param:
    """One array that a kernel touches."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    role: Role

    @property
    def n_bytes(self) -> int:
        """Size in bytes."""
        out = self.dtype.n_bytes
        for n in self.shape:
            out *= n
        return out


@dataclass(frozen=True)
class KernelObject:
    """A compiled kernel.

    Attributes
    ----------
    code : bytes
        A relocatable object file that needs no library.
    symbol : str
        The kernel's entry; ``tw_prepack`` is the other one, present when `packed` is not empty.
    params : tuple of Param
        Inputs in the workload's order, then outputs.
    packed : tuple of Param
        Filled once by the prepack entry from the constant inputs; `layout.SLACK` bytes behind each are
        read, but not written.
    workspace_bytes : int
        Scratch memory of one call, 64-byte aligned.
    n_threads : int
        The most threads that may call it.
    """

    code: bytes
    symbol: str
    params: tuple[Param, ...]
    packed: tuple[Param, ...]
    workspace_bytes: int
    n_threads: int

"""Primitives that change how memory is used, never what is computed: pragma, storage_align."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.nests import set_buffer
from tilewright.schedule.program import (
    Pragma,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
    map_stmts,
)

__all__ = ["pragma", "storage_align"]


def pragma(program: Program, block: str, hint: Pragma) -> Program:
    """Give a block a hint.

    `Pragma.NONTEMPORAL`: its results are written past the caches, where whole vectors are stored to
    aligned addresses. That saves reading what is about to be overwritten, and suits results that are larger
    than the last cache.

    Examples
    --------
    ``pragma(C, Pragma.NONTEMPORAL)``::

        for i in range(8):  # vectorized          for i in range(8):  # vectorized
            C[i] = A[i] + 1.0               ->        C[i] = A[i] + 1.0  # nontemporal
    """
    call = f"pragma({block}, {hint.value})"
    _, store = program.path(block)
    if store.reduce:
        raise ScheduleError(f"{call}: {block} reads what it writes; hint a block that only writes")
    if program.buffer(store.buffer).scope is Scope.REGISTER:
        raise ScheduleError(f"{call}: {store.buffer} is in registers, not in memory")
    if hint in store.pragmas:
        return program
    return _with_store(program, replace(store, pragmas=(*store.pragmas, hint)))


def _with_store(program: Program, new: Store) -> Program:
    def swap(s: Stmt) -> Stmt:
        return new if isinstance(s, Store) and s.block == new.block else s

    return program.with_body(map_stmts(program.body, swap))


def storage_align(
    program: Program, buffer: str, dimension: int, factor: int, offset: int
) -> Program:
    """Leave room between the rows of a temporary, so that their distance is `offset` modulo `factor`.

    The stride of `dimension`, in elements, grows to the next number that leaves the remainder. It keeps
    rows apart in caches whose sets are powers of two.

    Examples
    --------
    ``storage_align(T, 0, 16, 8)``::

        T = alloc(float32, [4, 20])    ->    T = alloc(float32, [4, 20], strides % [0: 16] = 8)
    """
    call = f"storage_align({buffer}, {dimension}, {factor}, {offset})"
    found = program.buffer(buffer)
    if found.role not in (Role.TEMP, Role.PACKED) or found.scope is Scope.REGISTER:
        raise ScheduleError(
            f"{call}: {buffer} is no temporary in memory; use cache_read or cache_write"
        )
    if not 0 <= dimension < len(found.shape) - 1:
        raise ScheduleError(
            f"{call}: no dimension of rows; {buffer} has {len(found.shape)}, the last cannot be padded"
        )
    if factor < 1 or not 0 <= offset < factor:
        raise ScheduleError(f"{call}: needs 0 <= offset < factor")
    kept = tuple(a for a in found.aligned if a[0] != dimension)
    return set_buffer(
        program, replace(found, aligned=tuple(sorted((*kept, (dimension, factor, offset)))))
    )

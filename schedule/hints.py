"""Primitives that change how memory is used, never what is computed: prefetch, pragma, storage_align."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.loops import mentions
from tilewright.schedule.nests import loads_of, set_buffer
from tilewright.schedule.program import (
    For,
    LoopKind,
    Pragma,
    Prefetch,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
    map_stmts,
)
from tilewright.tensor.expr import Expr, Load, Var, const_value, substitute, walk

__all__ = ["pragma", "prefetch", "storage_align"]


def prefetch(program: Program, block: str, buffer: str, loop: Var, *, distance: Expr) -> Program:
    """Fetch what a block will read of a buffer `distance` iterations of a loop later.

    Behind the end of the buffer nothing happens, and distance 0 fetches nothing. Each cache line
    is asked for once in an iteration of the innermost loop that moves the access, so the loops
    inside of it should be unrolled, vectorized or none.

    Examples
    --------
    ``prefetch(C, B, k, 4)``::

        for k in range(64):                     for k in range(64):
            for j in range(16):                     for j in range(16):
                C[j] += A[k] * B[k, j]    ->            prefetch(B[k + 4, j])
                                                        C[j] += A[k] * B[k, j]
    """
    call = f"prefetch({block}, {buffer}, {loop.name}, {distance})"
    loops, store = program.path(block)
    value = const_value(distance)
    if value is not None and value < 0:
        raise ScheduleError(f"{call}: the distance is below 0; use 0 or more")
    if program.buffer(buffer).scope is Scope.REGISTER:
        raise ScheduleError(f"{call}: {buffer} stays in registers; choose a buffer in memory")
    loads = _moving(loops, store, buffer, loop, call)
    if value == 0:
        return program
    ahead: dict[Var, Expr] = {loop: loop + distance}
    new = tuple(Prefetch(_load(substitute(n, ahead)), distance) for n in loads)

    def add(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.block == block:
            return replace(s, prefetches=(*s.prefetches, *new))
        return s

    return program.with_body(map_stmts(program.body, add))


def _moving(loops: tuple[For, ...], store: Store, buffer: str, loop: Var, call: str) -> list[Load]:
    """The loads of a buffer that a loop moves, each once."""
    found = next((f for f in loops if f.var == loop), None)
    if found is None:
        names = ", ".join(f.var.name for f in loops)
        raise ScheduleError(f"{call}: the loop is not around {store.block}; choose one of {names}")
    if found.parts or found.kind is LoopKind.VECTORIZED:
        what = "fused" if found.parts else "vectorized"
        raise ScheduleError(f"{call}: the loop is {what}; prefetch before that, or along another")
    every = list(dict.fromkeys(loads_of(store.value, buffer)))
    if not every:
        raise ScheduleError(f"{call}: the block does not read {buffer}")
    if any(p.load.buffer == buffer for p in store.prefetches):
        raise ScheduleError(f"{call}: {store.block} fetches {buffer} ahead already")
    loads = [n for n in every if any(mentions(i, (loop,)) for i in n.indices)]
    if not loads:
        raise ScheduleError(
            f"{call}: each iteration reads the same of {buffer}; choose a loop that moves {every[0]}"
        )
    data = next((n for n in loads if any(_is_data(i) for i in n.indices)), None)
    if data is not None:
        raise ScheduleError(f"{call}: where {data} lies is data, which is not known ahead")
    return loads


def _is_data(index: Expr) -> bool:
    return any(isinstance(n, Load) for n in walk(index))


def _load(e: Expr) -> Load:
    assert isinstance(e, Load)
    return e


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

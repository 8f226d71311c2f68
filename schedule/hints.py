"""Primitives that tell the memory system what comes; they never change what is computed."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.loops import mentions
from tilewright.schedule.nests import loads_of
from tilewright.schedule.program import (
    For,
    LoopKind,
    Pragma,
    Prefetch,
    Program,
    Scope,
    Stmt,
    Store,
    map_stmts,
)
from tilewright.tensor.expr import Expr, Load, Var, const_value, substitute, walk

__all__ = ["pragma", "prefetch"]


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


def pragma(program: Program, block: str, asked: Pragma) -> Program:
    """Ask something of the code generator for one block.

    ``Pragma.NONTEMPORAL``: whole vectors go to memory without being read into the caches first,
    where they are aligned; that pays for results that no cache holds until they are read.

    Examples
    --------
    ``pragma(C, Pragma.NONTEMPORAL)``::

        for i in range(64):                     for i in range(64):
            C[i] = A[i] + 1.0             ->        C[i] = A[i] + 1.0  # nontemporal
    """
    call = f"pragma({block}, {asked.value})"
    _, store = program.path(block)
    if store.reduce:
        raise ScheduleError(
            f"{call}: {block} is a reduction, which reads what it has written; use cache_write first"
        )
    if program.buffer(store.buffer).scope is Scope.REGISTER:
        raise ScheduleError(
            f"{call}: {store.buffer} stays in registers; choose a block that writes memory"
        )
    if asked in store.pragmas:
        raise ScheduleError(f"{call}: {block} asks for that already")

    def add(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.block == block:
            return replace(s, pragmas=(*s.pragmas, asked))
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

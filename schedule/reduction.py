"""Primitives on reductions: decompose_reduction, rfactor."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import var_free
from tilewright.schedule.loops import (
    find_loop,
    loop_vars,
    mentions,
    reduction_loops,
    substitute_body,
)
from tilewright.schedule.nests import reads, refuse_taken, set_buffer
from tilewright.schedule.program import Buffer, For, LoopKind, Program, Role, Stmt, Store, map_stmts
from tilewright.tensor.expr import Expr, Load, Var

__all__ = ["decompose_reduction", "rfactor"]


def decompose_reduction(program: Program, block: str, loop: Var) -> Program:
    """Write a reduction's initial values by a block of its own, just before a loop.

    Examples
    --------
    ``decompose_reduction(C, k)``::

        for i in range(8):                           for i in range(8):
            for k in range(8):                 ->        C[i] = 0.0  # C.init
                C[i] += A[i, k]  # init 0.0              for k in range(8):
                                                             C[i] += A[i, k]
    """
    call = f"decompose_reduction({block}, {loop.name})"
    loops, store = program.path(block)
    if store.init is None:
        raise ScheduleError(f"{call}: {block} has no initial value left to place")
    find_loop(program, loop)
    depth = next((k for k, f in enumerate(loops) if f.var == loop), None)
    if depth is None:
        raise ScheduleError(
            f"{call}: the loop is not around {block}; choose one of {', '.join(f.var.name for f in loops)}"
        )
    if loops[depth].kind is LoopKind.TENSORIZED:  # it is part of what its lanes do
        depth -= 1
        loop = loops[depth].var
    reduced = reduction_loops(program, block)
    for outer in loops[:depth]:
        if any(outer is r for r in reduced):
            raise ScheduleError(
                f"{call}: {outer.var.name} is a reduction outside of it, which would start over; choose {outer.var.name} or an outer loop"
            )
    rename: dict[Var, Expr] = {}
    kept: list[For] = []
    for f in loops[depth:]:
        if not any(f is r for r in reduced):
            kept.append(f)
            rename |= {v: Var(f"{v.name}.init") for v in (f.var, *loop_vars(f))}
    for f in kept:
        if reads(f.body, store.buffer, besides=block):
            raise ScheduleError(
                f"{call}: {f.var.name} also holds a reader of {store.buffer}; choose a loop inside of it"
            )
    dropped = [v for f in loops[depth:] if f not in kept for v in loop_vars(f)]
    for f in kept:
        if mentions(f.extent, dropped):
            raise ScheduleError(
                f"{call}: the extent {f.extent} of {f.var.name} depends on a reduction loop"
            )
    first = Store(f"{block}.init", store.buffer, store.indices, store.init)
    fresh: tuple[Stmt, ...] = substitute_body((first,), rename)
    for f in reversed(kept):
        renamed = substitute_body((replace(f, body=()),), rename)[0]
        assert isinstance(renamed, For)
        new_var = rename[f.var]
        assert isinstance(new_var, Var)
        parts = tuple((_as_var(rename[v]), e) for v, e in renamed.parts)
        fresh = (replace(renamed, var=new_var, parts=parts, body=fresh),)
    body = map_stmts(
        program.body,
        lambda s: replace(s, init=None) if isinstance(s, Store) and s.block == block else s,
    )
    body = map_stmts(body, lambda s: (*fresh, s) if isinstance(s, For) and s.var == loop else s)
    return program.with_body(body)


def _as_var(expr: Expr) -> Var:
    assert isinstance(expr, Var)
    return expr


def rfactor(program: Program, block: str, loop: Var) -> tuple[Program, str]:
    """Split a reduction in two: partial results for each value of a loop, then their reduction.

    The partial results get a nest of their own, before the old one. Returns the program and the
    name of the block that makes the partial results.

    Examples
    --------
    ``rfactor(C, k.1)``::

        for k.0 in range(2):                        for C.k.1 in range(4):
            for k.1 in range(4):                        for k.0 in range(2):
                C[0] += A[k.0*4 + k.1]        ->            C.rf[C.k.1, 0] += A[k.0*4 + C.k.1]
                                                    for k.1 in range(4):
                                                        C[0] += C.rf[k.1, 0]
    """
    call = f"rfactor({block}, {loop.name})"
    loops, store = program.path(block)
    if not store.reduce or store.init is None:
        raise ScheduleError(f"{call}: {block} is no undecomposed reduction")
    depth = next((k for k, f in enumerate(loops) if f.var == loop), None)
    if depth is None or loops[depth].parts:
        raise ScheduleError(f"{call}: {loop.name} is no plain loop around {block}")
    if not any(f.var == loop for f in reduction_loops(program, block)):
        raise ScheduleError(
            f"{call}: {loop.name} is a spatial loop; choose one that the reduction runs over"
        )
    if any(len(f.body) != 1 for f in loops) or any(f.kind is not LoopKind.SERIAL for f in loops):
        raise ScheduleError(f"{call}: the loops of {block} are shared or annotated; rfactor first")
    chosen = loops[depth]
    reduced = reduction_loops(program, block)
    spatial = [f for f in loops if not any(f is r for r in reduced)]
    outside = [f for f in reduced if f is not chosen]
    if mentions(chosen.extent, [f.var for f in outside]):
        raise ScheduleError(
            f"{call}: the extent {chosen.extent} depends on another reduction loop; split by a factor that divides, or choose the outer level"
        )
    target = program.buffer(store.buffer)
    size = chosen.extent
    if not var_free(size):
        fixed = [a for a in getattr(size, "args", ()) if var_free(a)]
        if not fixed:
            raise ScheduleError(f"{call}: the extent {size} has no constant bound")
        size = fixed[0]
    partial = f"{target.name}.rf"
    refuse_taken(program, partial, call)
    rename: dict[Var, Expr] = {}
    for f in (*spatial, chosen):
        rename |= {v: Var(f"{partial}.{v.name}") for v in (f.var, *loop_vars(f))}
    fresh: tuple[Stmt, ...] = substitute_body(
        (replace(store, block=partial, buffer=partial, indices=(loop, *store.indices)),), rename
    )
    for f in reversed((*spatial, chosen, *outside)):
        renamed = substitute_body((replace(f, body=()),), rename)[0]
        assert isinstance(renamed, For)
        var = rename.get(f.var, f.var)
        parts = tuple((_as_var(rename.get(v, v)), e) for v, e in renamed.parts)
        fresh = (replace(renamed, var=_as_var(var), parts=parts, body=fresh),)
    value = Load(partial, (loop, *store.indices), target.dtype)
    final: Stmt = replace(store, value=value, prefetches=())
    final = For(loop, size, (final,))
    for f in reversed(spatial):
        final = replace(f, body=(final,))
    position = next(k for k, s in enumerate(program.body) if s is loops[0])
    body = (*program.body[:position], fresh[0], final, *program.body[position + 1 :])
    role = Role.PACKED if target.role is Role.PACKED else Role.TEMP
    buffer = Buffer(partial, (size, *target.shape), target.dtype, role)
    return set_buffer(program.with_body(body), buffer), partial

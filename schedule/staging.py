"""The primitive on staged copies: double_buffer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import var_free
from tilewright.schedule.loops import loop_vars, mentions, replace_loop, substitute_body
from tilewright.schedule.nests import map_accesses, reads, refuse_taken, set_buffer
from tilewright.schedule.program import (
    Buffer,
    For,
    LoopKind,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)
from tilewright.tensor.expr import Const, Expr, Load, Var, minimum, walk

__all__ = ["double_buffer"]


@dataclass(frozen=True)
class _Stage:
    """A copy in a loop's body: its place there, its loops, its store."""

    around: For
    position: int
    nest: tuple[For, ...]
    store: Store


def double_buffer(program: Program, buffer: str) -> Program:
    """Give a staged copy two buffers: make the copy for the next iteration before this one computes.

    The first copy is made before the loop; in the last iteration nothing is left to copy.

    Examples
    --------
    ``double_buffer(T)``::

        for i in range(8):                     for v.first in range(4):
            for v in range(4):                     T[0, v.first] = A[0, v.first]
                T[v] = A[i, v]           ->    for i in range(8):
            for j in range(4):                     for v in range(min(4, 4*(7 - i))):
                C[i, j] = T[j]                         T[(i + 1) % 2, v] = A[i + 1, v]
                                                   for j in range(4):
                                                       C[i, j] = T[i % 2, j]
    """
    call = f"double_buffer({buffer})"
    found = program.buffer(buffer)
    stage = _stage(program, found, call)
    _refuse_dependence(program, stage, call)
    refuse_taken(program, f"{stage.store.block}.first", call)
    loop = stage.around
    first = _first(stage)
    following = _following(stage)
    kept = (*loop.body[: stage.position], *loop.body[stage.position + 1 :])
    now = map_accesses(kept, buffer, lambda ix: (buffer, (loop.var % 2, *ix)))
    body = (*now[: stage.position], following, *now[stage.position :])
    program = replace_loop(program, loop.var, lambda s: (first, replace(s, body=body)))
    shape = (Const(2), *found.shape)
    alignment = tuple(replace(a, dimension=a.dimension + 1) for a in found.alignment)
    new = replace(found, shape=shape, alignment=alignment, carried=loop.var)
    return set_buffer(program, new)


def _stage(program: Program, found: Buffer, call: str) -> _Stage:
    """The only writer of a buffer, as a copy in the body of a loop that holds all readers."""
    if found.role is not Role.TEMP or found.scope is not Scope.GLOBAL or found.carried is not None:
        what = "doubled already" if found.carried is not None else "no temporary in memory"
        raise ScheduleError(f"{call}: {found.name} is {what}; choose a copy made by cache_read")
    writers = [s for s in program.blocks().values() if s.buffer == found.name]
    if len(writers) != 1 or writers[0].reduce:
        raise ScheduleError(f"{call}: {found.name} is not written by one block that only copies")
    path, store = program.path(writers[0].block)
    alone = [k for k in range(len(path)) if all(len(f.body) == 1 for f in path[k:])]
    depth = alone[0] if alone else len(path)
    if depth == 0 or not reads(path[depth - 1].body, found.name):
        raise ScheduleError(
            f"{call}: no loop holds {store.block} and what reads it; use compute_at first"
        )
    around = path[depth - 1]
    nest = path[depth:]
    own: Stmt = nest[0] if nest else store
    position = next(k for k, s in enumerate(around.body) if s is own)
    everywhere = _readers(program.body, found.name)
    if len(everywhere) != len(_readers(around.body[position + 1 :], found.name)):
        raise ScheduleError(
            f"{call}: {found.name} is also read before its copy or outside of {around.var.name}"
        )
    return _Stage(around, position, nest, store)


def _readers(body: tuple[Stmt, ...], buffer: str) -> list[Store]:
    return [s for s in walk_stmts(body) if isinstance(s, Store) and reads((s,), buffer)]


def _refuse_dependence(program: Program, stage: _Stage, call: str) -> None:
    """Refuse a copy that cannot be made an iteration earlier."""
    loop, name = stage.around, stage.around.var.name
    if loop.parts or loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        what = "fused" if loop.parts else loop.kind.value
        raise ScheduleError(f"{call}: {name} is {what}; its iterations must follow each other")
    made = {s.buffer: s.block for s in walk_stmts(loop.body) if isinstance(s, Store)}
    at_load = [b for b in made if program.buffer(b).role is Role.PACKED]
    if at_load:
        raise ScheduleError(
            f"{call}: {name} runs once, when the kernel is loaded, to make {at_load[0]}; leave it plain"
        )
    for n in walk(stage.store.value):
        if isinstance(n, Load) and n.buffer in made:
            raise ScheduleError(
                f"{call}: the copy reads {n.buffer}, which {made[n.buffer]} writes in {name}"
            )
    changing = [f for f in stage.nest if any(mentions(e, (loop.var,)) for e in _extents(f))]
    if len(changing) > 1 or any(f.parts for f in stage.nest):
        raise ScheduleError(
            f"{call}: the loops of {stage.store.block} are fused, or several depend on {name}"
        )


def _extents(f: For) -> tuple[Expr, ...]:
    return (f.extent, *(e for _, e in f.parts))


def _nest(stage: _Stage, number: Expr, copied: Expr, rename: dict[Var, Expr]) -> list[Stmt]:
    """The loops of the copy that iteration `copied` reads, then its store, each without a body."""
    mapping: dict[Var, Expr] = {stage.around.var: copied, **rename}
    out: list[Stmt] = []
    for f in stage.nest:
        (new,) = substitute_body((replace(f, body=()),), mapping)
        assert isinstance(new, For)
        var = rename.get(f.var, f.var)
        assert isinstance(var, Var)
        out.append(replace(new, var=var))
    (store,) = substitute_body((stage.store,), mapping)
    assert isinstance(store, Store)
    return [*out, replace(store, indices=(number, *store.indices))]


def _wrapped(parts: list[Stmt]) -> Stmt:
    body = parts[-1]
    for f in reversed(parts[:-1]):
        assert isinstance(f, For)
        body = replace(f, body=(body,))
    return body


def _first(stage: _Stage) -> Stmt:
    """The copy for the first iteration."""
    rename: dict[Var, Expr] = {v: Var(f"{v.name}.first") for f in stage.nest for v in loop_vars(f)}
    parts = _nest(stage, Const(0), Const(0), rename)
    store = parts[-1]
    assert isinstance(store, Store)
    return _wrapped([*parts[:-1], replace(store, block=f"{store.block}.first")])


def _following(stage: _Stage) -> Stmt:
    """The copy for the next iteration; its outermost loop is empty in the last one."""
    loop = stage.around
    parts = _nest(stage, (loop.var + 1) % 2, loop.var + 1, {})
    left = loop.extent - 1 - loop.var
    if not stage.nest:
        return For(Var(f"{stage.store.block}.next"), minimum(1, left), (parts[-1],))
    outer = parts[0]
    assert isinstance(outer, For)
    fixed = [e for e in getattr(outer.extent, "args", (outer.extent,)) if var_free(e)]
    most = fixed[0] if fixed else outer.extent
    parts[0] = replace(outer, extent=minimum(outer.extent, left * most))
    return _wrapped(parts)

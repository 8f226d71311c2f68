"""Helpers on nests: finding, removing and inserting them, renaming buffers and accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.program import (
    Buffer,
    For,
    LoopKind,
    Program,
    Stmt,
    Store,
    map_stmts,
    walk_stmts,
)
from tilewright.tensor.expr import Const, Expr, Load, Var, map_children, walk

__all__ = [
    "drop_buffer", "fresh_prefix", "insert_before", "loads_of", "map_accesses", "only_writer", "own_nest", "reads",
    "refuse_taken", "remove_nest", "set_buffer", "writes",
]  # fmt: skip


def own_nest(program: Program, block: str, call: str) -> tuple[int, tuple[For, ...], Store]:
    """Position, loops and store of a block that has an outermost nest of its own, untransformed."""
    loops, store = program.path(block)
    for position, s in enumerate(program.body):
        if s is (loops[0] if loops else store):
            break
    for loop in loops:
        if len(loop.body) != 1:
            raise ScheduleError(
                f"{call}: block {block} shares its loop {loop.var.name} with other blocks; move those first"
            )
        if loop.parts or loop.kind is not LoopKind.SERIAL:
            raise ScheduleError(
                f"{call}: loop {loop.var.name} of {block} is fused or annotated; move the block before that"
            )
    variables = [loop.var for loop in loops]
    plain = [i for i in store.indices if isinstance(i, Var)]
    if any(i not in variables and not isinstance(i, Const) for i in store.indices) or len(
        set(plain)
    ) != len(plain):
        raise ScheduleError(
            f"{call}: the loops of {block} are tiled already; move the block before you split its loops"
        )
    return position, loops, store


def only_writer(program: Program, store: Store, call: str) -> None:
    """Refuse a buffer that other blocks write as well."""
    for s in program.blocks().values():
        if s.buffer == store.buffer and s.block != store.block:
            raise ScheduleError(
                f"{call}: {store.buffer} is also written by {s.block}; do this before decompose_reduction"
            )


def refuse_taken(program: Program, name: str, call: str) -> None:
    """Refuse a name that a buffer or a block has already."""
    if name in program.blocks() or any(b.name == name for b in program.buffers):
        raise ScheduleError(f"{call}: {name} exists already")


def fresh_prefix(program: Program, prefix: str, suffixes: Sequence[str]) -> str:
    """The prefix, made longer until no loop has a name that starts with it and a suffix."""
    taken = {
        v.name
        for s in walk_stmts(program.body)
        if isinstance(s, For)
        for v in (s.var, *(v for v, _ in s.parts))
    }
    while any(
        t == f"{prefix}.{x}" or t.startswith(f"{prefix}.{x}.") for x in suffixes for t in taken
    ):
        prefix += ".c"
    return prefix


def loads_of(expr: Expr, buffer: str) -> list[Load]:
    """All loads of a buffer in an expression."""
    return [n for n in walk(expr) if isinstance(n, Load) and n.buffer == buffer]


def reads(body: tuple[Stmt, ...], buffer: str, *, besides: str = "") -> bool:
    """Whether any statement loads from a buffer, except one block."""
    return any(
        isinstance(s, Store) and s.block != besides and loads_of(s.value, buffer)
        for s in walk_stmts(body)
    )


def touches(stmt: Stmt, buffer: str) -> bool:
    """Whether a statement loads from or stores to a buffer."""
    return any(
        isinstance(s, Store) and (s.buffer == buffer or loads_of(s.value, buffer))
        for s in walk_stmts((stmt,))
    )


def writes(stmt: Stmt, buffer: str) -> bool:
    """Whether a statement stores to a buffer."""
    return any(isinstance(s, Store) and s.buffer == buffer for s in walk_stmts((stmt,)))


def remove_nest(program: Program, position: int) -> Program:
    """Drop an outermost statement."""
    return program.with_body(program.body[:position] + program.body[position + 1 :])


def insert_before(body: tuple[Stmt, ...], stmt: Stmt, buffer: str) -> tuple[Stmt, ...]:
    """Put a statement before the first one that touches a buffer, else at the end."""
    for k, s in enumerate(body):
        if touches(s, buffer):
            return (*body[:k], stmt, *body[k:])
    return (*body, stmt)


def map_accesses(
    body: tuple[Stmt, ...],
    buffer: str,
    f: Callable[[tuple[Expr, ...]], tuple[str, tuple[Expr, ...]]],
) -> tuple[Stmt, ...]:
    """Redirect every access of a buffer: `f` maps indices to the new buffer and indices."""

    def go(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer == buffer:
            name, indices = f(tuple(map(go, node.indices)))
            return Load(name, indices, node.dtype)
        return map_children(node, go)

    def rebuild(s: Stmt) -> Stmt:
        if not isinstance(s, Store):
            return s
        if s.buffer == buffer:
            name, indices = f(s.indices)
            s = replace(s, buffer=name, indices=indices)
        if not loads_of(s.value, buffer):
            return s
        return replace(s, value=go(s.value), prefetches=tuple(p.map(go) for p in s.prefetches))

    return map_stmts(body, rebuild)


def set_buffer(program: Program, buffer: Buffer) -> Program:
    """Replace the buffer of the same name, or add it at the end."""
    if any(b.name == buffer.name for b in program.buffers):
        new = tuple(buffer if b.name == buffer.name else b for b in program.buffers)
        return replace(program, buffers=new)
    return replace(program, buffers=(*program.buffers, buffer))


def drop_buffer(program: Program, name: str) -> Program:
    """Remove a buffer."""
    return replace(program, buffers=tuple(b for b in program.buffers if b.name != name))

"""Primitives on buffers: cache_read, cache_write, set_scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import divide, loop_ranges
from tilewright.schedule.nests import (
    fresh_prefix,
    loads_of,
    map_accesses,
    refuse_taken,
    set_buffer,
    writes,
)
from tilewright.schedule.program import (
    Buffer,
    For,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
    map_stmts,
    walk_stmts,
)
from tilewright.tensor.expr import (
    Expr,
    Load,
    Var,
    as_expr,
    ceildiv,
    logical_and,
    map_children,
    minimum,
    select,
)
from tilewright.tensor.te import identity

__all__ = ["cache_read", "cache_write", "set_scope"]


def cache_write(program: Program, block: str) -> tuple[Program, str]:
    """Let a block write to a buffer of its own; a new block copies it to where it belongs.

    Returns the program and the copying block's name.

    Examples
    --------
    ``cache_write(C)``::

        for i in range(8):              for i in range(8):
            C[i] = A[i] + 1.0     ->        C.local[i] = A[i] + 1.0
                                        for C.i0 in range(8):
                                            C[C.i0] = C.local[C.i0]
    """
    loops, store = program.path(block)
    buffer = program.buffer(store.buffer)
    local = f"{buffer.name}.local"
    refuse_taken(program, local, f"cache_write({block})")
    refuse_taken(program, f"{buffer.name}.out", f"cache_write({block})")
    root = loops[0] if loops else store
    position = next(k for k, s in enumerate(program.body) if s is root)
    for s in walk_stmts((*program.body[:position], *program.body[position + 1 :])):
        if isinstance(s, Store) and s.buffer == buffer.name:
            raise ScheduleError(
                f"cache_write({block}): {buffer.name} is also written by {s.block}; do this before decompose_reduction"
            )
    renamed = map_accesses((root,), buffer.name, lambda ix: (local, ix))
    suffixes = [f"i{d}" for d in range(len(buffer.shape))]
    prefix = fresh_prefix(program, buffer.name, suffixes)
    axes = tuple(Var(f"{prefix}.{x}") for x in suffixes)
    copy: Stmt = Store(f"{buffer.name}.out", buffer.name, axes, Load(local, axes, buffer.dtype))
    for v, n in zip(reversed(axes), reversed(buffer.shape)):
        copy = For(v, n, (copy,))
    role = Role.PACKED if buffer.role is Role.PACKED else Role.TEMP
    program = set_buffer(program, replace(buffer, name=local, role=role, scope=Scope.GLOBAL))
    body = (*program.body[:position], *renamed, copy, *program.body[position + 1 :])
    return program.with_body(body), f"{buffer.name}.out"


def cache_read(
    program: Program,
    block: str,
    buffer: str,
    pack: Sequence[tuple[int, Expr | int]] = (),
    *,
    pad: bool = False,
) -> tuple[Program, str]:
    """Let a block read a copy of a buffer, optionally packed into panels.

    Parameters
    ----------
    pack : sequence of (dimension, size)
        Each such dimension is cut into panels of that size: the panel numbers become the leading
        dimensions of the copy, the positions inside panels its trailing ones.
    pad : bool
        Fill the last panels up with zeros, so that reading whole vectors of them meets nothing
        that is slow or signals; without it the rest of a last panel is left as it was.

    Returns
    -------
    The program and the copying block's name. A copy of a constant is made once, at load time,
    unless the block is moved by compute_at.

    Examples
    --------
    ``cache_read(C, B, pack=[(1, 4)])``::

        for j in range(8):                      for B.p1 in range(2):
            for k in range(8):                      for B.i0 in range(8):
                C[j] += A[k] * B[k, j]    ->            for B.q1 in range(min(4, 8 - B.p1*4)):
                                                            B.pack[B.p1, B.i0, B.q1] = B[B.i0, B.p1*4 + B.q1]
                                                ...
                                                C[j] += A[k] * B.pack[j // 4, k, j % 4]
    """
    loops, store = program.path(block)
    source = program.buffer(buffer)
    sizes = {d: as_expr(f) for d, f in pack}
    if not loads_of(store.value, buffer):
        raise ScheduleError(f"cache_read({block}, {buffer}): the block does not read {buffer}")
    bad = [d for d in sizes if not 0 <= d < len(source.shape)]
    if bad:
        raise ScheduleError(
            f"cache_read({block}, {buffer}): dimension {bad[0]} of a buffer of rank {len(source.shape)}"
        )
    name = f"{buffer}.pack" if sizes else f"{buffer}.local"
    if pad and not sizes:
        raise ScheduleError(
            f"cache_read({block}, {buffer}): only panels can be padded; give the dimensions to pack"
        )
    refuse_taken(program, name, f"cache_read({block}, {buffer})")
    root = loops[0] if loops else store
    position = next(k for k, s in enumerate(program.body) if s is root)
    for s in walk_stmts((root,)):
        if isinstance(s, Store) and s.buffer == buffer:
            raise ScheduleError(
                f"cache_read({block}, {buffer}): {s.block} writes {buffer} in the same nest; cache before you move blocks"
            )
    ranges = loop_ranges(loops)

    def target(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        quotients, plain, rests = [], [], []
        for d, i in enumerate(indices):
            if d in sizes:
                q, r = divide(i, sizes[d], ranges)
                quotients.append(q)
                rests.append(r)
            else:
                plain.append(i)
        return (*quotients, *plain, *rests)

    def go(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer == buffer:
            return Load(name, target(tuple(map(go, node.indices))), node.dtype)
        return map_children(node, go)

    suffixes = [
        x
        for d in range(len(source.shape))
        for x in ((f"p{d}", f"q{d}") if d in sizes else (f"i{d}",))
    ]
    prefix = fresh_prefix(program, source.name, suffixes)
    copy, shape = _copy_nest(source, name, sizes, prefix, pad=pad)
    role = Role.PACKED if source.role in (Role.CONST, Role.PACKED) else Role.TEMP
    program = set_buffer(program, Buffer(name, shape, source.dtype, role))
    body = map_stmts(
        program.body,
        lambda s: (
            replace(s, value=go(s.value), prefetches=tuple(p.map(go) for p in s.prefetches))
            if isinstance(s, Store) and s.block == block
            else s
        ),
    )
    if (
        source.role is Role.PACKED
    ):  # made at load time, wherever its nest stands: the copy comes after
        made = (k for k, s in enumerate(body) if writes(s, buffer))
        position = max([position, *(k + 1 for k in made)])
    return program.with_body((*body[:position], copy, *body[position:])), name


def _copy_nest(
    source: Buffer, name: str, sizes: dict[int, Expr], prefix: str, *, pad: bool
) -> tuple[Stmt, tuple[Expr, ...]]:
    outer: list[tuple[Var, Expr]] = []
    middle: list[tuple[Var, Expr]] = []
    inner: list[tuple[Var, Expr]] = []
    read: list[Expr] = []
    tails: list[Expr] = []
    inside: list[Expr] = []
    for d, n in enumerate(source.shape):
        if d in sizes:
            p, q = Var(f"{prefix}.p{d}"), Var(f"{prefix}.q{d}")
            outer.append((p, ceildiv(n, sizes[d])))
            inner.append((q, sizes[d] if pad else minimum(sizes[d], n - p * sizes[d])))
            if pad and ceildiv(n, sizes[d]) * sizes[d] != n:
                inside.append(p * sizes[d] + q < n)
            tails.append(sizes[d])
            read.append(p * sizes[d] + q)
        else:
            v = Var(f"{prefix}.i{d}")
            middle.append((v, n))
            read.append(v)
    order = (*outer, *middle, *inner)
    written = tuple(v for v, _ in order)
    value: Expr = Load(source.name, tuple(read), source.dtype)
    if inside:
        value = select(logical_and(*inside), value, identity("sum", source.dtype))
    stmt: Stmt = Store(name, name, written, value)
    for v, n in reversed(order):
        stmt = For(v, n, (stmt,))
    shape = (*(n for _, n in outer), *(n for _, n in middle), *tails)
    return stmt, shape


def set_scope(program: Program, buffer: str, scope: Scope) -> Program:
    """Choose where a temporary lives.

    Examples
    --------
    ``set_scope(C.local, Scope.REGISTER)`` keeps ``C.local`` in registers; its indices must then be
    constants once loops are unrolled.
    """
    found = program.buffer(buffer)
    if found.role is not Role.TEMP:
        raise ScheduleError(
            f"set_scope({buffer}): {buffer} is the caller's ({found.role.value}); use cache_read or cache_write first"
        )
    if found.alignment and scope is Scope.REGISTER:
        raise ScheduleError(
            f"set_scope({buffer}): its strides are aligned, and registers have none; leave out storage_align"
        )
    return set_buffer(program, replace(found, scope=scope))

"""Primitives on how buffers lie in memory: transform_layout, storage_align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import divide, loop_ranges
from tilewright.schedule.nests import map_accesses, set_buffer, touches
from tilewright.schedule.program import (
    Alignment,
    Buffer,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
    map_stmts,
)
from tilewright.tensor.expr import Expr, ceildiv, const_value

__all__ = ["storage_align", "transform_layout"]


def _own(program: Program, buffer: str, call: str) -> Buffer:
    """A buffer whose layout nobody else relies on."""
    found = program.buffer(buffer)
    if found.role not in (Role.TEMP, Role.PACKED):
        raise ScheduleError(
            f"{call}: {buffer} is the caller's ({found.role.value}); use cache_read or cache_write first"
        )
    return found


def storage_align(
    program: Program, buffer: str, dimension: int, *, factor: int, offset: int
) -> Program:
    """Pad a buffer so that the stride of a dimension, modulo `factor`, is `offset` elements.

    Rows whose distance is a multiple of a large power of two share few sets of a cache; an odd
    number of lines between them spreads them over all.

    Examples
    --------
    ``storage_align(T, 0, 32, 16)``::

        T = alloc(float32, [64, 64])  # temp    ->    T = alloc(float32, [64, 64])  # temp, stride 0 % 32 == 16
    """
    call = f"storage_align({buffer}, {dimension}, {factor}, {offset})"
    found = _own(program, buffer, call)
    if found.scope is Scope.REGISTER:
        raise ScheduleError(f"{call}: {buffer} stays in registers, which have no strides")
    if not 0 <= dimension < len(found.shape) - 1:
        raise ScheduleError(
            f"{call}: the last of its {len(found.shape)} dimensions is contiguous; choose one before it"
        )
    if not 0 <= offset < factor:
        raise ScheduleError(f"{call}: a remainder is at least 0 and below the factor {factor}")
    kept = tuple(a for a in found.alignment if a.dimension != dimension)
    new = tuple(sorted((*kept, Alignment(dimension, factor, offset))))
    return set_buffer(program, replace(found, alignment=new))


def transform_layout(
    program: Program,
    buffer: str,
    order: Sequence[int],
    *,
    splits: Sequence[tuple[int, Expr]] = (),
) -> Program:
    """Store the dimensions of a temporary cut into blocks and in another order.

    Parameters
    ----------
    order : sequence of int
        Where each new dimension comes from; those of `splits` count twice.
    splits : sequence of (dimension, size)
        First each of these dimensions becomes two, the number of a block and the position inside;
        the size need not divide, then the last block is not full.

    Examples
    --------
    ``transform_layout(T, [1, 0])``::

        T[i, j] = A[i, j]         ->        T[j, i] = A[i, j]

    ``transform_layout(T, [0, 1, 3, 4, 2], splits=[(1, 16)])``, from NCHW to NCHW16c::

        T[n, c, h, w] = ...       ->        T[n, c // 16, h, w, c % 16] = ...
    """
    found = _own(program, buffer, f"transform_layout({buffer})")
    rank = len(found.shape)
    call = f"transform_layout({buffer}, {list(order)})"
    sizes = _block_sizes(call, rank, splits)
    if found.alignment:
        raise ScheduleError(
            f"transform_layout({buffer}): its strides are aligned; use storage_align afterwards"
        )
    if sorted(order) != list(range(rank + len(sizes))):
        what = f"{rank} dimensions, {len(sizes)} of them split" if sizes else f"{rank} dimensions"
        raise ScheduleError(f"{call}: no permutation of its {what}")
    shape: list[Expr] = []
    for d, n in enumerate(found.shape):
        shape += [ceildiv(n, sizes[d]), sizes[d]] if d in sizes else [n]
    program = set_buffer(program, replace(found, shape=tuple(shape[d] for d in order)))

    def rebuild(s: Stmt) -> Stmt:
        if not isinstance(s, Store) or not touches(s, buffer):
            return s
        ranges = loop_ranges(program.path(s.block)[0])

        def cut(indices: tuple[Expr, ...]) -> tuple[str, tuple[Expr, ...]]:
            new: list[Expr] = []
            for d, i in enumerate(indices):
                new += divide(i, sizes[d], ranges) if d in sizes else (i,)
            return buffer, tuple(new[d] for d in order)

        return map_accesses((s,), buffer, cut)[0]

    return program.with_body(map_stmts(program.body, rebuild))


def _block_sizes(call: str, rank: int, splits: Sequence[tuple[int, Expr]]) -> dict[int, Expr]:
    sizes: dict[int, Expr] = {}
    for d, size in splits:
        value = const_value(size)
        if not 0 <= d < rank or d in sizes:
            raise ScheduleError(f"{call}: splits dimension {d}, not each of 0 to {rank - 1} once")
        if value is not None and value < 1:
            raise ScheduleError(f"{call}: splits dimension {d} by {value}; use 1 or more")
        sizes[d] = size
    return sizes

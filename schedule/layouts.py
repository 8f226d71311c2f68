"""Primitives on how buffers lie in memory: transform_layout, storage_align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.nests import map_accesses, set_buffer
from tilewright.schedule.program import Alignment, Buffer, Program, Role, Scope

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


def transform_layout(program: Program, buffer: str, order: Sequence[int]) -> Program:
    """Store the dimensions of a temporary in another order.

    Examples
    --------
    ``transform_layout(T, [1, 0])``::

        T[i, j] = A[i, j]         ->        T[j, i] = A[i, j]
    """
    found = _own(program, buffer, f"transform_layout({buffer})")
    if found.alignment:
        raise ScheduleError(
            f"transform_layout({buffer}): its strides are aligned; use storage_align afterwards"
        )
    if sorted(order) != list(range(len(found.shape))):
        raise ScheduleError(
            f"transform_layout({buffer}, {list(order)}): no permutation of its {len(found.shape)} dimensions"
        )
    program = set_buffer(program, replace(found, shape=tuple(found.shape[d] for d in order)))
    return program.with_body(
        map_accesses(program.body, buffer, lambda ix: (buffer, tuple(ix[d] for d in order)))
    )

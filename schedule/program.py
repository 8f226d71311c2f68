"""The immutable loop program that primitives rewrite.

A program is a tuple of statements: `For` loops around `Store`s. Extents are exact: the inner loop
of an imperfect tile has the extent ``min(T, N - i.0*T)``, so no guards are needed and every access
is in bounds by construction. Extents and shapes may contain `Knob` symbols.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Intrinsic
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Expr, Load, Var

__all__ = [
    "Alignment",
    "Buffer",
    "For",
    "LoopKind",
    "Pragma",
    "Prefetch",
    "Program",
    "Role",
    "Scope",
    "Stmt",
    "Store",
    "map_stmts",
    "walk_stmts",
]


class LoopKind(enum.Enum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"  # iterations are shared among threads; outermost loops only
    VECTORIZED = "vectorized"  # iterations become vector lanes; innermost loops only
    UNROLLED = "unrolled"
    TENSORIZED = "tensorized"  # one instruction; right inside a vectorized loop only


class Role(enum.Enum):
    """What a buffer is to the kernel's caller."""

    INPUT = "input"
    CONST = "const"  # an input whose value is known at load time
    OUTPUT = "output"
    TEMP = "temp"
    PACKED = "packed"  # filled once at load time from CONST buffers


class Scope(enum.Enum):
    """Where a buffer lives."""

    GLOBAL = "global"  # memory; a TEMP inside a parallel loop is one copy a thread
    REGISTER = "register"  # small; all its indices are constants after unrolling


class Pragma(enum.Enum):
    """What a block asks of the code generator."""

    NONTEMPORAL = "nontemporal"  # store whole vectors past the caches


@dataclass(frozen=True, slots=True, order=True)
class Alignment:
    """The stride of a dimension in elements, modulo `factor`, is `offset`."""

    dimension: int
    factor: int
    offset: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """A row-major array, dense but for the rows that an alignment pads.

    What one iteration of the loop `carried` writes is read by the next.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    role: Role
    scope: Scope = Scope.GLOBAL
    alignment: tuple[Alignment, ...] = ()
    carried: Var | None = None


@dataclass(frozen=True, slots=True)
class For:
    """A loop ``for var in range(extent)``.

    A fused loop keeps its `parts`, outermost first: their variables are what the body uses, and
    ``extent`` is the product of their extents. A tensorized loop says which intrinsic computes it.
    """

    var: Var
    extent: Expr
    body: tuple[Stmt, ...]
    kind: LoopKind = LoopKind.SERIAL
    parts: tuple[tuple[Var, Expr], ...] = ()
    intrinsic: Intrinsic | None = None  # of a tensorized loop


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What a block will read `distance` iterations of some loop later; nothing if that is 0."""

    load: Load
    distance: Expr

    def map(self, f: Callable[[Expr], Expr]) -> Prefetch:
        """With expressions mapped as those of the block are."""
        load = f(self.load)
        assert isinstance(load, Load)
        return Prefetch(load, f(self.distance))


@dataclass(frozen=True, slots=True)
class Store:
    """The block ``buffer[indices] = value``.

    With ``reduce`` it is ``buffer[indices] = reduce(buffer[indices], value)``. When ``init`` is
    not None, the element is first set to ``init`` before its first update (a reduction that
    has not been decomposed). Hints to the memory system do not change what is computed.
    """

    block: str
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    reduce: str | None = None
    init: Expr | None = None
    prefetches: tuple[Prefetch, ...] = ()
    pragmas: tuple[Pragma, ...] = ()


Stmt: TypeAlias = For | Store


@dataclass(frozen=True)
class Program:
    """Buffers (parameters first, in calling order: inputs then outputs) and statements."""

    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        for b in self.buffers:
            if b.name == name:
                return b
        raise ScheduleError(
            f"buffer({name!r}): no such buffer; there are {[b.name for b in self.buffers]}"
        )

    @property
    def params(self) -> tuple[Buffer, ...]:
        """The buffers that the caller passes, inputs then outputs."""
        return tuple(b for b in self.buffers if b.role in (Role.INPUT, Role.CONST, Role.OUTPUT))

    def blocks(self) -> dict[str, Store]:
        """All stores by block name."""
        return {s.block: s for s in walk_stmts(self.body) if isinstance(s, Store)}

    def path(self, block: str) -> tuple[tuple[For, ...], Store]:
        """The loops around a block, outermost first, and its store."""
        found = _find(self.body, block, ())
        if found is None:
            raise ScheduleError(f"block({block!r}): no such block; there are {list(self.blocks())}")
        return found

    def with_body(self, body: tuple[Stmt, ...]) -> Program:
        """The program with other statements."""
        return replace(self, body=body)

    def __str__(self) -> str:
        from tilewright.schedule.show import show_program

        return show_program(self)


def _find(
    body: tuple[Stmt, ...], block: str, above: tuple[For, ...]
) -> tuple[tuple[For, ...], Store] | None:
    for s in body:
        if isinstance(s, Store):
            if s.block == block:
                return above, s
        else:
            found = _find(s.body, block, (*above, s))
            if found is not None:
                return found
    return None


def walk_stmts(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield all statements, parents first."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from walk_stmts(s.body)


def map_stmts(
    body: tuple[Stmt, ...], f: Callable[[Stmt], Stmt | tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
    """Rebuild statements bottom-up; `f` may return several statements, or none."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, For):
            inner = map_stmts(s.body, f)
            s = (
                s
                if len(inner) == len(s.body) and all(map(lambda a, b: a is b, inner, s.body))
                else replace(s, body=inner)
            )
        new = f(s)
        out.extend(new if isinstance(new, tuple) else (new,))
    return tuple(out)

"""Facts about the blocks of a program as expressions of its knobs: trips, footprints, ports.

Everything is derived once per sketch. Extents that depend on outer loops (the ends of imperfect
tiles) are taken at their full-tile value; what the tails waste is counted separately.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.schedule.bounds import interval, least, loop_ranges, upper_bounds, var_free
from tilewright.schedule.intrinsic import Dot, Intrinsic
from tilewright.schedule.loops import reduction_loops
from tilewright.schedule.program import Buffer, For, LoopKind, Program, Store, walk_stmts
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    INDEX,
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Poly,
    Select,
    Unary,
    Var,
    cast,
    ceildiv,
    const_value,
    maximum,
    minimum,
    walk,
)

__all__ = [
    "LINE",
    "Access",
    "BlockFacts",
    "Footprint",
    "LoopFacts",
    "block_facts",
    "footprint",
    "number",
    "product",
]

ONE = Const(1)
LINE = 64  # bytes that caches fetch at once
PAGE = 4096  # bytes; what lies this far apart falls into one set of the first cache, and into few of others
WAYS = 8  # lines that a set of a cache holds at least


def number(e: Expr | float) -> Expr:
    """As a real number."""
    return cast(e, DType.FLOAT64) if isinstance(e, Expr) else Const(float(e), DType.FLOAT64)


def product(items: list[Expr]) -> Expr:
    """Product of integers."""
    out: Expr = ONE
    for e in items:
        out = out * e
    return out


@dataclass(frozen=True)
class LoopFacts:
    """A loop around a block: its variable, full extent, kind, and whether it reduces."""

    var: Var
    extent: Expr
    kind: LoopKind
    reduces: bool


@dataclass(frozen=True)
class Access:
    """How a block touches a buffer: stride along the vector lanes and the loops that move it."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    lane_stride: int | None  # 0 broadcast, 1 contiguous, None unknown or indirect
    moves: frozenset[Var]
    grouped: bool = False  # the last index is that of a tensorized loop: groups lie side by side

    def is_contiguous(self, var: Var) -> bool:
        """Whether neighbouring iterations of a loop touch neighbouring elements."""
        return _lane_stride(self.indices, var) == 1


@dataclass(frozen=True)
class BlockFacts:
    """One block: loops outermost first, accesses, operations on data for one iteration."""

    store: Store
    loops: tuple[LoopFacts, ...]
    accesses: tuple[Access, ...]
    flops: int
    special: int  # exp, log, tanh, division, ...: many instructions each

    @property
    def lanes(self) -> LoopFacts | None:
        """The vectorized loop, if any."""
        return next((f for f in self.loops if f.kind is LoopKind.VECTORIZED), None)

    @property
    def trips(self) -> Expr:
        """Number of iterations of the whole nest."""
        return product([f.extent for f in self.loops])


def full_extent(extent: Expr) -> Expr:
    """The extent of a full tile: without the alternatives that depend on loops."""
    if var_free(extent):
        return extent
    fixed = [a for a in getattr(extent, "args", ()) if var_free(a)]
    if fixed:
        return least(fixed)
    return Const(1)


def _bounded_extents(path: tuple[For, ...]) -> list[tuple[Var, Expr]]:
    """Ranges with loop-free extents."""
    out: list[tuple[Var, Expr]] = []
    for var, extent in loop_ranges(path):
        if not var_free(extent) and not any(var_free(a) for a in getattr(extent, "args", ())):
            highs = [h for h in upper_bounds(extent, out) if var_free(h)]
            out.append((var, least(highs) if highs else ONE))
        else:
            out.append((var, full_extent(extent)))
    return out


def block_facts(program: Program) -> list[BlockFacts]:
    """Facts of every block, in program order."""
    buffers = {b.name: b for b in program.buffers}
    out = []
    for s in walk_stmts(program.body):
        if not isinstance(s, Store):
            continue
        path, store = program.path(s.block)
        reduced = {id(r) for r in reduction_loops(program, s.block)}
        extents = dict(_bounded_extents(path))
        loops = tuple(
            LoopFacts(v, extents[v], f.kind, id(f) in reduced)
            for f in path
            for v, _ in (f.parts or ((f.var, f.extent),))
        )
        lane = next((f.var for f in loops if f.kind is LoopKind.VECTORIZED), None)
        group = next((f.var for f in loops if f.kind is LoopKind.TENSORIZED), None)
        accesses = [_access(buffers[store.buffer], store.indices, True, lane, group)]
        for node in walk(store.value):
            if isinstance(node, Load):
                accesses.append(_access(buffers[node.buffer], node.indices, False, lane, group))
        unrolled = frozenset(f.var for f in loops if f.kind is LoopKind.UNROLLED)
        flops, special = _operations(store, unrolled, path[-1].intrinsic if path else None)
        out.append(BlockFacts(store, loops, tuple(dict.fromkeys(accesses)), flops, special))
    return out


def _access(
    buffer: Buffer, indices: tuple[Expr, ...], is_store: bool, lane: Var | None, group: Var | None
) -> Access:
    moves = frozenset(n for i in indices for n in walk(i) if isinstance(n, Var))
    grouped = group is not None and len(indices) > 1 and indices[-1] == group
    beside = indices[:-1] if grouped else indices
    return Access(buffer, indices, is_store, _lane_stride(beside, lane), moves, grouped)


def _lane_stride(indices: tuple[Expr, ...], lane: Var | None) -> int | None:
    if lane is None or not any(n == lane for i in indices for n in walk(i)):
        return 0
    if any(n == lane for i in indices[:-1] for n in walk(i)):
        return None
    last = indices[-1]
    if last == lane:
        return 1
    if isinstance(last, Poly):
        for atoms, c in last.terms:
            if atoms == (lane,):
                rest = [
                    a
                    for a, _ in last.terms
                    if a != atoms and any(n == lane for x in a for n in walk(x))
                ]
                return c if not rest else None
    return None


_SPECIAL = frozenset(["exp", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt", "sin", "cos"])


def _operations(
    store: Store, unrolled: frozenset[Var], intrinsic: Intrinsic | None = None
) -> tuple[int, int]:
    """Operations of one iteration, and how many of them take many instructions."""

    def both(*parts: tuple[int, int]) -> tuple[int, int]:
        return sum(n for n, _ in parts), sum(n for _, n in parts)

    def go(e: Expr) -> tuple[int, int]:
        match e:
            case Poly(terms, const, dtype) if dtype is not INDEX:
                own = sum(len(m) - (abs(c) == 1) for m, c in terms) + len(terms) - (const == 0)
                return both((own, 0), *(go(a) for a in {a for m, _ in terms for a in m}))
            case Binary(op, a, b) if not a.dtype.is_int:
                return both((1, op in ("div", "pow")), go(a), go(b))
            case Unary(op, a):
                return both((1, op in _SPECIAL), go(a))
            case Select(c, a, b) if _decided(c, unrolled):
                return max(go(a), go(b))  # code is written for one of them
            case Select(c, a, b) if store.reduce and not any(isinstance(n, Load) for n in walk(c)):
                return both(go(a), go(b))  # code is written for each outcome of it
            case Select(c, a, b):
                return both((1, 0), go(c), go(a), go(b))
            case Cast(a):
                return both((1, 0), go(a))
        return 0, 0

    flops, special = both((1 if store.reduce else 0, 0), go(store.value))
    if intrinsic is None:
        return flops, special
    # one instruction for all of it; pairs of bytes are widened and added as well
    pairs = isinstance(intrinsic, Dot) and intrinsic.group == 2 and intrinsic.a.is_int
    return (6 if pairs else 2), special


def _decided(condition: Expr, unrolled: frozenset[Var]) -> bool:
    """Whether a condition is known in each iteration of the unrolled loops."""
    return all(n in unrolled for n in walk(condition) if isinstance(n, (Var, Load)))


Ranges: TypeAlias = "tuple[tuple[Var, Expr], ...]"


def _relevant(index: Expr, ranges: Ranges) -> Ranges:
    """The loops that decide an index, themselves or by the extents of others."""
    used = {n for n in walk(index) if isinstance(n, Var)}
    kept: list[tuple[Var, Expr]] = []
    for var, extent in reversed(ranges):
        if var in used:
            kept.append((var, extent))
            used.update(n for n in walk(extent) if isinstance(n, Var))
    return tuple(reversed(kept))


@functools.lru_cache(maxsize=1 << 14)
def _touched(index: Expr, ranges: Ranges) -> Expr | None:
    """How many values an index takes while loops run, or None; the sketches of a space ask the same."""
    span = interval(index, ranges)
    if span is None:
        return None
    return span.extent if var_free(span.extent) else full_extent(span.extent)


@dataclass(frozen=True)
class Footprint:
    """What an access touches while some loops run: bytes, cache lines, pieces of neighbouring lines.

    Pieces whose distances share a large power of two compete for few sets of a cache: `crowding` is
    how many times the room of their lines they need to stay in one.
    """

    n_bytes: Expr
    lines: Expr
    pieces: Expr
    crowding: Expr


def footprint(access: Access, inner: tuple[LoopFacts, ...]) -> Footprint:
    """What an access touches while the given loops run."""
    ranges = tuple((f.var, f.extent) for f in inner)
    n_bytes = access.buffer.dtype.n_bytes
    sizes: list[Expr] = []
    for index, dim in zip(access.indices, access.buffer.shape):
        extent = _touched(index, _relevant(index, ranges))
        if extent is None:
            sizes.append(dim)
            continue
        sizes.append(extent if isinstance(dim, Const) and extent == dim else minimum(extent, dim))
    if not sizes:
        return Footprint(Const(n_bytes), ONE, ONE, number(1.0))
    crowding = _crowding(access.buffer, sizes)
    elements = product(sizes)
    if access.grouped:
        sizes = [*sizes[:-2], sizes[-2] * sizes[-1]]
    rows = product(sizes[:-1])
    per_line = max(1, LINE // n_bytes)
    return Footprint(elements * n_bytes, rows * ceildiv(sizes[-1], per_line), rows, crowding)


def _crowding(buffer: Buffer, sizes: list[Expr]) -> Expr:
    """See `Footprint`."""
    pitch: Expr = Const(buffer.dtype.n_bytes)
    piece = pitch
    found = number(1.0)
    for size, dim in zip(reversed(sizes), reversed(buffer.shape)):
        apart = const_value(pitch)
        if apart is None:
            break
        shared = math.gcd(int(apart), PAGE)
        if shared > LINE:
            squeezed = number(shared) / minimum(maximum(number(piece), float(LINE)), float(shared))
            found = maximum(found, Select(size > WAYS, squeezed, number(1.0), DType.FLOAT64))
        pitch, piece = pitch * dim, piece * size
    return found

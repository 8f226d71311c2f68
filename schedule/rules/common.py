"""What the built-in rules share."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import ScheduleError
from tilewright.schedule.nests import loads_of
from tilewright.schedule.program import Role, Store
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Const, Expr, Load, Poly, Select, Unary, Var, const_value, walk

__all__ = [
    "anchor_of", "epilogue_of", "extent_of", "inline_cheap", "lane_count", "n_bytes_of", "pack_nest", "plain_nest", "stride_in",
    "vector_sizes",
]  # fmt: skip


def lane_count(s: Schedule, block: str) -> int:
    """Elements of a block's type in one vector register."""
    bits = s.task.target.vector_bits if s.task else 256
    store = s.program.blocks()[block]
    return max(1, bits // (8 * s.program.buffer(store.buffer).dtype.n_bytes))


def anchor_of(s: Schedule, rule: str) -> str:
    """The block of the workload's reduction."""
    if s.workload.anchor is None:
        raise ScheduleError(f"{rule}: the workload has no reduction")
    return s.workload.anchor.name


def epilogue_of(s: Schedule, anchor: str) -> str | None:
    """The single elementwise reader of the anchor, if it can share the anchor's tiles."""
    buffer = s.program.blocks()[anchor].buffer
    readers = s.consumers(buffer)
    if s.program.buffer(buffer).role is not Role.TEMP or len(readers) != 1:
        return None
    reader = s.program.blocks()[readers[0]]
    if reader.reduce or any(
        not isinstance(i, (Var, Const)) for n in loads_of(reader.value, buffer) for i in n.indices
    ):
        return None
    return readers[0]


def extent_of(s: Schedule, loop: Var) -> int:
    """The extent of a loop that has not been tiled."""
    value = const_value(s.extent(loop))
    if value is None:
        raise ScheduleError(f"extent({loop.name}): not a number; this rule runs on untiled loops")
    return int(value)


def n_bytes_of(s: Schedule, name: str) -> int:
    """The size of a buffer whose shape does not depend on knobs."""
    buffer = s.program.buffer(name)
    total = buffer.dtype.n_bytes
    for n in buffer.shape:
        total *= int(const_value(n) or 1)
    return total


def _cheap(store: Store) -> bool:
    nodes = list(walk(store.value))
    costly = {"exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "sqrt", "rsqrt"}
    return store.reduce is None and not any(
        isinstance(n, Select) or (isinstance(n, Unary) and n.op in costly) for n in nodes
    )


def inline_cheap(s: Schedule, keep: Sequence[str] = (), everything: bool = False) -> None:
    """Inline elementwise intermediates: cheap ones always, costly ones with a single reader."""
    changed = True
    while changed:
        changed = False
        for store in list(s.program.blocks().values()):
            if (
                store.block in keep
                or store.reduce
                or s.program.buffer(store.buffer).role is not Role.TEMP
            ):
                continue
            readers = s.consumers(store.buffer)
            stores = s.program.blocks()
            single = (
                len(readers) == 1 and len(loads_of(stores[readers[0]].value, store.buffer)) == 1
            )
            plain = single and stores[readers[0]].reduce is None
            padded = any(isinstance(n, Select) for n in walk(store.value))
            into_reduction = any(stores[r].reduce for r in readers)
            if (
                everything
                or (_cheap(store) and not into_reduction)
                or (plain and not padded)
                or (
                    _cheap(store)
                    and into_reduction
                    and len(readers) == 1
                    and not _reused(s, readers[0])
                )
            ):
                s.compute_inline(store.block)
                changed = True
                break


def _reused(s: Schedule, block: str) -> bool:
    """Whether a reduction reads an element more than once (so that its operand should be kept)."""
    path, store = s.program.path(block)
    variables = {f.var for f in path}
    for load in (n for n in walk(store.value) if isinstance(n, Load)):
        used = {n for i in load.indices for n in walk(i) if isinstance(n, Var)}
        if used != variables or any(not isinstance(i, Var) for i in load.indices):
            return True
    return False


def stride_in(index: Expr, var: Var) -> int | None:
    """Coefficient of a variable in one index: 0 if absent, None if it is not a plain multiple."""
    if not any(n == var for n in walk(index)):
        return 0
    if index == var:
        return 1
    if isinstance(index, Poly):
        found = [c for atoms, c in index.terms if atoms == (var,)]
        others = [a for atoms, _ in index.terms if atoms != (var,) for a in atoms]
        if len(found) == 1 and not any(n == var for a in others for n in walk(a)):
            return found[0]
    return None


def vector_sizes(extent: int, lanes: int, most: int = 4) -> list[int]:
    """Sizes of a vectorized tile: whole vectors, or the extent when that is short."""
    sizes = [lanes * m for m in range(1, most + 1) if lanes * (m - 1) < extent]
    if extent <= lanes * most:
        sizes = [v for v in sizes if v < extent] + [extent]
    if extent < lanes:
        sizes = [extent]
    return sizes


def plain_nest(s: Schedule, block: str) -> None:
    """A sound schedule without search: parallel outside, vectors inside."""
    spatial, reduced = s.spatial(block), s.reduction(block)
    if not spatial:
        return
    store = s.program.blocks()[block]
    lanes = lane_count(s, block)
    last = spatial[-1]
    extent = extent_of(s, last)
    contiguous = bool(store.indices) and stride_in(store.indices[-1], last) == 1
    if not contiguous or extent < 2:
        outer = s.fuse(*spatial)
        s.parallel(outer)
        return
    outer_loops = spatial[:-1]
    if extent > lanes:
        out, inner = s.split(last, [lanes])
        outer_loops = [*outer_loops, out]
    else:
        inner = last
    if reduced or len(outer_loops) > 1:
        s.reorder(*outer_loops, *reduced, inner)
    s.vectorize(inner)
    if outer_loops:
        s.parallel(s.fuse(*outer_loops))


def pack_nest(s: Schedule, block: str) -> None:
    """Schedule a copy into panels: panels shared among threads, positions inside them in vectors."""
    loops = s.loops(block)
    s.vectorize(loops[-1])
    s.parallel(s.fuse(*loops[:-1]))

"""Multi-level tiling of reductions with reuse: matmul, convolution, pooling, column sums.

Loops, outermost first: blocks shared among threads; tiles that stay in a cache; the reduction;
a register tile, unrolled, with whole vectors innermost. Accumulators stay in registers for the
whole reduction, and the epilogue reads them from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import loop_ranges
from tilewright.schedule.nests import loads_of
from tilewright.schedule.program import Role, Scope
from tilewright.schedule.rules.common import (
    anchor_of,
    epilogue_of,
    extent_of,
    inline_cheap,
    lane_count,
    pack_nest,
    plain_nest,
    stride_in,
    vector_sizes,
)
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Const, Expr, Load, Select, Var, const_value, walk

__all__ = [
    "AT_LOAD", "VectorAxis", "accumulate", "finish_epilogue", "finish_init", "is_scheduled", "pack_in_tile", "reduction_order",
    "require_registers", "tile", "tile_levels", "vector_axes", "window_options",
]  # fmt: skip

REGISTER_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
MOST_COPIED = 27  # steps of a window whose code may be written anew for each border
LEAST_ROW = 4  # results beside each other in memory, for square blocks to be worth while
AT_LOAD = (Role.CONST, Role.PACKED)  # what is known when a kernel is loaded
CACHE_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True)
class VectorAxis:
    """An axis whose tile can become vector lanes, and the operands to pack for that."""

    axis: Var
    must_pack: tuple[tuple[str, int], ...]
    may_pack: tuple[tuple[str, int], ...]
    contiguous: bool

    def __str__(self) -> str:
        return self.axis.name


def vector_axes(s: Schedule, block: str) -> list[VectorAxis]:
    """The axes along which the block's result can be computed in vectors."""
    store = s.program.blocks()[block]
    loads = list(dict.fromkeys(n for n in walk(store.value) if isinstance(n, Load)))
    found = []
    for v in s.spatial(block):
        if extent_of(s, v) < 2:
            continue
        contiguous = stride_in(store.indices[-1], v) == 1
        must: list[tuple[str, int]] = []
        may: list[tuple[str, int]] = []
        possible = True
        for load in loads:
            dims = [d for d, i in enumerate(load.indices) if any(n == v for n in walk(i))]
            if not dims:
                continue
            role = s.program.buffer(load.buffer).role
            last = len(load.indices) - 1
            if dims == [last] and stride_in(load.indices[last], v) is not None:
                if load.indices[last] == v and role is not Role.TEMP:
                    may.append((load.buffer, last))
            elif (
                len(dims) == 1
                and load.indices[dims[0]] == v
                and len(loads) > 1
                and role is not Role.TEMP
            ):
                must.append((load.buffer, dims[0]))
            else:
                possible = False
        packs_inputs = any(s.program.buffer(b).role not in AT_LOAD for b, _ in must)
        if (
            possible
            and (contiguous or (must and not packs_inputs))
            and not (packs_inputs and not contiguous)
        ):
            found.append(VectorAxis(v, tuple(must), tuple(may), contiguous))
    return sorted(found, key=lambda a: not a.contiguous)


def tile(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    assert s.task is not None
    anchor = anchor_of(s, "tile")
    inline_cheap(s, keep=())
    axes = vector_axes(s, anchor)
    if not axes:
        raise ScheduleError(f"tile: no axis of {anchor} can become vector lanes")
    vector = s.knob.choice("vector", axes)
    lanes = lane_count(s, anchor)
    spatial, reduced = s.spatial(anchor), s.reduction(anchor)
    levels = {v: tile_levels(s, v, vector.axis, lanes) for v in spatial}
    require_registers(s, levels, vector.axis, lanes)
    window, main = reduction_order(s, reduced)
    unroll_window = bool(window) and s.knob.choice("unroll_window", window_options(s, window))
    inner_first = s.knob.choice("order", ["vector_outer", "vector_inner"]) == "vector_inner"
    packs = list(vector.must_pack)
    in_tile: list[str] = []
    for buffer, dim in vector.may_pack:
        const = s.program.buffer(buffer).role in AT_LOAD
        options = [True, False] if const else [False, True, "tile"]
        how = s.knob.choice(f"pack.{buffer}", options)
        if how:
            packs.append((buffer, dim))
        if how == "tile":
            in_tile.append(buffer)
    producers = [b for b in s.blocks() if b != anchor and _feeds(s, b, anchor)]
    epilogue = epilogue_of(s, anchor)

    outer: list[Var] = []
    cache: list[Var] = []
    register: list[Var] = []
    lane = vector.axis
    row = extent_of(s, spatial[-1])
    for v in spatial:
        sizes = levels[v]
        if sizes is None:
            outer.append(v)
            continue
        v0, v1, v2 = s.split(v, list(sizes))
        outer.append(v0)
        if v == vector.axis:
            lane = v2
            cache.insert(len(cache) if inner_first else 0, v1)
        else:
            register.append(v2)
            cache.insert(
                0 if inner_first and vector.axis not in spatial[: spatial.index(v)] else len(cache),
                v1,
            )
    steps: list[Var] = []
    unrolled: list[Var] = []
    for v in main:
        size = s.knob.values(f"{v.name}.u", [u for u in (1, 2, 4, 8) if u <= extent_of(s, v)])
        k0, k1 = s.split(v, [size])
        steps.append(k0)
        unrolled.append(k1)
    inner_steps = [*window, *unrolled]
    s.reorder(*outer, *cache, *steps, *inner_steps, *register, lane)
    panel = levels[vector.axis]
    assert panel is not None
    packed = {b: s.cache_read(anchor, b, pack=[(d, panel[1])]) for b, d in packs}
    shared = s.fuse(*outer)
    home = cache[-1] if cache else shared
    final = None
    if not vector.contiguous and row >= LEAST_ROW:
        final, epilogue = epilogue or s.cache_write(anchor), None
    local = accumulate(s, anchor, epilogue, home)
    for v in unrolled:
        s.unroll(v)
    if unroll_window:
        for v in window:
            s.unroll(v)
    first = steps[0] if steps else (inner_steps[0] if inner_steps else lane)
    s.decompose_reduction(anchor, first)
    for v in register:
        s.unroll(v)
    s.vectorize(lane)
    finish_init(s, f"{anchor}.init", home, lane)
    if local is not None:
        finish_epilogue(s, local, home, vector)
    if final is not None:
        _transpose_back(s, final, shared, spatial.index(vector.axis), lanes)
    _place_producers(s, producers, anchor, shared, lane, small=_steps(s, window) <= MOST_COPIED)
    s.parallel(shared)
    for buffer, name in packed.items():
        if buffer in in_tile:
            pack_in_tile(s, name, shared)
        elif s.program.buffer(name).role is Role.TEMP:
            pack_nest(s, name)
    for block in s.blocks():
        if s.loops(block) and not is_scheduled(s, block):
            plain_nest(s, block)
    s.require(s.code_size() <= 400.0)


def tile_levels(s: Schedule, v: Var, vector: Var, lanes: int) -> tuple[Expr, Expr] | None:
    """Sizes of the cache and register tiles of an axis, or None for an axis of one element."""
    n = extent_of(s, v)
    if n == 1 and v != vector:
        return None
    if v == vector:
        sizes = vector_sizes(n, lanes)
    else:
        sizes = [t for t in REGISTER_SIZES if t <= n]
    inner = s.knob.values(f"{v.name}.r", sizes)
    outer = s.knob.values(f"{v.name}.c", sorted({t for t in CACHE_SIZES if (t - 1) * sizes[0] < n}))
    s.require((outer - 1) * inner <= n - 1)
    return outer, inner


def require_registers(
    s: Schedule, levels: dict[Var, tuple[Expr, Expr] | None], vector: Var, lanes: int
) -> None:
    """Demand that the accumulators and a row of operands fit into the registers."""
    assert s.task is not None
    accumulators: Expr = Const(1)
    row: Expr = Const(1)
    for v, sizes in levels.items():
        if sizes is None:
            continue
        vectors = (sizes[1] + (lanes - 1)) // lanes if v == vector else sizes[1]
        accumulators = accumulators * vectors
        row = vectors if v == vector else row
    if const_value(accumulators) is None:
        s.require(accumulators + row <= s.task.target.n_registers - 1)


def reduction_order(s: Schedule, reduced: list[Var]) -> tuple[list[Var], list[Var]]:
    """Window axes (short, several) and the main reduction axis."""
    if len(reduced) == 1:
        return ([], reduced) if extent_of(s, reduced[0]) > 8 else (reduced, [])
    main = [v for v in reduced if extent_of(s, v) > 8]
    return [v for v in reduced if v not in main], main


def _steps(s: Schedule, window: list[Var]) -> int:
    total = 1
    for v in window:
        total *= extent_of(s, v)
    return total


def window_options(s: Schedule, window: list[Var]) -> list[bool]:
    """Whether to unroll the window, the better choice first."""
    total = _steps(s, window)
    return [True, False] if total <= 9 else [False, True] if total <= 25 else [False]


def _feeds(s: Schedule, block: str, anchor: str) -> bool:
    store = s.program.blocks()[block]
    return s.program.buffer(store.buffer).role is Role.TEMP and anchor in s.consumers(store.buffer)


def accumulate(s: Schedule, anchor: str, epilogue: str | None, home: Var) -> str | None:
    """Keep the accumulators in registers; returns the block that reads them."""
    if epilogue is None:
        epilogue = s.cache_write(anchor)
    s.reverse_compute_at(epilogue, home)
    s.set_scope(s.program.blocks()[anchor].buffer, Scope.REGISTER)
    return epilogue


def finish_init(s: Schedule, block: str, home: Var, lane: Var) -> None:
    """Unroll what writes the accumulators' initial values, in vectors."""
    loops = s.loops(block)
    inner = loops[loops.index(home) + 1 :]
    for v in inner:
        if v.name == f"{lane.name}.init":
            s.vectorize(v)
        else:
            s.unroll(v)


def finish_epilogue(s: Schedule, block: str, home: Var, vector: VectorAxis) -> None:
    """Unroll what reads the accumulators, in vectors along the same axis."""
    store = s.program.blocks()[block]
    accumulator = next(
        n
        for n in walk(store.value)
        if isinstance(n, Load) and s.program.buffer(n.buffer).scope is Scope.REGISTER
    )
    loops = s.loops(block)
    inner = loops[loops.index(home) + 1 :]
    anchor_store = next(
        x for x in s.program.blocks().values() if x.buffer == accumulator.buffer and x.reduce
    )
    dim = next(
        d
        for d, i in enumerate(anchor_store.indices)
        if any(isinstance(n, Var) and n.name.startswith(f"{vector.axis.name}.") for n in walk(i))
    )
    lane = accumulator.indices[dim]
    if dim != len(accumulator.indices) - 1:
        order = [d for d in range(len(accumulator.indices)) if d != dim] + [dim]
        s.transform_layout(accumulator.buffer, order)
    if not isinstance(lane, Var):
        raise ScheduleError(f"tile: the epilogue {block} does not run along {vector}")
    rest = [v for v in inner if v != lane]
    if inner[-1] != lane:
        s.reorder(*rest, lane)
    for v in rest:
        s.unroll(v)
    s.vectorize(lane)


def _transpose_back(s: Schedule, block: str, shared: Var, dim: int, lanes: int) -> None:
    """Write a block of results whose vectors run along another axis than memory does: by square blocks."""
    s.reverse_compute_at(block, shared)
    made = next(
        n.buffer
        for n in walk(s.program.blocks()[block].value)
        if isinstance(n, Load) and s.program.buffer(n.buffer).role is Role.TEMP
    )
    rank = len(s.program.buffer(made).shape)
    s.transform_layout(made, [d for d in range(rank) if d != dim] + [dim])
    loops = s.loops(block)
    axes = loops[loops.index(shared) + 1 :]
    a0, a1 = s.split(axes[dim], [lanes])
    b0, b1 = s.split(axes[-1], [lanes])
    s.reorder(*(v for v in axes[:-1] if v != axes[dim]), a0, b0, a1, b1)
    s.unroll(a1)
    s.vectorize(b1)


def pack_in_tile(s: Schedule, block: str, shared: Var) -> None:
    """Copy the panels that a tile needs where it begins, reading rows as they lie in memory."""
    s.compute_at(block, shared)
    loops = s.loops(block)
    panels, *rest, lane = loops[loops.index(shared) + 1 :]
    s.reorder(*rest, panels, lane)
    s.vectorize(lane)


def _place_producers(
    s: Schedule, producers: list[str], anchor: str, shared: Var, lane: Var, *, small: bool
) -> None:
    for block in producers:
        options = ["tile", "root"] if _read_once(s, block, anchor) else ["root", "tile"]
        if small and _padding_of_scalars(s, block, anchor, lane):
            options.append("inline")
        at = s.knob.choice(f"{block}.at", options)
        if at == "inline":
            s.compute_inline(block)
            continue
        if at == "tile":
            s.compute_at(block, shared)
            loops = s.loops(block)
            s.vectorize(loops[-1])
            continue
        plain_nest(s, block)


def _read_once(s: Schedule, block: str, anchor: str) -> bool:
    """Whether no two tiles read the same elements of a producer, but for those at their borders."""
    buffer = s.program.blocks()[block].buffer
    reads = loads_of(s.program.blocks()[anchor].value, buffer)
    used = {n for r in reads for i in r.indices for n in walk(i)}
    reduced = s.reduction(anchor)
    path, _ = s.program.path(anchor)
    ranges = loop_ranges([f for f in path if f.var not in reduced])
    return all(v in used for v, n in ranges if const_value(n) != 1)


def _padding_of_scalars(s: Schedule, block: str, anchor: str, lane: Var) -> bool:
    """Whether a block pads an operand whose elements the anchor spreads over all lanes.

    Then code can be written that leaves out what is multiplied by padding.
    """
    store = s.program.blocks()[block]
    if not isinstance(store.value, Select) or s.consumers(store.buffer) != [anchor]:
        return False
    reads = loads_of(s.program.blocks()[anchor].value, store.buffer)
    return not any(n == lane for r in reads for i in r.indices for n in walk(i))


def is_scheduled(s: Schedule, block: str) -> bool:
    """Whether a block has annotated loops, or runs at load time only."""
    path, _ = s.program.path(block)
    from tilewright.schedule.program import LoopKind

    return (
        any(f.kind is not LoopKind.SERIAL for f in path)
        or s.program.buffer(s.program.blocks()[block].buffer).role is Role.PACKED
    )

"""A draft cost model: what the ports and the caches of a core must at least spend.

The unit of time is one full-width fused multiply-add at the core's peak rate. References: the
roofline model (Williams et al., 2009); reuse by footprints at each loop level as in Halide's
(Adams et al., 2019) and Ansor's (Zheng et al., 2020) features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.schedule.analysis import (
    LINE,
    Access,
    BlockFacts,
    LoopFacts,
    footprint,
    number,
    product,
)
from tilewright.schedule.program import LoopKind, Program, Role, Scope
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    Const,
    Expr,
    Select,
    ceildiv,
    maximum,
)

if TYPE_CHECKING:
    from tilewright.codegen.target import Target

__all__ = ["BlockCost", "block_cost"]

FMA_LATENCY = 4.0  # cycles
SPECIAL_COST = 12.0  # FMAs of one vector exp, tanh, erf
LOOP_COST = 1.0
SHARED_CACHE = 40e9  # bytes a second into one core
PIECE_S = 2e-9  # to start fetching from another place in memory
LAUNCH_S = 7e-7  # to share work among threads and to wait for them
MAX_STRIDE = 4  # between lanes, of loads by whole vectors
TRANSPOSED = 4.0  # shuffles for a vector of a square block


@dataclass(frozen=True)
class BlockCost:
    """Expressions of the cost of one block, in FMA units and bytes, for all iterations."""

    work: Expr  # vector operations in the body
    loads: Expr  # vector loads of the body
    stores: Expr
    chains: Expr  # independent accumulators
    bodies: Expr  # times the body runs
    cycles: Expr  # of all bodies
    traffic: tuple[Expr, ...]  # bytes into L1, L2, L3
    pieces: Expr  # of neighbouring lines that come from beyond the second cache
    footprints: tuple[Expr, ...]  # bytes touched inside each loop level, outermost first
    lines: tuple[Expr, ...]
    waste: Expr  # computed lanes over useful lanes


def lanes_of(dtype: DType, target: Target) -> int:
    """Elements of one vector register, in which float16 and bfloat16 are float32."""
    size = 4 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype.n_bytes
    return max(1, target.vector_bits // (8 * size))


def _count(
    a: Access, unrolled: list[LoopFacts], lane: LoopFacts | None, chunks: Expr, vl: int
) -> tuple[Expr, Expr]:
    """Load or store instructions of one body, and shuffles."""
    times = product([f.extent for f in unrolled if f.var in a.moves])
    none = number(0.0)
    if lane is None or a.lane_stride == 0:
        return number(times), none
    vectors = number(times * chunks)
    if a.lane_stride == 1:
        return vectors, none
    if a.lane_stride is not None and a.lane_stride <= MAX_STRIDE and not a.is_store:
        return vectors * float(a.lane_stride), vectors * float(a.lane_stride - 1)
    one_by_one = number(times * lane.extent)
    across = next((f for f in unrolled if not a.is_store and a.is_contiguous(f.var)), None)
    if across is None or a.buffer.role is Role.OUTPUT:
        return one_by_one, none
    whole = across.extent >= vl  # square blocks, transposed in registers
    blocks = one_by_one / float(vl)
    return (
        Select(whole, blocks, one_by_one, DType.FLOAT64),
        Select(whole, blocks * TRANSPOSED, none, DType.FLOAT64),
    )


@dataclass(frozen=True)
class _Level:
    """What all accesses touch inside a loop: bytes, lines, the room of a cache that they need; and of each
    the bytes of its lines, the pieces."""

    n_bytes: Expr
    lines: Expr
    room: Expr
    each_bytes: list[Expr]
    each_pieces: list[Expr]


def _fits(facts: BlockFacts, accesses: list[Access], n_loops: int) -> list[_Level]:
    """For each depth: what is touched inside."""
    out = []
    for depth in range(n_loops + 1):
        each = [footprint(a, facts.loops[depth:]) for a in accesses]
        room: Expr = Const(0.0, DType.FLOAT64)
        total: Expr = Const(0)
        lines: Expr = Const(0)
        for f in each:
            room = room + number(f.n_bytes) * f.crowding
            total, lines = total + f.n_bytes, lines + f.lines
        out.append(
            _Level(total, lines, room, [f.lines * LINE for f in each], [f.pieces for f in each])
        )
    return out


def _moved(facts: BlockFacts, accesses: list[Access], each: list[list[Expr]]) -> list[Expr]:
    """For each depth: what is fetched if just what is inside the loop there stays in the cache."""
    out = []
    for depth, amounts in enumerate(each):
        moved: Expr = Const(0)
        for a, amount in zip(accesses, amounts):
            outer = list(facts.loops[:depth])
            while outer and outer[-1].var not in a.moves:
                outer.pop()
            moved = moved + product([f.extent for f in outer]) * amount
        out.append(number(moved))
    return out


def _traffic(moved: list[Expr], levels: list[_Level], size: int, all_bytes: Expr) -> Expr:
    """What crosses into a cache of that size: refetch what does not fit inside a loop.

    Nothing, if the cache holds all that the kernel touches from one call to the next.
    """
    result = moved[-1]
    for depth in reversed(range(len(levels) - 1)):
        result = Select(levels[depth].room <= float(size), moved[depth], result, DType.FLOAT64)
    return Select(all_bytes <= size, number(0.0), result, DType.FLOAT64)


def bytes_of(program: Program, facts: list[BlockFacts]) -> Expr:
    """Bytes of all memory that some blocks of a program touch."""
    touched = {a.buffer.name for f in facts for a in f.accesses}
    total: Expr = Const(0)
    for b in program.buffers:
        if b.name in touched and b.scope is not Scope.REGISTER:
            total = total + product(list(b.shape)) * b.dtype.n_bytes
    return total


def block_cost(facts: BlockFacts, target: Target, all_bytes: Expr) -> BlockCost:
    """Derive the cost of one block of a kernel that touches so many bytes."""
    vl = lanes_of(facts.store.value.dtype, target)
    lane = facts.lanes
    chunks: Expr = ceildiv(lane.extent, vl) if lane else Const(1)
    unrolled = [f for f in facts.loops if f.kind is LoopKind.UNROLLED]
    register = {id(f) for f in unrolled} | ({id(lane)} if lane else set())
    register |= {id(f) for f in facts.loops if f.kind is LoopKind.TENSORIZED}
    outer = [f for f in facts.loops if id(f) not in register]
    bodies = product([f.extent for f in outer])
    copies = product([f.extent for f in unrolled])
    work = copies * chunks
    inner_reduction = product([f.extent for f in outer if f.reduces])
    loads: Expr = Const(0.0, DType.FLOAT64)
    stores: Expr = Const(0.0, DType.FLOAT64)
    shuffles: Expr = Const(0.0, DType.FLOAT64)
    memory: list[Access] = []
    for a in facts.accesses:
        if a.buffer.scope is Scope.REGISTER:
            continue
        memory.append(a)
        count, mixed = _count(a, unrolled, lane, chunks, vl)
        shuffles = shuffles + mixed
        if a.is_store:
            stores = stores + (count / number(inner_reduction) if facts.store.reduce else count)
        else:
            loads = loads + count
    chains = product([f.extent for f in unrolled if not f.reduces])
    if lane and not lane.reduces:
        chains = chains * chunks
    ops = max(1.0, facts.flops / 2) + SPECIAL_COST * facts.special
    busy = maximum(number(work) * ops + shuffles, maximum(loads, stores * 2.0))
    if facts.store.reduce:
        depth = product([f.extent for f in unrolled if f.reduces])
        busy = maximum(busy, number(depth) * (FMA_LATENCY * target.fma_units))
    cycles = number(bodies) * (busy + LOOP_COST)
    levels = _fits(facts, memory, len(facts.loops))
    moved = _moved(facts, memory, [v.each_bytes for v in levels])
    moved_pieces = _moved(facts, memory, [v.each_pieces for v in levels])
    traffic = tuple(
        _traffic(moved, levels, size, all_bytes)
        for size in (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    )
    waste = number(chunks * vl) / number(lane.extent) if lane else number(float(vl))
    return BlockCost(
        number(work), loads, stores, number(chains), number(bodies), cycles, traffic,
        _traffic(moved_pieces, levels, target.l2_bytes, all_bytes),
        tuple(number(v.n_bytes) for v in levels), tuple(number(v.lines) for v in levels), waste,
    )  # fmt: skip


def block_seconds(facts: BlockFacts, cost: BlockCost, target: Target) -> Expr:
    """Predicted seconds of one block on all its threads.

    Times of caches and arithmetic add up: little of them overlaps in code that is not the best.
    """
    vl = lanes_of(facts.store.value.dtype, target)
    unit = 2.0 * vl / (target.peak_gflops * 1e9)
    line = vl * facts.store.value.dtype.n_bytes / unit  # bytes a second at one vector a unit
    memory = target.bandwidth_gbs * 1e9
    seconds = cost.cycles * unit + cost.traffic[0] / line
    seconds = seconds + cost.traffic[1] / min(line / 6, SHARED_CACHE)
    seconds = seconds + cost.traffic[2] / memory + cost.pieces * PIECE_S
    return seconds / speedup(facts, target)


def launch_seconds(facts: BlockFacts) -> Expr:
    """Predicted seconds to start the threads of the loop around a block; a single iteration needs none."""
    return Select(parallel_extent(facts) > 1, number(LAUNCH_S), number(0.0), DType.FLOAT64)


def speedup(facts: BlockFacts, target: Target) -> Expr:
    """How much faster the block runs on the target's threads."""
    shared = parallel_extent(facts)
    threads = target.n_threads
    if threads == 1:
        return number(1.0)
    return number(shared) / number(ceildiv(shared, threads))


def parallel_extent(facts: BlockFacts) -> Expr:
    """Iterations that threads share."""
    return product([f.extent for f in facts.loops if f.kind is LoopKind.PARALLEL])


def counts(facts: BlockFacts) -> bool:
    """Whether the block runs at every call (packing of constants does not)."""
    return facts.accesses[0].buffer.role is not Role.PACKED

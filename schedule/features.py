"""The features that cost models learn from: a fixed-width schema, derived once per sketch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.schedule.analysis import BlockFacts, block_facts, number, product
from tilewright.schedule.analytic import (
    BlockCost,
    block_cost,
    block_seconds,
    bytes_of,
    counts,
    lanes_of,
    launch_seconds,
    parallel_extent,
    speedup,
)
from tilewright.schedule.program import LoopKind, Pragma, Program
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Const, Expr, Knob, Unary, ceildiv, const_value, substitute

if TYPE_CHECKING:
    from tilewright.codegen.target import Target

__all__ = ["FEATURE_NAMES", "FEATURE_SCHEMA", "SketchFeatures", "sketch_features"]

FEATURE_SCHEMA = "tilewright-cpu-2"
N_LEVELS = 8
N_LOOPS = 6


def _names() -> tuple[str, ...]:
    names = [
        "seconds",
        "n_blocks",
        "parallel",
        "speedup",
        "spread",
        "threads",
        "lanes",
        "l1",
        "l2",
        "l3",
        "peak",
    ]
    for block in ("main", "next", "rest"):
        names += [f"{block}.{n}" for n in ("cycles", "traffic1", "traffic2", "traffic3", "seconds")]
    names += [f"main.{n}" for n in ("work", "loads", "stores", "chains", "bodies", "waste", "flops", "special",
              "load_ratio", "registers", "broadcasts", "vectors", "gathers", "code", "reduction", "tiles",
              "prefetch", "nontemporal")]  # fmt: skip
    for level in range(N_LEVELS):
        names += [f"main.bytes{level}", f"main.lines{level}"]
    for loop in range(N_LOOPS):
        names += [f"main.extent{loop}", f"main.reduces{loop}"]
    names += [
        f"next.{n}" for n in ("work", "loads", "stores", "waste", "bodies", "gathers", "special")
    ]
    return tuple(names)


FEATURE_NAMES = _names()


@dataclass(frozen=True)
class SketchFeatures:
    """Feature expressions in the order of `FEATURE_NAMES`, predicted seconds, register need."""

    exprs: tuple[Expr, ...]
    seconds: Expr
    registers: Expr
    code_size: Expr
    parallel: Expr


def _log(e: Expr) -> Expr:
    return Unary("log", number(e) + 1.0, DType.FLOAT64)


def _trips(facts: BlockFacts) -> int:
    """Iterations of a block without tiles: all knobs at one."""
    knobs = {n: Const(1) for f in facts.loops for n in _knobs(f.extent)}
    return max(1, int(const_value(substitute(facts.trips, dict(knobs))) or 1))


def _weight(facts: BlockFacts) -> int:
    """Rough work of a block, to rank blocks."""
    return _trips(facts) * (facts.flops + 10 * facts.special + 1)


def _knobs(e: Expr) -> list[Knob]:
    from tilewright.tensor.expr import walk

    return [n for n in walk(e) if isinstance(n, Knob)]


def _zero() -> Expr:
    return Const(0.0, DType.FLOAT64)


def _sum(items: list[Expr]) -> Expr:
    out = _zero()
    for e in items:
        out = out + number(e)
    return out


def sketch_features(program: Program, target: Target) -> SketchFeatures:
    """Derive all features of a (symbolic) program on a target."""
    facts = [f for f in block_facts(program) if counts(f)]
    touched = bytes_of(program, facts)
    costs = [block_cost(f, target, touched) for f in facts]
    seconds = [block_seconds(f, c, target) for f, c in zip(facts, costs)]
    order = sorted(
        range(len(facts)), key=lambda n: (facts[n].store.reduce is None, -_weight(facts[n]))
    )
    main = order[0]
    total = _sum(seconds)
    if target.n_threads > 1:
        regions = {
            f.loops[0].var: f for f in facts if f.loops and f.loops[0].kind is LoopKind.PARALLEL
        }
        total = total + _sum([launch_seconds(f) for f in regions.values()])
    m, c = facts[main], costs[main]
    shared = parallel_extent(m)
    vl = lanes_of(m.store.value.dtype, target)
    out: list[Expr] = [
        Unary("log", total * 1e9 + 1.0, DType.FLOAT64), number(len(facts)), _log(shared), speedup(m, target),
        number(shared) / float(target.n_threads), number(target.n_threads), number(vl),
        *(number(x) for x in (target.l1_bytes / 1024, target.l2_bytes / 1024, target.l3_bytes / 1024)),
        number(target.peak_gflops),
    ]  # fmt: skip
    groups = [order[:1], order[1:2], order[2:]]
    for group in groups:
        out += [_log(_sum([costs[n].cycles for n in group]))]
        out += [_log(_sum([costs[n].traffic[k] for n in group])) for k in range(3)]
        out += [_log(_sum([seconds[n] for n in group]) * 1e9)]
    registers = _registers(m, c, vl)
    out += _main_features(m, c, registers)
    out += _level_features(m, c)
    out += _next_features([facts[n] for n in groups[1]], [costs[n] for n in groups[1]])
    assert len(out) == len(FEATURE_NAMES), (len(out), len(FEATURE_NAMES))
    code = _sum([k.work * float(max(1, f.flops)) + k.loads for f, k in zip(facts, costs)])
    return SketchFeatures(tuple(out), total, registers, code, shared)


def _registers(m: BlockFacts, c: BlockCost, vl: int) -> Expr:
    """Vector registers that the main block's body needs: accumulators, one row of operands, a splat."""
    lane = m.lanes
    row: Expr = number(ceildiv(lane.extent, vl)) if lane is not None else number(1.0)
    accumulators = c.chains if m.store.reduce else number(1.0)
    return accumulators + row + 1.0


def _main_features(m: BlockFacts, c: BlockCost, registers: Expr) -> list[Expr]:
    broadcasts = sum(a.lane_stride == 0 and not a.is_store for a in m.accesses)
    vectors = sum(a.lane_stride == 1 and not a.is_store for a in m.accesses)
    gathers = sum(a.lane_stride not in (0, 1) for a in m.accesses)
    return [
        _log(c.work), _log(c.loads), _log(c.stores), _log(c.chains), _log(c.bodies), c.waste,
        number(m.flops), number(m.special), c.loads / c.work, registers,
        number(broadcasts), number(vectors), number(gathers), _log(c.work * c.bodies),
        _log(product([f.extent for f in m.loops if f.reduces])),
        number(m.trips) / float(_trips(m)), _log(_sum([p.distance for p in m.store.prefetches])),
        number(float(Pragma.NONTEMPORAL in m.store.pragmas)),
    ]  # fmt: skip


def _level_features(m: BlockFacts, c: BlockCost) -> list[Expr]:
    out: list[Expr] = []
    levels = list(zip(c.footprints, c.lines))[::-1][:N_LEVELS]  # innermost first
    for level in range(N_LEVELS):
        n_bytes, n_lines = levels[min(level, len(levels) - 1)]
        out += [_log(n_bytes), _log(n_lines)]
    loops = [f for f in m.loops if f.kind is not LoopKind.PARALLEL][::-1][:N_LOOPS]
    for n in range(N_LOOPS):
        if n < len(loops):
            out += [_log(loops[n].extent), number(float(loops[n].reduces))]
        else:
            out += [_zero(), _zero()]
    return out


def _next_features(facts: list[BlockFacts], costs: list[BlockCost]) -> list[Expr]:
    if not facts:
        return [_zero()] * 7
    f, c = facts[0], costs[0]
    gathers = sum(a.lane_stride not in (0, 1) for a in f.accesses)
    return [
        _log(c.work),
        _log(c.loads),
        _log(c.stores),
        c.waste,
        _log(c.bodies),
        number(gathers),
        number(f.special),
    ]

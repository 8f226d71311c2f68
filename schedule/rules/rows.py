"""Row-wise reductions: softmax, norms, sums over trailing axes; all stages of a row together."""

from __future__ import annotations

import math

from tilewright.errors import ScheduleError
from tilewright.schedule.program import Role, Scope
from tilewright.schedule.rules.common import extent_of, inline_cheap, lane_count, vector_sizes
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Var, const_value

__all__ = ["rows"]

MOST_REPEATED = 2
MOST_IN_REGISTERS = 12  # vectors of a row


def rows(s: Schedule) -> None:
    """Share the rows among threads; compute every stage for one row at a time, in vectors."""
    inline_cheap(s)
    blocks = s.blocks()
    final = blocks[-1]
    spatial, reduced = s.spatial(final), s.reduction(final)
    depth = len(spatial) if reduced else _row_loops(s, blocks, spatial)
    if depth == 0:
        raise ScheduleError("rows: the reductions leave no axis to share; this rule needs rows")
    rows = spatial[:depth]
    called = [b for b in blocks if not _at_load(s, b)]
    whole = _short(s, called, rows) and s.knob.choice("row", ["loops", "registers"]) == "registers"
    if whole:
        count = s.knob.values("rows", [n for n in (1, 2, 3, 4) if n <= extent_of(s, rows[-1])])
        rows[-1], some = s.split(rows[-1], [count])
        s.reorder(rows[-1], some)
    outer = s.fuse(*rows)
    once = {b: _iterations(s, b) for b in called if s.reduction(b)}
    for block in reversed(called[:-1]):
        s.compute_at(block, outer)
    for block, n in once.items():
        if _iterations(s, block) > MOST_REPEATED * n:
            raise ScheduleError(f"rows: rows share what {block} computes, which would be repeated")
    for block in called:
        if whole:
            _in_registers(s, block, outer)
        else:
            _vectorize(s, block, outer)
    s.parallel(outer)


def _at_load(s: Schedule, block: str) -> bool:
    """Whether a block runs once, at load time."""
    return s.program.buffer(s.program.blocks()[block].buffer).role is Role.PACKED


def _short(s: Schedule, blocks: list[str], rows: list[Var]) -> bool:
    """Whether all that is computed of a row fits into registers, in more than one stage."""
    n_rows = math.prod(extent_of(s, v) for v in rows)
    for block in blocks:
        size = _iterations(s, block) / n_rows
        if size > MOST_IN_REGISTERS * lane_count(s, block) or size not in (
            1,
            const_value(s.extent(s.loops(block)[-1])),
        ):
            return False
    return len(blocks) > 1


def _in_registers(s: Schedule, block: str, outer: Var) -> None:
    """All vectors of a row, and some rows beside each other, as values."""
    loops = s.loops(block)
    *others, last = loops[loops.index(outer) + 1 :]
    for v in others:
        s.unroll(v)
    s.vectorize(last)
    buffer = s.program.blocks()[block].buffer
    if s.program.buffer(buffer).role is Role.TEMP:
        s.set_scope(buffer, Scope.REGISTER)


def _iterations(s: Schedule, block: str) -> float:
    """How often a block's body runs; parts that are not numbers count once."""
    return math.prod(const_value(s.extent(v)) or 1 for v in s.loops(block))


def _row_loops(s: Schedule, blocks: list[str], spatial: list[Var]) -> int:
    """Leading axes of the result that no stage reduces."""
    reductions = [b for b in blocks if s.reduction(b) and not _at_load(s, b)]
    if not reductions:
        return max(1, len(spatial) - 1)
    kept = []
    for b in reductions:
        loops = s.spatial(b)
        kept.append(sum(1 for v in loops if extent_of(s, v) > 1))
    sizes = [extent_of(s, v) for v in spatial]
    depth, seen = 0, 0
    for n in sizes:
        if n > 1:
            if seen == min(kept):
                break
            seen += 1
        depth += 1
    return min(depth, len(spatial) - 1) if len(spatial) > 1 else 0


def _vectorize(s: Schedule, block: str, outer: Var) -> None:
    loops = s.loops(block)
    inner = loops[loops.index(outer) + 1 :]
    candidates = [v for v in inner if (const_value(s.extent(v)) or 2) > 1]
    if not candidates:
        return
    last = candidates[-1]
    extent = const_value(s.extent(last))
    if extent is None or last != inner[-1]:
        return
    lanes = lane_count(s, block)
    size = s.knob.values(f"{block}.v", vector_sizes(int(extent), lanes, most=4))
    if const_value(size) == extent:
        s.vectorize(last)
        return
    _, lane = s.split(last, [size])
    s.vectorize(lane)

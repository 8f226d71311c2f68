"""Convolutions in Winograd's form: transform tiles, multiply over channels, transform back.

Some rows of tiles pass through all stages at a time. Transformed inputs and products stay in the second
cache; a product's register tile has output channels in vectors and neighbouring tiles beside each other.
The rule finds the stages by what reads what.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import ScheduleError
from tilewright.schedule.program import Scope
from tilewright.schedule.rules.common import anchor_of, extent_of, inline_cheap, lane_count
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Load, Var, walk

__all__ = ["winograd"]

ROWS = (1, 2, 3, 4, 7)  # of tiles that are computed together
BLOCKS = (1, 2, 4, 8, 16, 32)  # of output channels, in vectors
REGISTER_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)


@dataclass(frozen=True)
class _Stages:
    """Block names, in the order in which they run."""

    pad: str | None
    rows: str
    tile: str
    product: str
    columns: str
    places: str
    final: str


def _stages(s: Schedule) -> _Stages:
    product = anchor_of(s, "winograd")
    stores = s.program.blocks()

    def before(block: str) -> str | None:
        makers = [b for b, x in stores.items() if block in s.consumers(x.buffer)]
        return makers[0] if len(makers) == 1 else None

    def after(block: str) -> str:
        readers = s.consumers(stores[block].buffer)
        if len(readers) != 1:
            raise ScheduleError(f"winograd: {block} has {len(readers)} readers, not one")
        return readers[0]

    tile = before(product)
    rows = before(tile) if tile else None
    if tile is None or rows is None or len(s.spatial(product)) not in (6, 7):
        raise ScheduleError(f"winograd: {product} is no product of transformed tiles")
    columns = after(product)
    places = after(columns)
    found = _Stages(before(rows), rows, tile, product, columns, places, after(places))
    if found.final != s.blocks()[-1] or len(s.loops(found.final)) not in (4, 5):
        raise ScheduleError(f"winograd: {found.final} is not the only stage after the transforms")
    return found


def winograd(s: Schedule) -> None:
    """The rule; see the module's docstring."""
    anchor_of(s, "winograd")
    inline_cheap(s)
    stages = _stages(s)
    lanes, size = lane_count(s, stages.product), extent_of(s, s.spatial(stages.product)[-4])
    early = s.knob.choice("tiles", ["with_rows", "first"]) == "first"
    local = stages.product
    product = s.cache_write(local)
    shared, block = _final(s, stages.final, size - 2, lanes, early)
    s.compute_at(stages.places, block)
    inner = _places(s, stages.places, size - 2, lanes, block)
    s.compute_at(stages.columns, inner)
    s.compute_at(product, block)
    _product(s, stages, product, lanes, block)
    if early:
        loops = s.loops(stages.tile)
        _tiles(s, stages, loops)
        s.parallel(s.fuse(*s.loops(stages.tile)[:-3]))
    else:
        s.compute_at(stages.tile, shared)
        _tiles(s, stages, _below(s, stages.tile, shared))
    _columns(s, stages.columns, inner)
    s.parallel(shared)
    s.require(s.code_size() <= 3000.0)


def _below(s: Schedule, block: str, loop: Var) -> list[Var]:
    loops = s.loops(block)
    return loops[loops.index(loop) + 1 :]


def _final(s: Schedule, block: str, m: int, lanes: int, early: bool) -> tuple[Var, Var]:
    """Rows of tiles, blocks of channels; square blocks of channels and places, to be transposed."""
    n, oc, *depth, oh, ow = s.loops(block)
    rows = s.knob.values("rows", [r for r in ROWS if (r - 1) * m < extent_of(s, oh)])
    count = s.knob.values("channels", [b for b in BLOCKS if (b - 1) * lanes < extent_of(s, oc)])
    h0, h1, h2 = s.split(oh, [rows, m])
    c0, c1, c2 = s.split(oc, [count, lanes])
    w0, w1 = s.split(ow, [lanes])
    inner = [c0, h1, h2, c1, w0, c2, w1]
    s.reorder(*((n, *depth, h0) if early else (n, h0, *depth)), *inner)
    s.unroll(c2)
    s.vectorize(w1)
    if early:
        shared = s.fuse(n, *depth, h0, c0)
        return shared, shared
    return s.fuse(n, h0), c0


def _places(s: Schedule, block: str, m: int, lanes: int, home: Var) -> Var:
    """One tile and one vector of channels at a time; returns the loop around it."""
    h, w, c = _below(s, block, home)[-3:]
    h0, h1 = s.split(h, [m])
    w0, w1 = s.split(w, [m])
    c0, c1 = s.split(c, [lanes])
    s.reorder(h0, w0, c0, h1, w1, c1)
    s.unroll(h1)
    s.unroll(w1)
    s.vectorize(c1)
    return c0


def _columns(s: Schedule, block: str, home: Var) -> None:
    *others, lane = _below(s, block, home)
    for v in others:
        s.unroll(v)
    s.vectorize(lane)


def _product(s: Schedule, stages: _Stages, copy: str, lanes: int, home: Var) -> None:
    """Register tiles: some neighbouring tiles by some vectors of output channels."""
    assert s.task is not None
    tiles, channels = s.spatial(stages.product)[-2:]
    wide, many = extent_of(s, tiles), extent_of(s, channels)
    width = s.knob.values("tiles.r", [t for t in REGISTER_TILES if t <= wide])
    vectors = s.knob.values("channels.r", [v for v in (1, 2, 3, 4, 6) if (v - 1) * lanes < many])
    s.require(width * vectors + vectors <= s.task.target.n_registers - 1)
    steps = s.knob.values("ic.u", [1, 2, 4, 8])
    *lead, th, p, q, w, c = _below(s, copy, home)
    w0, w1 = s.split(w, [width])
    c0, c1 = s.split(c, [vectors * lanes])
    s.reorder(*lead, p, q, c0, th, w0, w1, c1)
    s.unroll(w1)
    s.vectorize(c1)
    s.compute_at(stages.product, w0)
    store = s.program.blocks()[stages.product]
    weights = _weights(s, stages)
    last = len(s.program.buffer(weights).shape) - 1
    s.cache_read(stages.product, weights, pack=[(last, vectors * lanes)])
    s.set_scope(store.buffer, Scope.REGISTER)
    reduced = s.reduction(stages.product)
    *spatial, lane = (v for v in _below(s, stages.product, w0) if v not in reduced)
    k0, k1 = s.split(reduced[-1], [steps])
    steps_outside = [*reduced[:-1], k0]
    s.reorder(*steps_outside, k1, *spatial, lane)
    s.decompose_reduction(stages.product, steps_outside[0])
    s.unroll(k1)
    for v in spatial:
        s.unroll(v)
    s.vectorize(lane)
    *spatial, lane = _below(s, f"{stages.product}.init", w0)
    for v in spatial:
        s.unroll(v)
    s.vectorize(lane)


def _weights(s: Schedule, stages: _Stages) -> str:
    """The operand of the product that is no stage's."""
    value = s.program.blocks()[stages.product].value
    made = {x.buffer for x in s.program.blocks().values()}
    return next(n.buffer for n in walk(value) if isinstance(n, Load) and n.buffer not in made)


def _tiles(s: Schedule, stages: _Stages, loops: list[Var]) -> None:
    """Each channel's padded rows, their sums along columns, then along rows."""
    *lead, p, q, c, w = loops
    s.reorder(*lead, c, p, q, w)
    s.unroll(q)
    s.compute_at(stages.rows, c)
    if stages.pad is not None:
        s.compute_at(stages.pad, c)
        *_, v = _below(s, stages.pad, c)
        s.vectorize(s.split(v, [lane_count(s, stages.pad)])[1])
    s.vectorize(w)
    *outer, a, v = _below(s, stages.rows, c)
    v0, v1 = s.split(v, [lane_count(s, stages.rows)])
    s.reorder(*outer, v0, a, v1)
    s.unroll(a)
    s.vectorize(v1)

"""Loops and stores to instructions."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen import memory, values
from tilewright.codegen.dot import emit_tensorized
from tilewright.codegen.halves import HALVES
from tilewright.codegen.irbuilder import constant, llvm_type, vector_type
from tilewright.codegen.partition import threshold
from tilewright.codegen.prefetch import emit_prefetches
from tilewright.codegen.ranges import bounds, resolve
from tilewright.codegen.state import Lanes, State, Value
from tilewright.errors import BuildError
from tilewright.schedule.program import For, LoopKind, Pragma, Stmt, Store
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Binary, Cast, Expr, Load, Var, children, walk
from tilewright.tensor.te import identity

__all__ = ["counted_loop", "emit_body", "emit_parts"]

MAX_UNROLL = 512
MAX_TAIL = 4
MAX_ALONE = 2  # iterations of a loop that are written on their own although not all is known there
MAX_COPIES = 27  # of a body, made to decide conditions
_OPERATOR = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def emit_body(st: State, body: tuple[Stmt, ...]) -> None:
    """Write statements in order."""
    for s in body:
        if isinstance(s, For):
            _loop(st, s)
        else:
            _store(st, s, None)


def _loop(st: State, s: For) -> None:
    reduction = _lane_reduction(s) if s.kind is not LoopKind.PARALLEL else None
    if reduction is not None and reduction[0].block not in st.accumulators:
        _with_accumulators(st, s, *reduction)
        return
    if s.parts:
        _fused(st, s)
        return
    trips = resolve(s.extent, st.ranges)
    if s.kind is LoopKind.VECTORIZED and trips is not None:
        if not _tensorized(s):
            _vector_loop(st, s, trips)
            return
        if emit_tensorized(st, s, trips):
            return
    if trips is None:
        _dynamic_loop(st, s)
        return
    if s.kind is LoopKind.UNROLLED and trips <= MAX_UNROLL:
        st.unrolled[s.var] = trips
        for n in range(trips):
            st.define(s.var, n, n, n)
            emit_body(st, s.body)
        del st.unrolled[s.var]
        return
    start, alone = 0, 0
    while start < trips:
        cut = threshold(s.body, s.var, start, trips, st.ranges, conditions=st.copies <= MAX_COPIES)
        if cut == start:  # nothing is gained by a range: take iterations one by one, or give up
            alone += 1
            cut = start + 1 if trips - start <= MAX_TAIL or alone <= MAX_ALONE else trips
        with st.copy(start > 0 or cut < trips):
            _range(st, s.var, start, cut, lambda: emit_body(st, s.body))
        start = cut


def _tensorized(s: For) -> bool:
    inner = s.body[0]
    return isinstance(inner, For) and inner.kind is LoopKind.TENSORIZED


def _range(st: State, var: Var, low: int, high: int, body: Callable[[], None]) -> None:
    if high - low == 1:
        st.define(var, low, low, low)
        body()
        return
    counted_loop(st, var, str(low), str(high), low, high - 1, body)


def counted_loop(
    st: State,
    var: Var,
    start: str,
    stop: str,
    low: int,
    high: int,
    body: Callable[[], None],
    *,
    guard: bool = False,
) -> None:
    """A loop of at least one iteration (of any number with `guard`)."""
    fb = st.fb
    head, latch, after = fb.label("loop"), fb.label("latch"), fb.label("after")
    before = fb.block
    if guard:
        some = fb.value(f"icmp slt i64 {start}, {stop}")
        fb.line(f"br i1 {some}, label %{head}, label %{after}")
    else:
        fb.line(f"br label %{head}")
    fb.start(head)
    name, following = fb.new("i"), fb.new("n")
    fb.line(f"{name} = phi i64 [{start}, %{before}], [{following}, %{latch}]")
    with st.region():
        st.order.pop(var, None)
        st.define(var, name, low, high)
        body()
    fb.line(f"br label %{latch}")
    fb.start(latch)
    fb.line(f"{following} = add nuw nsw i64 {name}, 1")
    again = fb.value(f"icmp slt i64 {following}, {stop}")
    fb.line(f"br i1 {again}, label %{head}, label %{after}")
    fb.start(after)


def _dynamic_loop(st: State, s: For) -> None:
    """A trip count known at run time only; vector lanes run one by one."""
    high = bounds(s.extent, st.ranges)[1]
    if high == float("inf"):
        raise BuildError(f"loop {s.var.name}: no bound is known for its extent {s.extent}")
    stop = values.index(st, s.extent)
    counted_loop(
        st,
        s.var,
        "0",
        str(stop),
        0,
        max(0, int(high) - 1),
        lambda: emit_body(st, s.body),
        guard=True,
    )


def _fused(st: State, s: For) -> None:
    trips = resolve(s.extent, st.ranges)
    if trips is None:
        raise BuildError(f"loop {s.var.name}: its extent {s.extent} is not a number")
    if trips > 0:
        _range(st, s.var, 0, trips, lambda: emit_parts(st, s))


def emit_parts(st: State, s: For) -> None:
    """The body of a fused (or shared) loop whose variable is bound: decode the parts, cut, write."""
    parts = s.parts or ((s.var, s.extent),)
    sizes: list[int] = []
    for v, e in parts:
        size = resolve(e, st.ranges)
        if size is None:
            raise BuildError(f"loop {s.var.name}: the extent {e} of {v.name} is not a number")
        sizes.append(size)
    if s.parts:
        rest = st.names[s.var]
        for n in reversed(range(len(parts))):
            v, size = parts[n][0], sizes[n]
            if size == 1:
                st.define(v, 0, 0, 0)
            elif isinstance(rest, int):
                st.define(v, rest % size, rest % size, rest % size)
                rest //= size
            elif n == 0:
                st.define(v, rest, 0, size - 1)
            else:
                st.define(v, st.fb.value(f"urem i64 {rest}, {size}"), 0, size - 1)
                rest = st.fb.value(f"udiv i64 {rest}, {size}")
    _cases(st, [v for v, _ in parts], s.body)


def _cases(st: State, variables: list[Var], body: tuple[Stmt, ...]) -> None:
    """Branch on each variable between full tiles and the last, shorter ones."""
    if not variables:
        emit_body(st, body)
        return
    v, rest = variables[0], variables[1:]
    name, (low, high) = st.names[v], st.ranges[v]
    wanted = st.copies <= MAX_COPIES
    cut = threshold(body, v, low, high + 1, st.ranges, conditions=wanted)
    if cut == low and wanted and high - low >= 2:
        cut = low + 1  # the first iteration is like no other
    if isinstance(name, int) or cut in (low, high + 1):
        _cases(st, rest, body)
        return
    fb = st.fb
    full, tail, after = fb.label("full"), fb.label("tail"), fb.label("after")
    test = fb.value(f"icmp slt i64 {name}, {cut}")
    fb.line(f"br i1 {test}, label %{full}, label %{tail}")
    for label, span in ((full, (low, cut - 1)), (tail, (cut, high))):
        fb.start(label)
        with st.region(), st.copy(True):
            bound: str | int = span[0] if span[0] == span[1] else name
            st.names[v], st.ranges[v] = bound, span
            _cases(st, rest if label == full or cut == high else variables, body)
        fb.line(f"br label %{after}")
    st.names[v], st.ranges[v] = name, (low, high)
    fb.start(after)


# ------------------------------------------------------------------- vectors


def _lane_count(st: State, body: tuple[Stmt, ...]) -> int:
    """Lanes of the widest element type in the body; indices do not count, registers hold halves wide."""
    widest = 1
    for s in body:
        assert isinstance(s, Store)
        types = [st.layout.places[s.buffer].dtype, *_data_types(s.value)]
        widest = max(widest, max(4 if t in HALVES else t.n_bytes for t in types))
    return max(1, st.vector_bits // (8 * widest))


def _data_types(e: Expr) -> list[DType]:
    """Types of what an expression reads and converts to, outside of indices."""
    if isinstance(e, Load):
        return [e.dtype]
    own = [e.dtype] if isinstance(e, Cast) else []
    return own + [t for c in children(e) for t in _data_types(c)]


def _chunks(st: State, s: For, trips: int, whole: bool) -> list[Lanes]:
    lanes = _lane_count(st, s.body)
    out = []
    for base in range(0, trips, lanes):
        count = min(lanes, trips - base)
        width = lanes
        if not whole and count < lanes:
            width = 1 << (count - 1).bit_length()
        out.append(Lanes(s.var, base, width, count))
    return out


def _vector_loop(st: State, s: For, trips: int) -> None:
    if any(isinstance(x, For) for x in s.body):
        raise BuildError(
            f"vectorized loop {s.var.name}: a loop is inside; vectorize the innermost one"
        )
    stores = [x for x in s.body if isinstance(x, Store)]
    reduces = any(x.block in st.accumulators for x in stores)
    for lanes in _chunks(st, s, trips, reduces):
        st.ranges[s.var] = (lanes.base, lanes.base + lanes.count - 1)
        st.order.setdefault(s.var, len(st.order))
        for x in stores:
            _store(st, x, lanes)
    st.ranges.pop(s.var, None)


def _lane_reduction(s: For) -> tuple[Store, For] | None:
    """The store and its vector loop, if the nest below is just a reduction across lanes."""
    node: Stmt = s
    loops: list[For] = []
    while isinstance(node, For):
        loops.append(node)
        if len(node.body) != 1 or node.parts:
            return None
        node = node.body[0]
    if loops[-1].kind is not LoopKind.VECTORIZED or not node.reduce or node.init is not None:
        return None
    used = {n for i in node.indices for n in walk(i) if isinstance(n, Var)}
    return None if any(f.var in used for f in loops) else (node, loops[-1])


def _with_accumulators(st: State, s: For, store: Store, lane: For) -> None:
    """Keep partial results in the lanes of vectors for the whole nest; combine them once, after it."""
    place = st.layout.places[store.buffer]
    neutral = identity(store.reduce or "", place.dtype)
    trips = _most(st, s, lane)
    if trips is None:
        _loop_plain(st, s, store)
        return
    slots: list[Value] = []
    for lanes in _chunks(st, lane, trips, True):
        ty = vector_type(place.dtype, lanes.width)
        slot = st.fb.alloca(f"{ty}, align 64")
        start = values.broadcast(
            st, Value(constant(neutral.value, place.dtype), 1), lanes.width, place.dtype
        )
        st.fb.line(f"store {ty} {start}, ptr {slot}, align 64")
        slots.append(Value(slot, lanes.width))
    st.accumulators[store.block] = slots
    _loop(st, s)
    del st.accumulators[store.block]
    op = _OPERATOR[store.reduce or ""]
    loaded = [
        Value(
            st.fb.value(f"load {vector_type(place.dtype, v.width)}, ptr {v.name}, align 64"),
            v.width,
        )
        for v in slots
    ]
    while len(loaded) > 1:
        loaded = [
            values.binary(st, op, loaded[n], loaded[n + 1], place.dtype)
            if n + 1 < len(loaded)
            else loaded[n]
            for n in range(0, len(loaded), 2)
        ]
    total = _horizontal(st, store.reduce or "", loaded[0], place.dtype)
    pointer_value = Value(_read(st, store), 1)
    memory.store(
        st,
        store.buffer,
        store.indices,
        values.binary(st, op, pointer_value, total, place.dtype),
        None,
    )


def _most(st: State, s: For, lane: For) -> int | None:
    """The greatest trip count of the vector loop."""
    ranges = dict(st.ranges)
    node: Stmt = s
    while isinstance(node, For):
        high = bounds(node.extent, ranges)[1]
        if high == float("inf"):
            return None
        if node is lane:
            return int(high)
        ranges[node.var] = (0, max(0, int(high) - 1))
        node = node.body[0]
    return None


def _loop_plain(st: State, s: For, store: Store) -> None:
    st.accumulators[store.block] = []
    _loop(st, s)
    del st.accumulators[store.block]


def _horizontal(st: State, op: str, v: Value, dtype: DType) -> Value:
    """All lanes of a vector combined."""
    if v.width == 1:
        return v
    ty, scalar = vector_type(dtype, v.width), llvm_type(dtype)
    suffix = f"v{v.width}" + {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(
        scalar, scalar
    )
    fb = st.fb
    if dtype.is_float and op in ("sum", "prod"):
        name = f"@llvm.vector.reduce.{'fadd' if op == 'sum' else 'fmul'}.{suffix}"
        fb.declare(f"declare {scalar} {name}({scalar}, {ty})")
        start = constant(0.0 if op == "sum" else 1.0, dtype)
        return Value(fb.value(f"call reassoc {scalar} {name}({scalar} {start}, {ty} {v.name})"), 1)
    if dtype.is_float:
        return _extreme_lane(st, op, v, dtype)
    if op in ("max", "min"):
        kind = ("u" if dtype in (DType.UINT8, DType.BOOL) else "s") + op
    else:
        kind = "add" if op == "sum" else "mul"
    name = f"@llvm.vector.reduce.{kind}.{suffix}"
    fb.declare(f"declare {scalar} {name}({ty})")
    return Value(fb.value(f"call {scalar} {name}({ty} {v.name})"), 1)


def _extreme_lane(st: State, op: str, v: Value, dtype: DType) -> Value:
    """The least or greatest lane, halving the vector; NaN if any lane is, which one test at the end finds."""
    fb, whole = st.fb, v
    while v.width > 1:
        half = v.width // 2
        ty = vector_type(dtype, v.width)
        parts = []
        for first in (0, half):
            lanes = ", ".join(f"i32 {first + n}" for n in range(half))
            parts.append(
                fb.value(
                    f"shufflevector {ty} {v.name}, {ty} poison, <{half} x i32> <{lanes}>"
                    if half > 1
                    else f"extractelement {ty} {v.name}, i64 {first}"
                )
            )
        v = Value(values.plain_extreme(st, op, parts[0], parts[1], dtype, half), half)
    ty, scalar = vector_type(dtype, whole.width), llvm_type(dtype)
    lost = fb.value(f"fcmp uno {ty} {whole.name}, {whole.name}")
    name = f"@llvm.vector.reduce.or.v{whole.width}i1"
    fb.declare(f"declare i1 {name}(<{whole.width} x i1>)")
    some = fb.value(f"call i1 {name}(<{whole.width} x i1> {lost})")
    nan = constant(float("nan"), dtype)
    return Value(fb.value(f"select i1 {some}, {scalar} {nan}, {scalar} {v.name}"), 1)


# -------------------------------------------------------------------- stores


def _read(st: State, s: Store) -> str:
    dtype = st.layout.places[s.buffer].dtype
    return memory.load(st, Load(s.buffer, s.indices, dtype), None, None).name


def _store(st: State, s: Store, lanes: Lanes | None) -> None:
    if s.init is not None:
        raise BuildError(f"block {s.block}: the reduction has not been decomposed")
    emit_prefetches(st, s, lanes)
    if s.reduce is None:
        value = values.emit(st, s.value, lanes, None)
        past = Pragma.NONTEMPORAL in s.pragmas
        memory.store(st, s.buffer, s.indices, value, lanes, nontemporal=past)
        return
    dtype = st.layout.places[s.buffer].dtype
    slots = st.accumulators.get(s.block)
    if lanes is not None and slots:
        _accumulate_lanes(st, s, lanes, slots, dtype)
        return
    if lanes is not None and memory.lane_stride(st, s.buffer, s.indices, lanes) == 0:
        full = Lanes(lanes.var, lanes.base, lanes.width, lanes.count)
        value = _masked(st, values.emit(st, s.value, full, None), full, s.reduce, dtype)
        total = _horizontal(st, s.reduce, value, dtype)
        old = Value(_read(st, s), 1)
        memory.store(
            st, s.buffer, s.indices, values.binary(st, _OPERATOR[s.reduce], old, total, dtype), None
        )
        return
    old = _old(st, s, lanes, dtype)
    memory.store(st, s.buffer, s.indices, _combine(st, s, old, lanes, dtype), lanes)


def _old(st: State, s: Store, lanes: Lanes | None, dtype: DType) -> Value:
    return memory.load(st, Load(s.buffer, s.indices, dtype), lanes, None)


def _combine(st: State, s: Store, old: Value, lanes: Lanes | None, dtype: DType) -> Value:
    """The reduction's new value; sums of products become fused multiply-adds."""
    value: Expr = s.value
    if s.reduce == "sum" and dtype.is_float and isinstance(value, Binary) and value.op == "mul":
        a = values.emit(st, value.a, lanes, None)
        if a.name == constant(0.0, dtype):  # padding: nothing to add
            return old
        b = values.emit(st, value.b, lanes, None)
        width = max(a.width, b.width, old.width)
        ty = vector_type(dtype, width)
        x, y, z = (values.broadcast(st, v, width, dtype) for v in (a, b, old))
        scalar = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}[
            llvm_type(dtype)
        ]
        name = f"@llvm.fma.v{width}{scalar}" if width > 1 else f"@llvm.fma.{scalar}"
        st.fb.declare(f"declare {ty} {name}({ty}, {ty}, {ty})")
        return Value(st.fb.value(f"call {ty} {name}({ty} {x}, {ty} {y}, {ty} {z})"), width)
    assert s.reduce is not None
    return values.binary(st, _OPERATOR[s.reduce], old, values.emit(st, value, lanes, None), dtype)


def _masked(st: State, v: Value, lanes: Lanes, op: str, dtype: DType) -> Value:
    """The neutral element in the lanes beyond the end."""
    if lanes.count == lanes.width:
        return Value(values.broadcast(st, v, lanes.width, dtype), lanes.width)
    neutral = Value(constant(identity(op, dtype).value, dtype), 1)
    bits = (
        "<"
        + ", ".join(f"i1 {'true' if k < lanes.count else 'false'}" for k in range(lanes.width))
        + ">"
    )
    ty = vector_type(dtype, lanes.width)
    a = values.broadcast(st, v, lanes.width, dtype)
    b = values.broadcast(st, neutral, lanes.width, dtype)
    return Value(
        st.fb.value(f"select <{lanes.width} x i1> {bits}, {ty} {a}, {ty} {b}"), lanes.width
    )


def _accumulate_lanes(st: State, s: Store, lanes: Lanes, slots: list[Value], dtype: DType) -> None:
    slot = slots[lanes.base // lanes.width]
    ty = vector_type(dtype, slot.width)
    old = Value(st.fb.value(f"load {ty}, ptr {slot.name}, align 64"), slot.width)
    if lanes.count == lanes.width:
        new = _combine(st, s, old, lanes, dtype)
    else:
        assert s.reduce is not None
        value = _masked(st, values.emit(st, s.value, lanes, None), lanes, s.reduce, dtype)
        new = values.binary(st, _OPERATOR[s.reduce], old, value, dtype)
    name = values.broadcast(st, new, slot.width, dtype)
    st.fb.line(f"store {ty} {name}, ptr {slot.name}, align 64")

"""Loads and stores: addresses, vectors, masks, strides, lanes one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.codegen import values
from tilewright.codegen.halves import HALVES, memory_half, narrow, widen
from tilewright.codegen.irbuilder import llvm_type, vector_type
from tilewright.codegen.nontemporal import store_past_caches
from tilewright.codegen.state import Lanes, State, Value
from tilewright.codegen.transposed import block_axis, transpose
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Expr, Load, Var

__all__ = [
    "address", "bound", "lane_stride", "load", "moving_address", "store", "stored", "stored_type",
]  # fmt: skip

MAX_STRIDE = 4


def stored_type(st: State, dtype: DType, *, register: bool = False) -> str:
    """The type of one element where it is stored: in memory, or in a tile of registers."""
    if dtype is DType.BOOL:
        return "i8"
    return memory_half(st.fb, dtype) if dtype in HALVES and not register else llvm_type(dtype)


def _type_of(st: State, buffer: str) -> str:
    place = st.layout.places[buffer]
    return stored_type(st, place.dtype, register=place.register)


def lane_stride(
    st: State, buffer: str, indices: tuple[Expr, ...], lanes: Lanes | None
) -> int | None:
    """Elements between neighbouring lanes; None if that is not constant."""
    if lanes is None:
        return 0
    linear = st.linear(buffer, indices)
    if any(values.mentions(e, lanes.var) for e, _ in linear.others):
        return None
    return dict(linear.terms).get(lanes.var, 0)


def address(st: State, buffer: str, indices: tuple[Expr, ...], lanes: Lanes | None = None) -> str:
    """A pointer to an element (the first lane's).

    Terms are added in the order in which loops were entered, so that what is invariant in inner
    loops is a pointer of its own, which LLVM hoists.
    """
    pointer, const = moving_address(st, buffer, indices, lanes)
    if const:
        ty = _type_of(st, buffer)
        key = (pointer, "const", const)
        known = st.recall(key)
        if known is None:
            known = st.remember(key, st.fb.value(f"getelementptr {ty}, ptr {pointer}, i64 {const}"))
        pointer = known
    return pointer


def moving_address(
    st: State, buffer: str, indices: tuple[Expr, ...], lanes: Lanes | None = None
) -> tuple[str, int]:
    """An address as a pointer and a constant number of elements behind it."""
    linear = st.linear(buffer, indices)
    const = linear.const
    moving: list[tuple[int, str, int]] = []
    for v, c in linear.terms:
        name: str | int = lanes.base if lanes is not None and v == lanes.var else st.names[v]
        if isinstance(name, int):
            const += c * name
        else:
            moving.append((st.order[v], name, c))
    moving.sort()
    for e, c in linear.others:
        found = values.index(st, e)
        if isinstance(found, int):
            const += c * found
        else:
            moving.append((len(st.order), found, c))
    pointer = st.pointers[buffer]
    ty = _type_of(st, buffer)
    for _, name, c in moving:
        key = (pointer, name, c)
        known = st.recall(key)
        if known is None:
            scaled = name if c == 1 else st.fb.value(f"mul i64 {name}, {c}")
            known = st.remember(
                key, st.fb.value(f"getelementptr {ty}, ptr {pointer}, i64 {scaled}")
            )
        pointer = known
    return pointer, const


def _to_value(st: State, name: str, buffer: str, width: int) -> str:
    """From where it is stored to registers: booleans are bytes in memory, and halves are short."""
    place = st.layout.places[buffer]
    if place.dtype in HALVES and not place.register:
        return widen(st.fb, name, place.dtype, width)
    if place.dtype is not DType.BOOL:
        return name
    ty = "i8" if width == 1 else f"<{width} x i8>"
    zero = "0" if width == 1 else "zeroinitializer"
    return st.fb.value(f"icmp ne {ty} {name}, {zero}")


def stored(st: State, name: str, dtype: DType, width: int, *, register: bool = False) -> str:
    """From registers to what is stored."""
    if dtype is DType.BOOL:
        one, byte = vector_type(dtype, width), "i8" if width == 1 else f"<{width} x i8>"
        return st.fb.value(f"zext {one} {name} to {byte}")
    return narrow(st.fb, name, dtype, width) if dtype in HALVES and not register else name


def _safe(st: State, pointer: str, buffer: str, mask: Value | None) -> str:
    """The pointer where the mask holds anywhere, else one that is always readable."""
    if mask is None or mask.name == "true":
        return pointer
    test = mask.name
    if mask.width > 1:
        name = f"@llvm.vector.reduce.or.v{mask.width}i1"
        st.fb.declare(f"declare i1 {name}(<{mask.width} x i1>)")
        test = st.fb.value(f"call i1 {name}(<{mask.width} x i1> {mask.name})")
    return st.fb.value(f"select i1 {test}, ptr {pointer}, ptr {st.pointers[buffer]}")


def load(st: State, e: Load, lanes: Lanes | None, mask: Value | None) -> Value:
    """Read an element, or one for each lane; what was read already in this region is taken again."""
    stride = lane_stride(st, e.buffer, e.indices, lanes)
    if stride is None or st.layout.places[e.buffer].register:  # registers are values anyway
        return _load(st, e, lanes, mask, stride)
    width = 1 if lanes is None or stride == 0 else lanes.width
    count = width if lanes is None else lanes.count
    key = (address(st, e.buffer, e.indices, lanes), stride, width, count, mask)
    known = st.recall_load(e.buffer, key)
    if known is not None:
        return Value(known, width)
    value = _load(st, e, lanes, mask, stride)
    st.remember_load(e.buffer, key, value.name)
    return value


def _load(st: State, e: Load, lanes: Lanes | None, mask: Value | None, stride: int | None) -> Value:
    if lanes is None or stride == 0:
        return _load_one(st, e, lanes, mask)
    if stride is None:
        return _load_each(st, e, lanes, mask)
    if stride == 1:
        return _load_row(st, e, lanes, mask)
    axis = block_axis(st, e, lanes) if mask is None else None
    if axis is not None:
        return _load_block(st, e, lanes, axis)
    if 1 < stride <= MAX_STRIDE and mask is None and e.dtype is not DType.BOOL:
        return _load_strided(st, e, lanes, stride)
    return _load_each(st, e, lanes, mask)


def _load_one(st: State, e: Load, lanes: Lanes | None, mask: Value | None) -> Value:
    pointer = _safe(st, address(st, e.buffer, e.indices, lanes), e.buffer, mask)
    name = st.fb.value(f"load {_type_of(st, e.buffer)}, ptr {pointer}, align {e.dtype.n_bytes}")
    return Value(_to_value(st, name, e.buffer, 1), 1)


def _tail_mask(lanes: Lanes, n: int | None = None) -> str:
    count = lanes.count if n is None else n
    return (
        "<" + ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(lanes.width)) + ">"
    )


_SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


def _masked_load(st: State, pointer: str, e: Load, width: int, mask: str) -> str:
    ty, dtype = _type_of(st, e.buffer), e.dtype
    suffix = f"v{width}{_SUFFIX.get(ty, ty)}.p0"
    name = f"@llvm.masked.load.{suffix}"
    st.fb.declare(f"declare <{width} x {ty}> {name}(ptr, i32, <{width} x i1>, <{width} x {ty}>)")
    return st.fb.value(
        f"call <{width} x {ty}> {name}(ptr {pointer}, i32 {dtype.n_bytes}, <{width} x i1> {mask}, <{width} x {ty}> zeroinitializer)"
    )


def _load_row(st: State, e: Load, lanes: Lanes, mask: Value | None) -> Value:
    width = lanes.width
    if width == 1:
        return _load_one(st, e, lanes, mask)
    pointer = address(st, e.buffer, e.indices, lanes)
    whole = lanes.count == width or (st.layout.places[e.buffer].padded and e.dtype.is_float)
    if whole and mask is None:
        name = st.fb.value(
            f"load <{width} x {_type_of(st, e.buffer)}>, ptr {pointer}, align {e.dtype.n_bytes}"
        )
    else:
        bits = None if mask is None else values.broadcast(st, mask, width, DType.BOOL)
        if lanes.count < width:
            tail = _tail_mask(lanes)
            bits = tail if bits is None else st.fb.value(f"and <{width} x i1> {bits}, {tail}")
        assert bits is not None
        name = _masked_load(st, pointer, e, width, bits)
    return Value(_to_value(st, name, e.buffer, width), width)


def _load_strided(st: State, e: Load, lanes: Lanes, stride: int) -> Value:
    """Every `stride`-th element, by whole vectors and shuffles; never reads behind the last lane."""
    width, ty = lanes.width, _type_of(st, e.buffer)
    if width == 1:
        return _load_one(st, e, lanes, None)
    pointer = address(st, e.buffer, e.indices, lanes)
    needed = stride * (lanes.count - 1) + 1
    parts: list[str] = []
    for n in range(stride):
        left = needed - n * width
        if left <= 0:
            break
        here = (
            pointer
            if n == 0
            else st.fb.value(f"getelementptr {ty}, ptr {pointer}, i64 {n * width}")
        )
        if left >= width:
            parts.append(st.fb.value(f"load <{width} x {ty}>, ptr {here}, align {e.dtype.n_bytes}"))
        else:
            parts.append(_masked_load(st, here, e, width, _tail_mask(lanes, left)))
    result = parts[0]
    for n in range(max(1, len(parts) - 1)):
        other = parts[n + 1] if n + 1 < len(parts) else "poison"
        picks = []
        for lane in range(width):
            source = lane * stride
            if n == 0:
                picks.append(str(source) if source < 2 * width else "poison")
            else:
                inside = (n + 1) * width <= source < (n + 2) * width
                picks.append(str(source - n * width) if inside else str(lane))
        indices = ", ".join(f"i32 {p}" for p in picks)
        result = st.fb.value(
            f"shufflevector <{width} x {ty}> {result}, <{width} x {ty}> {other}, <{width} x i32> <{indices}>"
        )
    return Value(_to_value(st, result, e.buffer, width), width)


def _load_block(st: State, e: Load, lanes: Lanes, axis: Var) -> Value:
    """One column of a square block; all are made when the first is asked for."""
    now, width = st.names[axis], lanes.width
    assert isinstance(now, int)
    first = now // width * width
    with bound(st, axis, first), bound(st, lanes.var, lanes.base):
        key = ("block", address(st, e.buffer, e.indices), width, lanes.count)
    known = st.recall_load(e.buffer, (*key, now - first))
    if known is None:
        rows = []
        ty = f"<{width} x {llvm_type(e.dtype)}>"
        for n in range(lanes.count):
            with bound(st, axis, first), bound(st, lanes.var, lanes.base + n):
                pointer = address(st, e.buffer, e.indices)
            rows.append(st.fb.value(f"load {ty}, ptr {pointer}, align {e.dtype.n_bytes}"))
        rows += ["zeroinitializer"] * (width - lanes.count)
        for n, column in enumerate(transpose(st, rows, e.dtype)):
            st.remember_load(e.buffer, (*key, n), column)
        known = st.recall_load(e.buffer, (*key, now - first))
        assert known is not None
    return Value(known, width)


def _load_each(st: State, e: Load, lanes: Lanes, mask: Value | None) -> Value:
    """One lane after another."""
    ty = llvm_type(e.dtype)
    result = "poison"
    for n in range(lanes.count):
        with bound(st, lanes.var, lanes.base + n):
            bit = mask
            if mask is not None and mask.width > 1:
                bit = Value(
                    st.fb.value(f"extractelement <{mask.width} x i1> {mask.name}, i64 {n}"), 1
                )
            value = _load_one(st, e, None, bit)
        if lanes.width == 1:
            return value
        result = st.fb.value(
            f"insertelement <{lanes.width} x {ty}> {result}, {ty} {value.name}, i64 {n}"
        )
    return Value(result, lanes.width)


@contextmanager
def bound(st: State, var: Var, number: int) -> Iterator[None]:
    """Bind a variable to a number for a while."""
    old = st.names.get(var), st.ranges.get(var)
    st.define(var, number, number, number)
    try:
        yield
    finally:
        name, span = old
        if name is None or span is None:
            st.names.pop(var)
            st.ranges.pop(var)
        else:
            st.names[var], st.ranges[var] = name, span


def store(
    st: State,
    buffer: str,
    indices: tuple[Expr, ...],
    value: Value,
    lanes: Lanes | None,
    *,
    nontemporal: bool = False,
) -> None:
    """Write an element, or one for each lane; whole vectors past the caches with `nontemporal`."""
    st.writes[buffer] = st.writes.get(buffer, 0) + 1
    place = st.layout.places[buffer]
    dtype = place.dtype
    stride = lane_stride(st, buffer, indices, lanes)
    if lanes is None or lanes.width == 1:
        pointer = address(st, buffer, indices, lanes)
        _store_scalar(st, pointer, value.name, buffer)
        return
    width = lanes.width
    if stride == 1:
        name = values.broadcast(st, value, width, dtype)
        name = stored(st, name, dtype, width, register=place.register)
        scalar = _type_of(st, buffer)
        ty = f"<{width} x {scalar}>"
        pointer = address(st, buffer, indices, lanes)
        if nontemporal and lanes.count == width and not place.register:
            store_past_caches(st, f"{ty} {name}", pointer, dtype.n_bytes, width)
            return
        if lanes.count == width or place.register:
            st.fb.line(f"store {ty} {name}, ptr {pointer}, align {dtype.n_bytes}")
            return
        call = f"@llvm.masked.store.v{width}{_SUFFIX.get(scalar, scalar)}.p0"
        st.fb.declare(f"declare void {call}({ty}, ptr, i32, <{width} x i1>)")
        st.fb.line(
            f"call void {call}({ty} {name}, ptr {pointer}, i32 {dtype.n_bytes}, <{width} x i1> {_tail_mask(lanes)})"
        )
        return
    ty = vector_type(dtype, width)
    for n in range(lanes.count):
        element = value.name
        if value.width > 1:
            element = st.fb.value(f"extractelement {ty} {value.name}, i64 {n}")
        with bound(st, lanes.var, lanes.base + n):
            pointer = address(st, buffer, indices, None)
        _store_scalar(st, pointer, element, buffer)


def _store_scalar(st: State, pointer: str, name: str, buffer: str) -> None:
    place = st.layout.places[buffer]
    name = stored(st, name, place.dtype, 1, register=place.register)
    st.fb.line(f"store {_type_of(st, buffer)} {name}, ptr {pointer}, align {place.dtype.n_bytes}")

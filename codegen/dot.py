"""Tensorized loops to instructions: dot products and interleaved copies."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen import memory, values
from tilewright.codegen.dotmachine import DotMachine
from tilewright.codegen.ranges import resolve
from tilewright.codegen.state import Lanes, State, Value
from tilewright.errors import BuildError
from tilewright.schedule.intrinsic import Dot
from tilewright.schedule.program import For, Store
from tilewright.tensor.expr import Expr, Load, Var

__all__ = ["emit_tensorized"]


def emit_tensorized(st: State, s: For, trips: int) -> bool:
    """Write a vectorized loop around a tensorized one.

    Returns
    -------
    False, having written nothing, if the extent of the inner loop is not a number here or later
    steps have changed what it holds; then the loops can be written as plain ones.

    Raises
    ------
    BuildError
        If the target lacks the instructions.
    """
    inner = s.body[0]
    assert isinstance(inner, For) and inner.intrinsic is not None
    store = inner.body[0]
    assert isinstance(store, Store)
    count = resolve(inner.extent, st.ranges)
    if count is None:
        return False
    if not isinstance(inner.intrinsic, Dot):
        return _interleaved(st, s, trips, inner, store, count)
    dot = inner.intrinsic
    features = st.fb.module.features
    if not dot.available(features):
        raise BuildError(
            f"tensorized loop {inner.var.name}: the target has no instruction for {dot}; "
            f"it needs one of {', '.join(dot.needs)}"
        )
    factors = dot.factors(store.value)
    if factors is None:
        return False
    machine = DotMachine(st.fb, dot)
    first, second = factors

    def one(lanes: Lanes) -> None:
        x = _Operand(st, first, lanes, inner.var, count, dot.group).vector()
        y = _Operand(st, second, lanes, inner.var, count, dot.group).vector()
        old = memory.load(st, Load(store.buffer, store.indices, dot.accumulator), lanes, None)
        total = values.broadcast(st, old, lanes.width, dot.accumulator)
        new = Value(machine.emit(total, x, y, lanes.width), lanes.width)
        memory.store(st, store.buffer, store.indices, new, lanes)

    _each_chunk(st, s.var, trips, machine.lanes(st.vector_bits), one)
    return True


def _each_chunk(st: State, var: Var, trips: int, most: int, body: Callable[[Lanes], None]) -> None:
    """Call `body` for whole vectors, then for the shortest one that holds the rest."""
    for base in range(0, trips, most):
        count = min(most, trips - base)
        width = most if count == most else max(4, 1 << (count - 1).bit_length())
        st.ranges[var] = (base, base + count - 1)
        st.order.setdefault(var, len(st.order))
        body(Lanes(var, base, width, count))
    st.ranges.pop(var, None)


def _interleaved(st: State, s: For, trips: int, inner: For, store: Store, count: int) -> bool:
    """A copy whose lanes lie `group` elements apart: rows are read, mixed and written at once."""
    place = st.layout.places[store.buffer]
    group = inner.intrinsic.group if inner.intrinsic else 1
    terms = dict(st.linear(store.buffer, store.indices).terms)
    if terms.get(s.var) != group or terms.get(inner.var) != 1 or not place.padded or place.register:
        return False
    bits = 8 * place.dtype.n_bytes

    def one(lanes: Lanes) -> None:
        mixed = _Operand(st, store.value, lanes, inner.var, count, group).mixed()
        with memory.bound(st, inner.var, 0):
            pointer = memory.address(st, store.buffer, store.indices, lanes)
        ty = f"<{lanes.width * group} x i{bits}>"
        if lanes.count == lanes.width:
            st.fb.line(f"store {ty} {mixed}, ptr {pointer}, align {place.dtype.n_bytes}")
            return
        mask = _mask(lanes, lanes.count, group, group)
        name = f"@llvm.masked.store.v{lanes.width * group}i{bits}.p0"
        st.fb.declare(f"declare void {name}({ty}, ptr, i32, <{lanes.width * group} x i1>)")
        st.fb.line(
            f"call void {name}({ty} {mixed}, ptr {pointer}, i32 {place.dtype.n_bytes}, "
            f"<{lanes.width * group} x i1> {mask})"
        )

    _each_chunk(st, s.var, trips, max(4, st.vector_bits // (bits * group)), one)
    return True


def _mask(lanes: Lanes, count: int, group: int, inside: int) -> str:
    """Which elements of the groups of the first `count` lanes count."""
    bits = (
        "true" if n // group < count and n % group < inside else "false"
        for n in range(lanes.width * group)
    )
    return "<" + ", ".join(f"i1 {b}" for b in bits) + ">"


class _Operand:
    """One factor for all lanes and places of their groups, as integers of its elements' size.

    What lies beyond the `count` elements that a group has is zero.
    """

    def __init__(self, st: State, e: Expr, lanes: Lanes, group: Var, count: int, size: int) -> None:
        self.st, self.e, self.lanes, self.group = st, e, lanes, group
        self.count, self.size = count, size
        self.bits = 8 * max(1, e.dtype.n_bytes)
        self.n = lanes.width * size
        self.ty = f"<{self.n} x i{self.bits}>"

    def vector(self) -> str:
        """By one load where the elements lie side by side, else `mixed`."""
        e, st = self.e, self.st
        if isinstance(e, Load) and not st.layout.places[e.buffer].register:
            linear = st.linear(e.buffer, e.indices)
            terms = dict(linear.terms)
            tangled = any(
                values.mentions(o, v)
                for o, _ in linear.others
                for v in (self.lanes.var, self.group)
            )
            if not tangled and terms.get(self.group) == 1:
                stride = terms.get(self.lanes.var, 0)
                if stride == 0:
                    return self._spread(e)
                if stride == self.size:
                    return self._row(e)
        return self.mixed()

    def _at(self, e: Load, place: int) -> str:
        with memory.bound(self.st, self.group, place):
            return memory.address(self.st, e.buffer, e.indices, self.lanes)

    def _spread(self, e: Load) -> str:
        """One group for every lane."""
        fb, whole = self.st.fb, f"i{self.bits * self.size}"
        align = e.dtype.n_bytes
        if self.count == self.size:
            word = fb.value(f"load {whole}, ptr {self._at(e, 0)}, align {align}")
        else:
            word = "0"
            for p in range(self.count):
                one = fb.value(f"load i{self.bits}, ptr {self._at(e, p)}, align {align}")
                part = fb.value(f"zext i{self.bits} {one} to {whole}")
                part = fb.value(f"shl {whole} {part}, {self.bits * p}") if p else part
                word = part if p == 0 else fb.value(f"or {whole} {word}, {part}")
        width = self.lanes.width
        first = fb.value(f"insertelement <{width} x {whole}> poison, {whole} {word}, i64 0")
        spread = fb.value(
            f"shufflevector <{width} x {whole}> {first}, <{width} x {whole}> poison, <{width} x i32> zeroinitializer"
        )
        return fb.value(f"bitcast <{width} x {whole}> {spread} to {self.ty}")

    def _row(self, e: Load) -> str:
        """Groups of neighbouring lanes side by side."""
        fb, lanes, pointer = self.st.fb, self.lanes, self._at(e, 0)
        padded = self.st.layout.places[e.buffer].padded
        mask = _mask(lanes, lanes.count, self.size, self.count)
        if padded or (lanes.count == lanes.width and self.count == self.size):
            row = fb.value(f"load {self.ty}, ptr {pointer}, align {e.dtype.n_bytes}")
            if self.count == self.size:
                return row
            return fb.value(
                f"select <{self.n} x i1> {mask}, {self.ty} {row}, {self.ty} zeroinitializer"
            )
        name = f"@llvm.masked.load.v{self.n}i{self.bits}.p0"
        fb.declare(f"declare {self.ty} {name}(ptr, i32, <{self.n} x i1>, {self.ty})")
        return fb.value(
            f"call {self.ty} {name}(ptr {pointer}, i32 {e.dtype.n_bytes}, <{self.n} x i1> {mask}, {self.ty} zeroinitializer)"
        )

    def mixed(self) -> str:
        """A vector for each place of a group, then their elements in turn."""
        columns = [self._column(p) for p in range(self.count)]
        zero = "zeroinitializer"
        return self._merge([*columns, *[zero] * (self.size - self.count)], self.lanes.width)

    def _column(self, place: int) -> str:
        with memory.bound(self.st, self.group, place):
            v = values.emit(self.st, self.e, self.lanes, None)
        width, dtype = self.lanes.width, self.e.dtype
        name = values.broadcast(self.st, v, width, dtype)
        name = memory.stored(self.st, name, dtype, width)
        scalar, wanted = memory.stored_type(self.st, dtype), f"i{self.bits}"
        if scalar == wanted:
            return name
        return self.st.fb.value(f"bitcast <{width} x {scalar}> {name} to <{width} x {wanted}>")

    def _merge(self, columns: list[str], width: int) -> str:
        """Columns p, p + n/2 first, so that each step doubles what lies side by side."""
        if len(columns) == 1:
            return columns[0]
        half = len(columns) // 2
        even, odd = self._merge(columns[::2], width), self._merge(columns[1::2], width)
        n = width * half
        picks = ", ".join(f"i32 {k // 2 + (n if k % 2 else 0)}" for k in range(2 * n))
        ty = f"<{n} x i{self.bits}>"
        return self.st.fb.value(f"shufflevector {ty} {even}, {ty} {odd}, <{2 * n} x i32> <{picks}>")

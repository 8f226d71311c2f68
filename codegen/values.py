"""Expressions to instructions, for one element or for the lanes of a vector."""

from __future__ import annotations

from tilewright.codegen import memory
from tilewright.codegen.halves import HALVES, narrow, widen
from tilewright.codegen.irbuilder import constant, llvm_type, vector_type
from tilewright.codegen.ranges import bounds
from tilewright.codegen.state import Lanes, State, Value
from tilewright.codegen.vectormath import emit_pow, emit_unary
from tilewright.errors import BuildError
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Min,
    Poly,
    Select,
    Unary,
    Var,
    walk,
)

__all__ = ["binary", "broadcast", "emit", "index", "mentions", "plain_extreme"]

_FLOAT = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"}
_COMPARE = {"lt": ("olt", "slt"), "le": ("ole", "sle"), "eq": ("oeq", "eq"), "ne": ("une", "ne")}
_SIGNED = {"add": "add", "sub": "sub", "mul": "mul"}


def mentions(e: Expr, var: Var) -> bool:
    """Whether an expression uses a variable."""
    return any(n == var for n in walk(e))


def broadcast(st: State, v: Value, width: int, dtype: DType) -> str:
    """The value in every lane of a vector."""
    if v.width == width:
        return v.name
    scalar = llvm_type(dtype)
    if not v.name.startswith("%"):
        return "<" + ", ".join([f"{scalar} {v.name}"] * width) + ">"
    found = st.recall(("splat", v.name, width))
    if found:
        return found
    one = st.fb.value(f"insertelement <{width} x {scalar}> poison, {scalar} {v.name}, i64 0")
    name = st.fb.value(
        f"shufflevector <{width} x {scalar}> {one}, <{width} x {scalar}> poison, <{width} x i32> zeroinitializer"
    )
    return st.remember(("splat", v.name, width), name)


def index(st: State, e: Expr) -> str | int:
    """A scalar integer: a number where it is known, else a name."""
    low, high = bounds(e, st.ranges)
    if low == high:
        return int(low)
    if isinstance(e, Var):
        return st.names[e]
    value = emit(st, e, None, None)
    return value.name if value.name.startswith("%") else int(value.name)


def emit(st: State, e: Expr, lanes: Lanes | None, mask: Value | None) -> Value:
    """Write the instructions of an expression.

    `mask` is a condition under which alone memory may be read.
    """
    match e:
        case Const(value):
            return Value(constant(value, e.dtype), 1)
        case Var():
            return _variable(st, e, lanes)
        case Load():
            return memory.load(st, e, lanes, mask)
        case Poly(terms, const):
            return _poly(st, e, terms, const, lanes, mask)
        case Min(args):
            out = emit(st, args[0], lanes, mask)
            for a in args[1:]:
                out = binary(st, "min", out, emit(st, a, lanes, mask), e.dtype)
            return out
        case Binary(op, a, b):
            known = _known(st, op, a, b, lanes)
            if known is not None:
                return Value("true" if known else "false", 1)
            return binary(
                st,
                op,
                emit(st, a, lanes, mask),
                emit(st, b, lanes, mask),
                a.dtype,
                _positive(st, a, b),
            )
        case Unary(op, a):
            return _unary(st, op, emit(st, a, lanes, mask), a.dtype)
        case Cast(a, dtype):
            return _cast(st, emit(st, a, lanes, mask), a.dtype, dtype)
        case Select(cond, a, b):
            return _select(st, e, cond, a, b, lanes, mask)
    raise BuildError(f"emit({e}): no code for {type(e).__name__}")


def _variable(st: State, e: Var, lanes: Lanes | None) -> Value:
    if lanes is None or e != lanes.var:
        return Value(str(st.names[e]), 1)
    steps = ", ".join(f"i64 {lanes.base + n}" for n in range(lanes.width))
    return Value(f"<{steps}>", lanes.width) if lanes.width > 1 else Value(str(lanes.base), 1)


def _positive(st: State, a: Expr, b: Expr) -> bool:
    return bounds(a, st.ranges)[0] >= 0 and bounds(b, st.ranges)[0] > 0


def _known(st: State, op: str, a: Expr, b: Expr, lanes: Lanes | None) -> bool | None:
    """The truth of a comparison of indices that the loops' ranges decide."""
    if op not in ("lt", "le") or not a.dtype.is_int:
        return None
    ranges = dict(st.ranges)
    if lanes is not None:
        ranges[lanes.var] = (lanes.base, lanes.base + lanes.count - 1)
    low, high = bounds(b - a, ranges)
    edge = 1 if op == "lt" else 0
    return True if low >= edge else False if high < edge else None


def _poly(
    st: State,
    e: Poly,
    terms: tuple[tuple[tuple[Expr, ...], int], ...],
    const: int,
    lanes: Lanes | None,
    mask: Value | None,
) -> Value:
    total: Value | None = None
    number = const
    for atoms, c in terms:
        product: Value | None = None
        for a in atoms:
            known = (
                st.names.get(a)
                if isinstance(a, Var) and (lanes is None or a != lanes.var)
                else None
            )
            if isinstance(known, int):
                c *= known
                continue
            v = emit(st, a, lanes, mask)
            product = v if product is None else binary(st, "mul", product, v, e.dtype)
        if product is None:
            number += c
            continue
        if c != 1:
            product = binary(st, "mul", product, Value(str(c), 1), e.dtype)
        total = product if total is None else binary(st, "add", total, product, e.dtype)
    if total is None:
        return Value(str(number), 1)
    return binary(st, "add", total, Value(str(number), 1), e.dtype) if number else total


def binary(st: State, op: str, a: Value, b: Value, dtype: DType, positive: bool = False) -> Value:
    """One two-operand instruction (or few)."""
    width = max(a.width, b.width)
    x, y = broadcast(st, a, width, dtype), broadcast(st, b, width, dtype)
    ty = vector_type(dtype, width)
    fb = st.fb
    if op in _COMPARE:
        ordered, signed = _COMPARE[op]
        if dtype.is_float:
            return Value(fb.value(f"fcmp {ordered} {ty} {x}, {y}"), width)
        return Value(fb.value(f"icmp {_sign(signed, dtype)} {ty} {x}, {y}"), width)
    if op in ("and", "or"):
        for one, other in ((a, b), (b, a)):
            if one.name in ("true", "false"):
                return other if (one.name == "true") == (op == "and") else one
        return Value(fb.value(f"{op} {ty} {x}, {y}"), width)
    if op in ("min", "max"):
        return Value(_extreme(st, op, x, y, dtype, width), width)
    if dtype.is_float:
        if op == "pow":
            single = DType.FLOAT32 if dtype in HALVES else dtype
            return Value(emit_pow(fb, x, y, width, single), width)
        if op not in _FLOAT:
            raise BuildError(f"{op}: not defined on {dtype}")
        return Value(fb.value(f"{_FLOAT[op]} {ty} {x}, {y}"), width)
    if dtype is DType.BOOL:
        return Value(
            fb.value(f"{'and' if op == 'mul' else 'or' if op == 'add' else 'xor'} {ty} {x}, {y}"),
            width,
        )
    if op in _SIGNED:
        return Value(fb.value(f"{_SIGNED[op]} {ty} {x}, {y}"), width)
    return Value(_divide(st, op, x, y, ty, dtype, width, positive), width)


def _sign(signed: str, dtype: DType) -> str:
    unsigned = dtype in (DType.UINT8, DType.BOOL) and signed.startswith("s")
    return "u" + signed[1:] if unsigned else signed


def _extreme(st: State, op: str, x: str, y: str, dtype: DType, width: int) -> str:
    """The lesser or greater operand; NaN if one is, as NumPy has it."""
    ty, fb = vector_type(dtype, width), st.fb
    bits = "i1" if width == 1 else f"<{width} x i1>"
    if not dtype.is_float:
        test = fb.value(f"icmp {_sign('slt' if op == 'min' else 'sgt', dtype)} {ty} {y}, {x}")
        return fb.value(f"select {bits} {test}, {ty} {y}, {ty} {x}")
    if not x.startswith("%"):  # a literal, which is never NaN
        x, y = y, x
    out = plain_extreme(st, op, x, y, dtype, width)
    if not y.startswith("%"):
        return out
    test = fb.value(f"fcmp uno {ty} {y}, {y}")
    return fb.value(f"select {bits} {test}, {ty} {y}, {ty} {out}")


def plain_extreme(st: State, op: str, x: str, y: str, dtype: DType, width: int) -> str:
    """The lesser or greater of two floats, x if one is NaN: one instruction (vminps, vmaxps)."""
    ty = vector_type(dtype, width)
    bits = "i1" if width == 1 else f"<{width} x i1>"
    test = st.fb.value(f"fcmp {'olt' if op == 'min' else 'ogt'} {ty} {y}, {x}")
    return st.fb.value(f"select {bits} {test}, {ty} {y}, {ty} {x}")


def _divide(
    st: State, op: str, x: str, y: str, ty: str, dtype: DType, width: int, positive: bool
) -> str:
    """Integer division and remainder, rounding towards minus infinity."""
    fb = st.fb
    if op == "pow":
        raise BuildError(f"pow: integers have no power; cast to a float type ({dtype})")
    zero = broadcast(st, Value("0", 1), width, dtype)
    one = broadcast(st, Value("1", 1), width, dtype)
    if op == "ceildiv":
        more = fb.value(f"sub {ty} {y}, {one}")
        x = fb.value(f"add {ty} {x}, {more}")
        op = "floordiv"
    if not positive and not _nonzero(y):  # a division by zero must not end the process
        bits = "i1" if width == 1 else f"<{width} x i1>"
        none = fb.value(f"icmp eq {ty} {y}, {zero}")
        y = fb.value(f"select {bits} {none}, {ty} {one}, {ty} {y}")
    if positive or dtype is DType.UINT8:
        return fb.value(f"{'udiv' if op == 'floordiv' else 'urem'} {ty} {x}, {y}")
    rest = fb.value(f"srem {ty} {x}, {y}")
    bits = "i1" if width == 1 else f"<{width} x i1>"
    some = fb.value(f"icmp ne {ty} {rest}, {zero}")
    signs = fb.value(f"xor {ty} {rest}, {y}")
    differ = fb.value(f"icmp slt {ty} {signs}, {zero}")
    fix = fb.value(f"and {bits} {some}, {differ}")
    if op == "mod":
        moved = fb.value(f"add {ty} {rest}, {y}")
        return fb.value(f"select {bits} {fix}, {ty} {moved}, {ty} {rest}")
    quotient = fb.value(f"sdiv {ty} {x}, {y}")
    lower = fb.value(f"sub {ty} {quotient}, {one}")
    return fb.value(f"select {bits} {fix}, {ty} {lower}, {ty} {quotient}")


def _nonzero(text: str) -> bool:
    """Whether a literal is not zero."""
    last = text.rstrip(">").split(" ")[-1]
    return not text.startswith("%") and last not in ("0", "zeroinitializer")


_INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "roundeven"}


def _unary(st: State, op: str, a: Value, dtype: DType) -> Value:
    fb, width = st.fb, a.width
    ty = vector_type(dtype, width)
    x = a.name
    if op == "not":
        return Value(
            fb.value(f"xor {ty} {x}, {broadcast(st, Value('true', 1), width, dtype)}"), width
        )
    if op == "neg" and dtype.is_float:
        return Value(fb.value(f"fneg {ty} {x}"), width)
    if op == "isnan":
        return Value(fb.value(f"fcmp uno {ty} {x}, {x}"), width)
    if op == "abs" and not dtype.is_float:
        negative = binary(st, "sub", Value("0", 1), a, dtype)
        return binary(st, "max", a, negative, dtype)
    if op in _INTRINSIC:
        suffix = (f"v{width}" if width > 1 else "") + {
            "float": "f32",
            "double": "f64",
            "half": "f16",
            "bfloat": "bf16",
        }[llvm_type(dtype)]
        name = f"@llvm.{_INTRINSIC[op]}.{suffix}"
        fb.declare(f"declare {ty} {name}({ty})")
        return Value(fb.value(f"call {ty} {name}({ty} {x})"), width)
    return Value(emit_unary(fb, op, x, width, DType.FLOAT32 if dtype in HALVES else dtype), width)


def _cast(st: State, a: Value, old: DType, new: DType) -> Value:
    if old is new:
        return a
    source, target = vector_type(old, a.width), vector_type(new, a.width)
    fb = st.fb
    if new is DType.BOOL:
        zero = broadcast(st, Value(constant(0, old), 1), a.width, old)
        test = "fcmp une" if old.is_float else "icmp ne"
        return Value(fb.value(f"{test} {source} {a.name}, {zero}"), a.width)
    unsigned = old in (DType.UINT8, DType.BOOL)
    if old in HALVES or new in HALVES:
        if new is DType.FLOAT32:
            return a  # as registers hold it
        single = _cast(
            st, a, DType.FLOAT32 if old in HALVES else old, DType.FLOAT32 if new in HALVES else new
        )
        if new not in HALVES:
            return single
        return Value(widen(fb, narrow(fb, single.name, new, a.width), new, a.width), a.width)
    if old.is_float and new.is_float:
        op = "fpext" if new.n_bytes > old.n_bytes else "fptrunc"
    elif old.is_float:
        op = "fptoui" if new is DType.UINT8 else "fptosi"
    elif new.is_float:
        op = "uitofp" if unsigned else "sitofp"
    else:
        size = 0 if old is DType.BOOL else old.n_bytes
        op = (
            ("zext" if unsigned else "sext")
            if new.n_bytes > size
            else "trunc"
            if new.n_bytes < size
            else "bitcast"
        )
    return Value(fb.value(f"{op} {source} {a.name} to {target}"), a.width)


def _select(
    st: State, e: Select, cond: Expr, a: Expr, b: Expr, lanes: Lanes | None, mask: Value | None
) -> Value:
    test = emit(st, cond, lanes, mask)
    if test.name == "true":
        return emit(st, a, lanes, mask)
    if test.name == "false":
        return emit(st, b, lanes, mask)
    yes = _both(st, mask, test)
    inverse = _unary(st, "not", test, DType.BOOL)
    x = emit(st, a, lanes, yes)
    y = emit(st, b, lanes, _both(st, mask, inverse))
    width = max(test.width, x.width, y.width)
    ty = vector_type(e.dtype, width)
    xs, ys = broadcast(st, x, width, e.dtype), broadcast(st, y, width, e.dtype)
    bits = "i1" if test.width == 1 else f"<{width} x i1>"
    return Value(st.fb.value(f"select {bits} {test.name}, {ty} {xs}, {ty} {ys}"), width)


def _both(st: State, a: Value | None, b: Value) -> Value:
    return b if a is None else binary(st, "and", a, b, DType.BOOL)

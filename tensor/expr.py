"""Scalar expressions: the language of computes, loop extents and index arithmetic.

Nodes are immutable. Integer sums and products are kept in polynomial normal form (`Poly`), so
that `i.0*64 + i.1*8 - i.0*64` *is* `i.1*8`; everything else is an ordinary tree. Loop extents and
indices may contain `Knob` symbols, the columns of a schedule space.

Division and remainder of integers round towards minus infinity, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import TensorError
from tilewright.tensor.dtype import DType, as_dtype

if TYPE_CHECKING:
    from tilewright.tensor.te import Tensor

__all__ = [
    "Binary",
    "Cast",
    "Const",
    "Expr",
    "ExprLike",
    "Knob",
    "Load",
    "Min",
    "Poly",
    "Read",
    "Reduce",
    "Select",
    "Unary",
    "Var",
    "as_expr",
    "cast",
    "ceildiv",
    "const_value",
    "equal",
    "logical_and",
    "logical_or",
    "map_children",
    "maximum",
    "minimum",
    "not_equal",
    "select",
    "substitute",
    "unary",
    "walk",
]

INDEX = DType.INT64
UNARY_OPS = frozenset(
    [
        "exp",
        "log",
        "tanh",
        "erf",
        "sigmoid",
        "sqrt",
        "rsqrt",
        "neg",
        "abs",
        "sin",
        "cos",
        "floor",
        "ceil",
        "round",
        "not",
        "isnan",
    ]
)
BINARY_OPS = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "floordiv",
        "mod",
        "ceildiv",
        "min",
        "max",
        "pow",
        "lt",
        "le",
        "eq",
        "ne",
        "and",
        "or",
    ]
)
COMPARISONS = frozenset(["lt", "le", "eq", "ne", "and", "or"])
REDUCE_OPS = frozenset(["sum", "prod", "max", "min"])

ExprLike: TypeAlias = "Expr | int | float | bool"


class Expr:
    """Base class of all scalar expressions. `==` compares structure; `equal` builds a node."""

    __slots__ = ()
    dtype: DType

    def __add__(self, other: ExprLike) -> Expr:
        return _arith("add", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return _arith("add", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return _arith("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return _arith("sub", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return _arith("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return _arith("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return _arith("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return _arith("div", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return _arith("floordiv", self, other)

    def __mod__(self, other: ExprLike) -> Expr:
        return _arith("mod", self, other)

    def __pow__(self, other: ExprLike) -> Expr:
        return _arith("pow", self, other)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __lt__(self, other: ExprLike) -> Expr:
        return _arith("lt", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return _arith("le", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return _arith("lt", other, self)

    def __ge__(self, other: ExprLike) -> Expr:
        return _arith("le", other, self)

    def __bool__(self) -> bool:
        raise TensorError(
            f"bool({self}): an expression has no truth value while a program is being built; "
            "use select, logical_and or equal"
        )

    def __str__(self) -> str:
        from tilewright.tensor.show import show

        return show(self)


@dataclass(frozen=True, slots=True, repr=False)
class Const(Expr):
    """A literal."""

    value: int | float | bool
    dtype: DType = INDEX

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True, repr=False)
class Var(Expr):
    """A loop variable; integer, starts at zero."""

    name: str
    dtype: DType = INDEX

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True, repr=False)
class Knob(Expr):
    """A tunable positive integer: a column of a schedule space."""

    name: str
    dtype: DType = INDEX

    def __hash__(self) -> int:
        return ~hash(self.name)


Monomial: TypeAlias = "tuple[Expr, ...]"


@dataclass(frozen=True, slots=True, repr=False)
class Poly(Expr):
    """An integer polynomial: sum of coefficient times product of atoms, plus a constant.

    Terms are sorted; atoms are any non-`Poly`, non-`Const` integer nodes. Never built directly.
    """

    terms: tuple[tuple[Monomial, int], ...]
    const: int
    dtype: DType = INDEX
    _hash: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Min(Expr):
    """The least of several integers (loop extents at the end of an imperfect tile)."""

    args: tuple[Expr, ...]
    dtype: DType = INDEX
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.args))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Binary(Expr):
    """A two-operand operation; see `BINARY_OPS`."""

    op: str
    a: Expr
    b: Expr
    dtype: DType
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.a, self.b)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Unary(Expr):
    """A one-operand operation; see `UNARY_OPS`."""

    op: str
    a: Expr
    dtype: DType
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.a)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Select(Expr):
    """`a` where `cond` holds, else `b`; the operand not chosen is never read out of bounds."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.cond, self.a, self.b)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Cast(Expr):
    """Conversion to another element type."""

    a: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, repr=False)
class Read(Expr):
    """An element of a tensor (in tensor expressions)."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, repr=False)
class Load(Expr):
    """An element of a buffer (in programs)."""

    buffer: str
    indices: tuple[Expr, ...]
    dtype: DType
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.buffer, self.indices)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, repr=False)
class Reduce(Expr):
    """A reduction over axes; only as the whole body of a compute."""

    op: str
    value: Expr
    axes: tuple[tuple[Var, int], ...]
    dtype: DType


def as_expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Wrap a Python number as a constant (of type `like` where it fits)."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return Const(value, DType.BOOL if like is None else like)
    if isinstance(value, int):
        return Const(float(value) if like and like.is_float else value, like or INDEX)
    if isinstance(value, float):
        return Const(value, like if like is not None and like.is_float else DType.FLOAT32)
    axis = getattr(value, "var", None)  # a ReduceAxis stands for its variable
    if isinstance(axis, Var):
        return axis
    try:
        return as_expr(value.item(), like)  # NumPy scalars
    except (AttributeError, ValueError):
        raise TensorError(f"as_expr({value!r}): not an expression or a number") from None


def const_value(expr: Expr) -> int | None:
    """The value of an integer constant, else None."""
    return expr.value if type(expr) is Const else None  # type: ignore[return-value]


# ---------------------------------------------------------------- polynomials


def _terms(expr: Expr) -> tuple[dict[Monomial, int], int]:
    if type(expr) is Const:
        return {}, int(expr.value)
    if type(expr) is Poly:
        return dict(expr.terms), expr.const
    return {(expr,): 1}, 0


_ORDER: dict[Expr, str] = {}


def _order(atom: Expr) -> str:
    if type(atom) is Var or type(atom) is Knob:
        return atom.name
    text = _ORDER.get(atom)
    if text is None:
        if len(_ORDER) > 100_000:
            _ORDER.clear()
        text = _ORDER[atom] = str(atom)
    return text


def _monomial_order(item: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    return -len(item[0]), tuple(map(_order, item[0]))


def poly(terms: dict[Monomial, int], const: int, dtype: DType = INDEX) -> Expr:
    """Build the normal form of a polynomial."""
    live = [(m, c) for m, c in terms.items() if c]
    if not live:
        return Const(const, dtype)
    if len(live) == 1 and const == 0 and live[0][1] == 1 and len(live[0][0]) == 1:
        return live[0][0][0]
    if len(live) > 1:
        live.sort(key=_monomial_order)
    key = tuple(live)
    return Poly(key, const, dtype, hash((key, const)))


def _add_int(a: Expr, b: Expr, sign: int) -> Expr:
    terms, const = _terms(a)
    other, other_const = _terms(b)
    for m, c in other.items():
        terms[m] = terms.get(m, 0) + sign * c
    return poly(terms, const + sign * other_const, a.dtype)


def _mul_int(a: Expr, b: Expr) -> Expr:
    ta, ca = _terms(a)
    tb, cb = _terms(b)
    out: dict[Monomial, int] = {}
    for ma, xa in ta.items():
        for mb, xb in tb.items():
            m = tuple(sorted(ma + mb, key=_order))
            out[m] = out.get(m, 0) + xa * xb
        if cb:
            out[ma] = out.get(ma, 0) + xa * cb
    if ca:
        for mb, xb in tb.items():
            out[mb] = out.get(mb, 0) + ca * xb
    return poly(out, ca * cb, a.dtype)


# ------------------------------------------------------------------- builders

_INT_FOLD: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _unify(op: str, a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    if not isinstance(a, Expr):
        b = as_expr(b)
        a = as_expr(a, None if isinstance(a, float) and not b.dtype.is_float else b.dtype)
    elif not isinstance(b, Expr):
        b = as_expr(b, None if isinstance(b, float) and not a.dtype.is_float else a.dtype)
    if a.dtype is not b.dtype:
        raise TensorError(f"{op}({a}, {b}): types {a.dtype} and {b.dtype} differ; cast one of them")
    return a, b


def _arith(op: str, left: ExprLike, right: ExprLike) -> Expr:
    a, b = _unify(op, left, right)
    dtype = a.dtype
    if op in ("and", "or"):
        return _logic(op, a, b)
    if dtype.is_int:
        if op == "add":
            return _add_int(a, b, 1)
        if op == "sub":
            return _add_int(a, b, -1)
        if op == "mul":
            return _mul_int(a, b)
        if op == "div":
            raise TensorError(f"div({a}, {b}): integers have no true division; use // or cast")
        return _int_op(op, a, b)
    if dtype.is_float and op in ("floordiv", "mod", "ceildiv"):
        raise TensorError(f"{op}({a}, {b}): defined on integers only")
    return Binary(op, a, b, DType.BOOL if op in COMPARISONS else dtype)


def _int_op(op: str, a: Expr, b: Expr) -> Expr:
    va, vb = const_value(a), const_value(b)
    if va is not None and vb is not None and op in _INT_FOLD:
        if op in ("floordiv", "mod", "ceildiv") and vb == 0:
            raise TensorError(f"{op}({a}, {b}): division by zero")
        value = _INT_FOLD[op](va, vb)
        return Const(bool(value), DType.BOOL) if op in COMPARISONS else Const(value, a.dtype)
    if op in ("floordiv", "mod", "ceildiv"):
        if vb == 1:
            return Const(0, a.dtype) if op == "mod" else a
        if a == b:
            return Const(0 if op == "mod" else 1, a.dtype)
        if vb is not None and vb > 1:
            if type(a) is Poly:
                whole, rest = _multiples(a, int(vb))
                if whole:
                    less = _int_op(op, rest, b)
                    return less if op == "mod" else _add_int(poly(whole, 0, a.dtype), less, 1)
            if type(a) is Min and op != "mod":
                return _minimum(_int_op(op, x, b) for x in a.args)
        if vb is None and type(a) is Poly and a.dtype is INDEX:
            quotient, rest = _multiples_of_size(a, b)
            if quotient is not None:
                less = _int_op(op, rest, b)
                return less if op == "mod" else _add_int(quotient, less, 1)
    if op in ("min", "max") and a == b:
        return a
    if op == "min" and a.dtype is INDEX:
        return _minimum((a, b))
    if op in ("lt", "le", "eq", "ne"):
        diff = const_value(a - b)
        if diff is not None:
            return Const(bool(_INT_FOLD[op](diff, 0)), DType.BOOL)
    return Binary(op, a, b, DType.BOOL if op in COMPARISONS else a.dtype)


def _multiples(a: Poly, divisor: int) -> tuple[dict[Monomial, int], Expr]:
    """The terms that a positive divisor divides, divided by it, and what is left.

    Data may overflow, so it is left alone.
    """
    whole, left = {}, {}
    for m, c in a.terms:
        data = any(isinstance(n, (Load, Read)) for atom in m for n in walk(atom))
        if c % divisor or data:
            left[m] = c
        else:
            whole[m] = c // divisor
    return whole, poly(left, a.const, a.dtype)


def _multiples_of_size(a: Poly, size: Expr) -> tuple[Expr | None, Expr]:
    """The terms that a tile size divides, divided by it (None if there are none), and what is left.

    A tile size is a product of knobs, and so at least one.
    """
    terms, const = _terms(size)
    factor, scale = next(iter(terms.items()), ((), 0))
    if len(terms) != 1 or const or scale < 1 or not all(type(k) is Knob for k in factor):
        return None, a
    whole: dict[Monomial, int] = {}
    left: dict[Monomial, int] = {}
    for m, c in a.terms:
        others = list(m)
        for k in factor:
            if k in others:
                others.remove(k)
        if c % scale or len(others) + len(factor) != len(m):
            left[m] = c
        else:
            whole[tuple(others)] = c // scale
    if not whole:
        return None, a
    ones = whole.pop((), 0)
    return poly(whole, ones, a.dtype), poly(left, a.const, a.dtype)


def _logic(op: str, a: Expr, b: Expr) -> Expr:
    for x, y in ((a, b), (b, a)):
        if type(x) is Const:
            if op == "and":
                return y if x.value else x
            return x if x.value else y
    return a if a == b else Binary(op, a, b, DType.BOOL)


def _alternatives(a: Expr) -> tuple[Expr, ...]:
    """What an integer is the least of: ``min(x, y) + z`` is the lesser of ``x + z`` and ``y + z``."""
    if type(a) is Min:
        return a.args
    if type(a) is Poly:
        for m, c in a.terms:
            inner = m[0]
            if c == 1 and len(m) == 1 and type(inner) is Min:
                rest = poly({k: v for k, v in a.terms if k != m}, a.const, a.dtype)
                return tuple(_add_int(x, rest, 1) for x in inner.args)
    return (a,)


def _minimum(args: Iterable[Expr]) -> Expr:
    """Least of integers: flattened, constants folded, constant-offset twins merged."""
    flat: list[Expr] = []
    for a in args:
        flat.extend(_alternatives(a))
    keep: dict[tuple[tuple[Monomial, int], ...], Expr] = {}
    for a in flat:
        terms, const = _terms(a)
        key = tuple(sorted(terms.items(), key=_monomial_order))
        if key not in keep or const < _terms(keep[key])[1]:
            keep[key] = a
    out = list(keep.values())
    if len(out) == 1:
        return out[0]
    out.sort(key=lambda e: (type(e) is not Const, str(e)))
    return Min(tuple(out))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values."""
    return _arith("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values."""
    return _arith("max", a, b)


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """Integer quotient, rounded up."""
    return _arith("ceildiv", a, b)


def equal(a: ExprLike, b: ExprLike) -> Expr:
    """The boolean expression `a == b`."""
    return _arith("eq", a, b)


def not_equal(a: ExprLike, b: ExprLike) -> Expr:
    """The boolean expression `a != b`."""
    return _arith("ne", a, b)


def logical_and(*args: Expr) -> Expr:
    """Conjunction of boolean expressions."""
    out: Expr = Const(True, DType.BOOL)
    for a in args:
        out = _arith("and", out, a)
    return out


def logical_or(*args: Expr) -> Expr:
    """Disjunction of boolean expressions."""
    out: Expr = Const(False, DType.BOOL)
    for a in args:
        out = _arith("or", out, a)
    return out


def select(cond: Expr, a: ExprLike, b: ExprLike) -> Expr:
    """`a` where `cond` holds, else `b`."""
    a, b = _unify("select", a, b)
    if type(cond) is Const:
        return a if cond.value else b
    if cond.dtype is not DType.BOOL:
        raise TensorError(f"select({cond}, ...): the condition has type {cond.dtype}, not bool")
    return Select(cond, a, b, a.dtype)


def cast(a: ExprLike, dtype: DType | str) -> Expr:
    """Convert to another element type (floats to integers by truncation)."""
    a, dtype = as_expr(a), as_dtype(dtype)
    if a.dtype is dtype:
        return a
    if type(a) is Const:
        kind = float if dtype.is_float else bool if dtype is DType.BOOL else int
        return Const(kind(a.value), dtype)
    return Cast(a, dtype)


def unary(op: str, a: ExprLike) -> Expr:
    """Apply a one-operand operation of `UNARY_OPS`."""
    a = as_expr(a)
    if op not in UNARY_OPS:
        raise TensorError(f"unary({op!r}): unknown operation; choose one of {sorted(UNARY_OPS)}")
    if op == "neg" and a.dtype.is_int:
        return _mul_int(a, Const(-1, a.dtype))
    if op == "not" and a.dtype is not DType.BOOL:
        raise TensorError(f"not({a}): the operand has type {a.dtype}, not bool")
    if op not in ("neg", "abs", "not") and not a.dtype.is_float:
        raise TensorError(
            f"{op}({a}): the operand has type {a.dtype}; cast it to a float type first"
        )
    return Unary(op, a, DType.BOOL if op in ("not", "isnan") else a.dtype)


# ------------------------------------------------------------------ traversal


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node."""
    match expr:
        case Const() | Var() | Knob():
            return ()
        case Poly(terms):
            return tuple(a for m, _ in terms for a in m)
        case Min(args):
            return args
        case Binary(_, a, b):
            return (a, b)
        case Unary(_, a) | Cast(a):
            return (a,)
        case Select(c, a, b):
            return (c, a, b)
        case Read(_, indices) | Load(_, indices):
            return indices
        case Reduce(_, value):
            return (value,)
    raise AssertionError(type(expr))


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the node and everything below it, parents first (reads do not enter other tensors)."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def map_children(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rebuild a node with `f` applied to its operands, renormalising."""
    match expr:
        case Const() | Var() | Knob():
            return expr
        case Poly(terms, const, dtype):
            return _map_poly(terms, const, dtype, f)
        case Min(args):
            return _minimum([f(a) for a in args])
        case Binary(op, a, b):
            return _arith(op, f(a), f(b))
        case Unary(op, a):
            return unary(op, f(a))
        case Select(c, a, b):
            return select(f(c), f(a), f(b))
        case Cast(a, dtype):
            return cast(f(a), dtype)
        case Read(tensor, indices, dtype):
            return Read(tensor, tuple(map(f, indices)), dtype)
        case Load(buffer, indices, dtype):
            return Load(buffer, tuple(map(f, indices)), dtype)
        case Reduce(op, value, axes, dtype):
            return Reduce(op, f(value), axes, dtype)
    raise AssertionError(type(expr))


def _map_poly(
    terms: tuple[tuple[Monomial, int], ...], const: int, dtype: DType, f: Callable[[Expr], Expr]
) -> Expr:
    out: dict[Monomial, int] = {}
    for m, c in terms:
        new = [f(a) for a in m]
        if all(x is y for x, y in zip(new, m)):
            out[m] = out.get(m, 0) + c
            continue
        product: Expr = Const(c, dtype)
        for a in new:
            product = _mul_int(product, a)
        more, extra = _terms(product)
        const += extra
        for mm, cc in more.items():
            out[mm] = out.get(mm, 0) + cc
    return poly(out, const, dtype)


def substitute(expr: Expr, mapping: dict[Any, Expr]) -> Expr:
    """Replace variables and knobs, renormalising."""
    if not mapping:
        return expr

    def go(node: Expr) -> Expr:
        if type(node) is Var or type(node) is Knob:
            return mapping.get(node, node)
        if type(node) is Const:
            return node
        return map_children(node, go)

    return go(expr)

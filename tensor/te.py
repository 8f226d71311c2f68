"""Tensor expressions: what to compute, without saying how."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.errors import TensorError
from tilewright.tensor import expr as ex
from tilewright.tensor.dtype import DType, as_dtype
from tilewright.tensor.expr import (
    Const,
    Expr,
    ExprLike,
    Read,
    Reduce,
    Var,
    as_expr,
    cast,
    equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    not_equal,
    select,
)

__all__ = [
    "Compute", "Placeholder", "ReduceAxis", "Tensor", "abs", "cast", "ceil", "compute", "cos", "equal", "erf",
    "exp", "floor", "identity", "isnan", "log", "logical_and", "logical_not", "logical_or", "max", "maximum",
    "min", "minimum", "not_equal", "placeholder", "power", "prod", "reduce_axis", "round", "rsqrt", "select",
    "sigmoid", "sin", "sqrt", "sum", "tanh",
]  # fmt: skip


class _Indexable:
    __slots__ = ()
    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __getitem__(
        self, indices: ExprLike | ReduceAxis | tuple[ExprLike | ReduceAxis, ...]
    ) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) != len(self.shape):
            raise TensorError(
                f"{self.name}[...]: {len(items)} indices for a tensor of rank {len(self.shape)}"
            )
        index = tuple(i.var if isinstance(i, ReduceAxis) else as_expr(i, ex.INDEX) for i in items)
        for i in index:
            if i.dtype is not ex.INDEX:
                raise TensorError(f"{self.name}[{i}]: an index of type {i.dtype}; cast it to int64")
        return Read(self, index, self.dtype)  # type: ignore[arg-type]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        out = 1
        for n in self.shape:
            out *= n
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder(_Indexable):
    """An input. `const` inputs (weights) are known when a kernel is loaded, so they may be
    repacked once instead of at every call."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    const: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Compute(_Indexable):
    """A tensor given by an expression of its axes."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    axes: tuple[Var, ...]
    body: Expr

    @property
    def reduce_axes(self) -> tuple[tuple[Var, int], ...]:
        """The reduction's axes and extents; empty for an elementwise compute."""
        return self.body.axes if isinstance(self.body, Reduce) else ()


Tensor: TypeAlias = Placeholder | Compute


@dataclass(frozen=True, slots=True)
class ReduceAxis:
    """An axis that a reduction runs over; usable as an index."""

    var: Var
    extent: int

    def __add__(self, other: ExprLike | ReduceAxis) -> Expr:
        return self.var + (other.var if isinstance(other, ReduceAxis) else other)

    __radd__ = __add__

    def __sub__(self, other: ExprLike) -> Expr:
        return self.var - other

    def __rsub__(self, other: ExprLike) -> Expr:
        return other - self.var

    def __mul__(self, other: ExprLike) -> Expr:
        return self.var * other

    __rmul__ = __mul__


def _shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    dims = tuple(int(n) for n in shape)
    if any(n < 1 for n in dims):
        raise TensorError(f"{name}: shape {dims} has a dimension below 1")
    return dims


def placeholder(
    shape: Sequence[int],
    dtype: DType | str = DType.FLOAT32,
    name: str = "x",
    *,
    const: bool = False,
) -> Placeholder:
    """Declare an input.

    Examples
    --------
    >>> placeholder((2, 3), name="a").shape
    (2, 3)
    """
    return Placeholder(name, _shape(name, shape), as_dtype(dtype), const)


def reduce_axis(extent: int, name: str = "k") -> ReduceAxis:
    """Declare an axis to reduce over."""
    if extent < 1:
        raise TensorError(f"reduce_axis({extent}, {name!r}): the extent is below 1")
    return ReduceAxis(Var(name), int(extent))


def compute(
    shape: Sequence[int],
    f: Callable[..., ExprLike],
    name: str = "out",
    *,
    axes: Sequence[str] | None = None,
) -> Compute:
    """Define a tensor by its element at each index.

    Parameters
    ----------
    shape : sequence of int
    f : callable
        Takes one `Var` a dimension and returns the element's expression.
    name : str
        Also names the loops' block.
    axes : sequence of str, optional
        Names of the axes, if not those of `f`'s arguments.

    Examples
    --------
    >>> a = placeholder((4,), name="a")
    >>> print(compute((4,), lambda i: exp(a[i]) + 1.0, name="b").body)
    exp(a[i]) + 1.0
    """
    dims = _shape(name, shape)
    spatial = _axes(name, len(dims), f, axes)
    body = as_expr(f(*spatial))
    _check(name, spatial, body)
    return Compute(name, dims, body.dtype, spatial, body)


def _axes(
    name: str, rank: int, f: Callable[..., ExprLike], names: Sequence[str] | None
) -> tuple[Var, ...]:
    if names is None:
        arguments = list(inspect.signature(f).parameters.values())
        if any(p.kind is p.VAR_POSITIONAL for p in arguments):
            names = [f"i{d}" for d in range(rank)]
        else:
            names = [p.name for p in arguments if p.default is p.empty]
    if len(names) != rank:
        raise TensorError(f"compute({name}): {len(names)} arguments for a shape of rank {rank}")
    if len(set(names)) < rank:
        raise TensorError(f"compute({name}): two axes have the same name in {list(names)}")
    return tuple(Var(n) for n in names)


def _check(name: str, axes: tuple[Var, ...], body: Expr) -> None:
    reduced = [v for v, _ in body.axes] if isinstance(body, Reduce) else []
    for v in reduced:
        if v in axes:
            raise TensorError(
                f"compute({name}): axis {v.name} is both spatial and reduced; rename one"
            )
        if reduced.count(v) > 1:
            raise TensorError(f"compute({name}): two reduced axes are named {v.name}; rename one")
    for node in ex.walk(body):
        if isinstance(node, Reduce) and node is not body:
            raise TensorError(
                f"compute({name}): a reduction must be the whole body; split the compute"
            )
        if isinstance(node, Var) and node not in axes and node not in reduced:
            raise TensorError(
                f"compute({name}): {node.name} is neither an axis nor reduced over; "
                "sum over it, or index with an axis"
            )


def _reduce(op: str, value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis]) -> Expr:
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    if not axes:
        raise TensorError(f"{op}(...): no axis to reduce over")
    body = as_expr(value)
    return Reduce(op, body, tuple((a.var, a.extent) for a in axes), body.dtype)


def sum(value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis]) -> Expr:
    """Sum over the axes."""
    return _reduce("sum", value, axis)


def prod(value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis]) -> Expr:
    """Product over the axes."""
    return _reduce("prod", value, axis)


def max(value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis]) -> Expr:
    """Maximum over the axes (of elements; `maximum` is that of two values)."""
    return _reduce("max", value, axis)


def min(value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis]) -> Expr:
    """Minimum over the axes."""
    return _reduce("min", value, axis)


def identity(op: str, dtype: DType) -> Const:
    """The neutral element of a reduction ("sum", "prod", "max", "min")."""
    if op in ("sum", "prod"):
        value = 0 if op == "sum" else 1
        return Const(float(value) if dtype.is_float else value, dtype)
    low = op == "max"
    if dtype.is_float:
        return Const(float("-inf") if low else float("inf"), dtype)
    if dtype is DType.BOOL:
        return Const(not low, dtype)
    bits, signed = dtype.n_bytes * 8, dtype is not DType.UINT8
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return Const(least if low else most, dtype)


def _define(op: str, doc: str) -> Callable[[ExprLike], Expr]:
    def f(a: ExprLike) -> Expr:
        return ex.unary(op, a)

    f.__name__, f.__doc__ = op, doc
    return f


exp = _define("exp", "Exponential function.")
log = _define("log", "Natural logarithm.")
tanh = _define("tanh", "Hyperbolic tangent.")
erf = _define("erf", "Gauss error function.")
sigmoid = _define("sigmoid", "Logistic function 1/(1+exp(-x)).")
sqrt = _define("sqrt", "Square root.")
rsqrt = _define("rsqrt", "Reciprocal square root.")
abs = _define("abs", "Absolute value.")
sin = _define("sin", "Sine.")
cos = _define("cos", "Cosine.")
floor = _define("floor", "Largest integer not above.")
ceil = _define("ceil", "Smallest integer not below.")
round = _define("round", "Nearest integer, halves to even.")
isnan = _define("isnan", "Whether the value is not a number.")
logical_not = _define("not", "Boolean negation.")


def power(a: ExprLike, b: ExprLike) -> Expr:
    """`a` to the power `b`."""
    return as_expr(a) ** b

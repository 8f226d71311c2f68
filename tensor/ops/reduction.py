"""Reductions over any axes, softmax, norms."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.dtype import DType, as_dtype
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.axes import axis_index
from tilewright.tensor.ops.elementwise import elementwise
from tilewright.tensor.ops.precision import narrowed, wide, wider
from tilewright.tensor.te import Compute, Tensor

__all__ = ["layer_norm", "log_softmax", "mean", "reduce", "rms_norm", "softmax"]

_REDUCE = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def reduce(
    x: Tensor,
    op: str,
    axes: Sequence[int],
    *,
    keepdims: bool = True,
    name: str = "Y",
    accumulate: DType | str | None = None,
) -> Compute:
    """Reduce over axes.

    Parameters
    ----------
    op : {"sum", "prod", "max", "min"}
    axes : sequence of int
        Negative ones count from the end.
    keepdims : bool
        Whether reduced axes stay, with one element.
    accumulate : DType, optional
        What elements are reduced in, and the result's type. By default their own; sums and products of
        float16 and bfloat16 run in float32 and are rounded at the end.
    """
    rank = len(x.shape)
    short = x.dtype if accumulate is None else as_dtype(accumulate)
    inner = short if op in ("max", "min") else wider(short)
    call = f"reduce({list(x.shape)}, {op!r}, {list(axes)})"
    if op not in _REDUCE:
        raise TensorError(f"{call}: unknown operation; choose one of {sorted(_REDUCE)}")
    gone = sorted({axis_index(call, a, rank) for a in axes})
    if len(gone) < len(axes):
        raise TensorError(f"{call}: an axis occurs twice")
    reduced = {d: te.reduce_axis(x.shape[d], f"r{d}") for d in gone}
    shape = [
        1 if d in reduced else n for d, n in enumerate(x.shape) if keepdims or d not in reduced
    ]
    names = [f"i{d}" for d in range(rank) if keepdims or d not in reduced]

    def body(*free: Expr) -> Expr:
        rest = iter(free)
        index: list[Expr] = []
        for d in range(rank):
            if d in reduced:
                index.append(reduced[d].var)
                if keepdims:
                    next(rest)
            else:
                index.append(next(rest))
        return _REDUCE[op](te.cast(x[tuple(index)], inner), list(reduced.values()))

    if inner is short:
        return te.compute(shape, body, name, axes=names)
    return narrowed(shape, body, name, short, axes=names)


def mean(x: Tensor, axes: Sequence[int], *, keepdims: bool = True, name: str = "Y") -> Compute:
    """Arithmetic mean over axes."""
    return _mean(x, axes, x.dtype, keepdims, name)


def _mean(
    x: Tensor, axes: Sequence[int], dtype: DType, keepdims: bool = True, name: str = "Y"
) -> Compute:
    """The mean as another type."""
    inner = wider(x.dtype)
    total = reduce(x, "sum", axes, keepdims=keepdims, name=f"{name}.sum", accumulate=inner)
    count = 1
    for a in {a % len(x.shape) for a in axes}:
        count *= x.shape[a]
    return elementwise(name, lambda v: te.cast(v * (1.0 / count), dtype), total)


def softmax(x: Tensor, *, axis: int | Sequence[int] = -1, name: str = "Y") -> Compute:
    """Normalised exponentials along an axis or over several, shifted by the maximum for safety."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    top = reduce(x, "max", axes, name=f"{name}.max")
    e = elementwise(f"{name}.exp", lambda v, m: te.exp(wide(v) - wide(m)), x, top)
    total = reduce(e, "sum", axes, name=f"{name}.sum")
    share = elementwise(f"{name}.inv", lambda s: 1.0 / s, total)  # one division a row
    return elementwise(name, lambda v, s: te.cast(v * s, x.dtype), e, share)


def log_softmax(x: Tensor, *, axis: int | Sequence[int] = -1, name: str = "Y") -> Compute:
    """Logarithm of `softmax`."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    top = reduce(x, "max", axes, name=f"{name}.max")
    centred = elementwise(f"{name}.sub", lambda v, m: wide(v) - wide(m), x, top)
    e = elementwise(f"{name}.exp", te.exp, centred)
    total = reduce(e, "sum", axes, name=f"{name}.sum")
    return elementwise(name, lambda v, s: te.cast(v - te.log(s), x.dtype), centred, total)


def layer_norm(
    x: Tensor,
    scale: Tensor | None,
    bias: Tensor | None,
    *,
    axis: int = -1,
    eps: float = 1e-5,
    name: str = "Y",
) -> Compute:
    """Normalise over the axes from `axis` on, then scale and shift."""
    rank = len(x.shape)
    axes = list(range(axis_index(f"layer_norm({list(x.shape)})", axis, rank), rank))
    average = _mean(x, axes, wider(x.dtype), name=f"{name}.mean")
    centred = elementwise(f"{name}.sub", lambda v, m: wide(v) - m, x, average)
    square = elementwise(f"{name}.sq", lambda v: v * v, centred)
    variance = mean(square, axes, name=f"{name}.var")
    operands: list[Tensor] = [centred, variance]
    operands += [t for t in (scale, bias) if t is not None]

    def body(v: Expr, s: Expr, *rest: Expr) -> Expr:
        out = v * te.rsqrt(s + eps)
        more = list(rest)
        if scale is not None:
            out = out * te.cast(more.pop(0), out.dtype)
        if bias is not None:
            out = out + te.cast(more.pop(0), out.dtype)
        return te.cast(out, x.dtype)

    return elementwise(name, body, *operands)


def rms_norm(
    x: Tensor, scale: Tensor | None, *, axis: int = -1, eps: float = 1e-5, name: str = "Y"
) -> Compute:
    """Divide by the root of the mean square over the axes from `axis` on, then scale."""
    rank = len(x.shape)
    axes = list(range(axis_index(f"rms_norm({list(x.shape)})", axis, rank), rank))
    square = elementwise(f"{name}.sq", lambda v: wide(v) * wide(v), x)
    power = mean(square, axes, name=f"{name}.ms")
    operands = [x, power, *([scale] if scale is not None else [])]

    def body(v: Expr, m: Expr, *g: Expr) -> Expr:
        out = wide(v) * te.rsqrt(m + eps)
        return te.cast(out * te.cast(g[0], out.dtype) if g else out, x.dtype)

    return elementwise(name, body, *operands)

"""Reductions over any axes, softmax, norms."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.axes import axis_index
from tilewright.tensor.ops.elementwise import elementwise
from tilewright.tensor.te import Compute, Tensor

__all__ = ["layer_norm", "log_softmax", "mean", "reduce", "rms_norm", "softmax"]

_REDUCE = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def reduce(
    x: Tensor, op: str, axes: Sequence[int], *, keepdims: bool = True, name: str = "Y"
) -> Compute:
    """Reduce over axes.

    Parameters
    ----------
    op : {"sum", "prod", "max", "min"}
    axes : sequence of int
        Negative ones count from the end.
    keepdims : bool
        Whether reduced axes stay, with one element.
    """
    rank = len(x.shape)
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
        return _REDUCE[op](x[tuple(index)], list(reduced.values()))

    return te.compute(shape, body, name, axes=names)


def mean(x: Tensor, axes: Sequence[int], *, keepdims: bool = True, name: str = "Y") -> Compute:
    """Arithmetic mean over axes."""
    total = reduce(x, "sum", axes, keepdims=keepdims, name=f"{name}.sum")
    count = 1
    for a in {a % len(x.shape) for a in axes}:
        count *= x.shape[a]
    return elementwise(name, lambda v: v * (1.0 / count), total)


def softmax(x: Tensor, *, axis: int | Sequence[int] = -1, name: str = "Y") -> Compute:
    """Normalised exponentials along an axis or over several, shifted by the maximum for safety."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    top = reduce(x, "max", axes, name=f"{name}.max")
    e = elementwise(f"{name}.exp", lambda v, m: te.exp(v - m), x, top)
    total = reduce(e, "sum", axes, name=f"{name}.sum")
    share = elementwise(f"{name}.inv", lambda s: 1.0 / s, total)  # one division a row
    return elementwise(name, lambda v, s: v * s, e, share)


def log_softmax(x: Tensor, *, axis: int | Sequence[int] = -1, name: str = "Y") -> Compute:
    """Logarithm of `softmax`."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    top = reduce(x, "max", axes, name=f"{name}.max")
    centred = elementwise(f"{name}.sub", lambda v, m: v - m, x, top)
    e = elementwise(f"{name}.exp", te.exp, centred)
    total = reduce(e, "sum", axes, name=f"{name}.sum")
    return elementwise(name, lambda v, s: v - te.log(s), centred, total)


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
    average = mean(x, axes, name=f"{name}.mean")
    centred = elementwise(f"{name}.sub", lambda v, m: v - m, x, average)
    square = elementwise(f"{name}.sq", lambda v: v * v, centred)
    variance = mean(square, axes, name=f"{name}.var")
    operands: list[Tensor] = [centred, variance]
    operands += [t for t in (scale, bias) if t is not None]

    def body(v: Expr, s: Expr, *rest: Expr) -> Expr:
        out = v * te.rsqrt(s + eps)
        more = list(rest)
        if scale is not None:
            out = out * more.pop(0)
        if bias is not None:
            out = out + more.pop(0)
        return out

    return elementwise(name, body, *operands)


def rms_norm(
    x: Tensor, scale: Tensor | None, *, axis: int = -1, eps: float = 1e-5, name: str = "Y"
) -> Compute:
    """Divide by the root of the mean square over the axes from `axis` on, then scale."""
    rank = len(x.shape)
    axes = list(range(axis_index(f"rms_norm({list(x.shape)})", axis, rank), rank))
    square = elementwise(f"{name}.sq", lambda v: v * v, x)
    power = mean(square, axes, name=f"{name}.ms")
    operands = [x, power, *([scale] if scale is not None else [])]
    return elementwise(
        name, lambda v, m, *g: v * te.rsqrt(m + eps) * g[0] if g else v * te.rsqrt(m + eps), *operands
    )  # fmt: skip

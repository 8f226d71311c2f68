"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.dtype import DType, as_dtype
from tilewright.tensor.expr import Const, Expr, ExprLike
from tilewright.tensor.ops.axes import check_lengths
from tilewright.tensor.ops.elementwise import broadcast_shape
from tilewright.tensor.ops.precision import narrowed, wider
from tilewright.tensor.te import Compute, Tensor

__all__ = ["conv", "conv2d", "matmul", "padded"]


def matmul(
    a: Tensor,
    b: Tensor,
    *,
    name: str = "C",
    transpose_a: bool = False,
    transpose_b: bool = False,
    accumulate: DType | str | None = None,
) -> Compute:
    """Matrix product of the last two dimensions, batches broadcast.

    Parameters
    ----------
    a : (..., m, k), or (..., k, m) if `transpose_a`
    b : (..., k, n), or (..., n, k) if `transpose_b`
    accumulate : DType, optional
        What products are computed and summed in, and the result's type. By default the operands' own
        type; float16 and bfloat16 are summed in float32, and the sum is rounded.
    """
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise TensorError(
            f"matmul({list(a.shape)}, {list(b.shape)}): needs two dimensions or more; reshape first"
        )
    m, ka = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    kb, n = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    if ka != kb:
        raise TensorError(
            f"matmul({list(a.shape)}, {list(b.shape)}): the inner sizes {ka} and {kb} differ"
        )
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    k = te.reduce_axis(ka, "k")
    short, wide = _types(a, accumulate)
    names = [f"b{d}" for d in range(len(batch))] + ["i", "j"]

    def index(t: Tensor, axes: tuple[Expr, ...], row: Expr, column: Expr) -> Expr:
        own = t.shape[:-2]
        lead = tuple(
            Const(0) if s == 1 else axes[len(batch) - len(own) + d] for d, s in enumerate(own)
        )
        return t[(*lead, row, column)]

    def body(*axes: Expr) -> Expr:
        *outer, i, j = axes
        lead = tuple(outer)
        left = index(a, lead, k.var, i) if transpose_a else index(a, lead, i, k.var)
        right = index(b, lead, j, k.var) if transpose_b else index(b, lead, k.var, j)
        return te.sum(te.cast(left, wide) * te.cast(right, wide), k)

    return narrowed((*batch, m, n), body, name, short, axes=names)


def _types(x: Tensor, accumulate: DType | str | None) -> tuple[DType, DType]:
    """The type of a sum of products, and that in which it is computed."""
    if accumulate is not None:
        return as_dtype(accumulate), as_dtype(accumulate)
    return x.dtype, wider(x.dtype)


def padded(
    x: Tensor, before: Sequence[int], after: Sequence[int], value: ExprLike, name: str
) -> Tensor:
    """The tensor with its trailing dimensions padded by a constant; itself if there is nothing to pad."""
    if not any(before) and not any(after):
        return x
    lead = len(x.shape) - len(before)
    shape = (*x.shape[:lead], *(n + b + a for n, b, a in zip(x.shape[lead:], before, after)))

    def body(*axes: Expr) -> Expr:
        inner = [v - b for v, b in zip(axes[lead:], before)]
        tests = []
        for v, n, b, a in zip(inner, x.shape[lead:], before, after):
            tests += ([v >= 0] if b else []) + ([v < n] if a else [])
        return te.select(te.logical_and(*tests), x[(*axes[:lead], *inner)], value)

    return te.compute(shape, body, name, axes=[f"p{d}" for d in range(len(shape))])


def conv(
    x: Tensor,
    w: Tensor,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    name: str = "Y",
    accumulate: DType | str | None = None,
    fill: ExprLike | None = None,
) -> Compute:
    """Convolution of any number of spatial dimensions, channels first.

    Parameters
    ----------
    x : (n, c_in, *spatial)
    w : (c_out, c_in / groups, *kernel)
    stride, dilation : one integer a spatial dimension
    padding : (before, after) for each spatial dimension
    groups : int
    accumulate : DType, optional
        As in `matmul`.
    fill : scalar, optional
        What the input is padded with, zero by default.
    """
    dims = len(x.shape) - 2
    dilation = dilation or [1] * dims
    call = f"conv({list(x.shape)}, {list(w.shape)}, groups={groups})"
    if not 1 <= dims <= 3 or len(w.shape) != len(x.shape):
        raise TensorError(f"{call}: needs one to three spatial dimensions, the same number in both")
    check_lengths(call, dims, stride=stride, padding=padding, dilation=dilation)
    out_channels, per_group, *kernel = w.shape
    if x.shape[1] != per_group * groups or out_channels % groups:
        raise TensorError(f"{call}: the channels do not fit")
    sizes = [
        (n + b + a - d * (k - 1) - 1) // s + 1
        for n, (b, a), k, s, d in zip(x.shape[2:], padding, kernel, stride, dilation)
    ]
    if min(sizes) < 1:
        raise TensorError(f"{call}: the kernel is larger than the padded input")
    fill = te.cast(0, x.dtype) if fill is None else fill
    source = padded(x, [b for b, _ in padding], [a for _, a in padding], fill, f"{name}.pad")
    short, wide = _types(x, accumulate)
    letters = "dhw"[-dims:]
    channel = te.reduce_axis(per_group, "ic")
    window = [te.reduce_axis(k, f"k{c}") for k, c in zip(kernel, letters)]
    depthwise = per_group == 1 and groups == out_channels

    def product(x: Expr, w: Expr) -> Expr:
        return te.cast(x, wide) * te.cast(w, wide)

    def body(n: Expr, oc: Expr, *place: Expr) -> Expr:
        at = [p * s + r.var * d for p, s, r, d in zip(place, stride, window, dilation)]
        if depthwise:
            return te.sum(product(source[(n, oc, *at)], w[(oc, 0, *window)]), window)
        base: Expr = (
            channel.var if groups == 1 else oc // (out_channels // groups) * per_group + channel.var
        )
        return te.sum(
            product(source[(n, base, *at)], w[(oc, channel, *window)]), [channel, *window]
        )

    names = ["n", "oc", *(f"o{c}" for c in letters)]
    return narrowed((x.shape[0], out_channels, *sizes), body, name, short, axes=names)


def conv2d(
    x: Tensor,
    w: Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    name: str = "Y",
) -> Compute:
    """`conv` with the same stride, padding and dilation in both dimensions."""
    return conv(
        x,
        w,
        stride=[stride] * 2,
        padding=[(padding, padding)] * 2,
        dilation=[dilation] * 2,
        groups=groups,
        name=name,
    )

"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.axes import check_lengths
from tilewright.tensor.ops.elementwise import elementwise
from tilewright.tensor.ops.linear import padded
from tilewright.tensor.ops.precision import wide
from tilewright.tensor.te import Compute, Tensor

__all__ = ["global_pool", "pool"]


def pool(
    x: Tensor,
    kind: str,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    name: str = "Y",
) -> Compute:
    """Maximum, sum or average over windows.

    Parameters
    ----------
    x : (n, c, *spatial)
    kind : {"max", "sum", "average"}
    kernel, stride, dilation : one integer a spatial dimension
    padding : (before, after) for each spatial dimension
    ceil_mode : bool
        Add a window that starts inside but ends outside where the others leave a remainder.
    count_include_pad : bool
        Whether the average counts padding.
    """
    call, dims = f"pool({list(x.shape)}, {kind!r})", len(x.shape) - 2
    if kind not in ("max", "sum", "average") or not 1 <= dims <= 3:
        raise TensorError(
            f"{call}: needs 'max', 'sum' or 'average' and one to three spatial dimensions"
        )
    dilation = dilation or [1] * dims
    check_lengths(call, dims, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    sizes, extra = [], []
    for n, k, s, (b, a) in zip(x.shape[2:], spans, stride, padding):
        room = n + b + a - k
        size = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (size - 1) * s >= n + b:
            size -= 1
        if size < 1:
            raise TensorError(f"{call}: the kernel {list(kernel)} is larger than the padded input")
        sizes.append(size)
        extra.append(max(a, (size - 1) * s + k - n - b))
    before = [b for b, _ in padding]
    fill = te.identity("max" if kind == "max" else "sum", x.dtype)
    source = padded(x, before, extra, fill, f"{name}.pad")
    letters = "dhw"[-len(kernel) :]
    window = [te.reduce_axis(k, f"k{c}") for k, c in zip(kernel, letters)]
    names = ["n", "c", *(f"o{c}" for c in letters)]

    def body(n: Expr, c: Expr, *place: Expr) -> Expr:
        at = [p * s + r.var * d for p, s, r, d in zip(place, stride, window, dilation)]
        value = source[(n, c, *at)]
        if kind == "average":
            return te.sum(wide(value), window)
        return (te.max if kind == "max" else te.sum)(value, window)

    shape = (x.shape[0], x.shape[1], *sizes)
    if kind != "average":
        return te.compute(shape, body, name, axes=names)
    total = te.compute(shape, body, f"{name}.sum", axes=names)

    def average(*axes: Expr) -> Expr:
        if count_include_pad and not ceil_mode:
            count = 1
            for k in kernel:
                count *= k
            return te.cast(total[axes] * (1.0 / count), x.dtype)
        size: Expr = te.cast(1, "int64")
        for v, n, k, s, d, (b, a) in zip(axes[2:], x.shape[2:], kernel, stride, dilation, padding):
            low, high = (-b, n + a) if count_include_pad else (0, n)
            start = v * s - b  # taps t of k lie at start + d * t
            first = te.maximum((low - start + d - 1) // d, 0)
            size = size * (te.minimum((high - start + d - 1) // d, k) - first)
        return te.cast(total[axes] / te.cast(size, total.dtype), x.dtype)

    return te.compute(shape, lambda *axes: average(*axes), name=name)


def global_pool(x: Tensor, kind: str, *, name: str = "Y") -> Compute:
    """Maximum or average over all spatial dimensions, which stay as ones."""
    if kind not in ("max", "average") or len(x.shape) < 3:
        raise TensorError(
            f"global_pool({list(x.shape)}, {kind!r}): needs 'max' or 'average' and a spatial dimension"
        )
    window = [te.reduce_axis(n, f"k{d}") for d, n in enumerate(x.shape[2:])]
    shape = (*x.shape[:2], *(1 for _ in window))
    names = ["n", "c", *(f"o{d}" for d in range(len(window)))]

    def body(n: Expr, c: Expr, *place: Expr) -> Expr:
        at = [p + r.var for p, r in zip(place, window)]
        value = x[(n, c, *at)]
        return te.max(value, window) if kind == "max" else te.sum(wide(value), window)

    if kind == "max":
        return te.compute(shape, body, name, axes=names)
    total = te.compute(shape, body, f"{name}.sum", axes=names)
    count = 1
    for n in x.shape[2:]:
        count *= n
    return elementwise(name, lambda v: te.cast(v * (1.0 / count), x.dtype), total)

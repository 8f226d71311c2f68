"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.elementwise import elementwise
from tilewright.tensor.ops.linear import _named, padded
from tilewright.tensor.te import Compute, Tensor

__all__ = ["global_pool", "pool"]


def pool(
    x: Tensor,
    kind: str,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    name: str = "Y",
) -> Compute:
    """Maximum or average over windows.

    Parameters
    ----------
    x : (n, c, *spatial)
    kind : {"max", "average"}
    kernel, stride : one integer a spatial dimension
    padding : (before, after) for each spatial dimension
    ceil_mode : bool
        Keep windows that start inside but end outside.
    count_include_pad : bool
        Whether the average counts padding.
    """
    sizes, extra = [], []
    for n, k, s, (b, a) in zip(x.shape[2:], kernel, stride, padding):
        room = n + b + a - k
        size = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (size - 1) * s >= n + b:
            size -= 1
        sizes.append(size)
        extra.append(max(a, (size - 1) * s + k - n - b))
    before = [b for b, _ in padding]
    source = padded(x, before, extra, float("-inf") if kind == "max" else 0.0, f"{name}.pad")
    letters = "dhw"[-len(kernel) :]
    window = [te.reduce_axis(k, f"k{c}") for k, c in zip(kernel, letters)]
    names = ["n", "c", *(f"o{c}" for c in letters)]

    def body(n: Expr, c: Expr, *place: Expr) -> Expr:
        at = [p * s + r.var for p, s, r in zip(place, stride, window)]
        return (te.max if kind == "max" else te.sum)(source[(n, c, *at)], window)

    shape = (x.shape[0], x.shape[1], *sizes)
    if kind == "max":
        return _named(shape, names, body, name)
    total = _named(shape, names, body, f"{name}.sum")

    def average(*axes: Expr) -> Expr:
        if count_include_pad and not ceil_mode:
            count = 1
            for k in kernel:
                count *= k
            return total[axes] * (1.0 / count)
        size: Expr = te.cast(1, "int64")
        for v, n, k, s, (b, a) in zip(axes[2:], x.shape[2:], kernel, stride, padding):
            low, high = (-b, n + a) if count_include_pad else (0, n)
            start = v * s - b
            size = size * (te.minimum(start + k, high) - te.maximum(start, low))
        return total[axes] / te.cast(size, x.dtype)

    return te.compute(shape, lambda *axes: average(*axes), name=name)


def global_pool(x: Tensor, kind: str, *, name: str = "Y") -> Compute:
    """Maximum or average over all spatial dimensions, which stay as ones."""
    window = [te.reduce_axis(n, f"k{d}") for d, n in enumerate(x.shape[2:])]
    shape = (*x.shape[:2], *(1 for _ in window))
    names = ["n", "c", *(f"o{d}" for d in range(len(window)))]

    def body(n: Expr, c: Expr, *place: Expr) -> Expr:
        at = [p + r.var for p, r in zip(place, window)]
        return (te.max if kind == "max" else te.sum)(x[(n, c, *at)], window)

    if kind == "max":
        return _named(shape, names, body, name)
    total = _named(shape, names, body, f"{name}.sum")
    count = 1
    for n in x.shape[2:]:
        count *= n
    return elementwise(name, lambda v: v * (1.0 / count), total)

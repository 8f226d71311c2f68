"""Sums of float16 and bfloat16 run in float32 and are rounded once, at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.tensor import te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Expr, ExprLike
from tilewright.tensor.te import Compute

__all__ = ["narrowed", "wide", "wider"]


def wider(dtype: DType) -> DType:
    """What elements of a type are computed in: float32 for float16 and bfloat16."""
    return DType.FLOAT32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype


def wide(x: Expr) -> Expr:
    """A value in the type that it is computed in."""
    return te.cast(x, wider(x.dtype))


def narrowed(
    shape: Sequence[int],
    f: Callable[..., ExprLike],
    name: str,
    dtype: DType,
    *,
    axes: Sequence[str] | None = None,
) -> Compute:
    """`te.compute` of something that may be wider than its result; then it gets a stage that rounds."""
    if wider(dtype) is dtype:
        return te.compute(shape, f, name, axes=axes)
    exact = te.compute(shape, f, f"{name}.wide", axes=axes)
    return te.compute(
        shape, lambda *at: te.cast(exact[at], dtype), name, axes=[v.name for v in exact.axes]
    )

"""Operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.expr import Const, Expr, ExprLike
from tilewright.tensor.ops.axes import axis_index, check_lengths
from tilewright.tensor.ops.elementwise import elementwise
from tilewright.tensor.te import Compute, Tensor

__all__ = ["concat", "expand", "gather", "pad", "reshape", "slice_", "transpose"]


def transpose(x: Tensor, order: Sequence[int], *, name: str = "Y") -> Compute:
    """Permute the dimensions: result dimension d is dimension order[d] of `x`."""
    if sorted(order) != list(range(len(x.shape))):
        raise TensorError(
            f"transpose({list(x.shape)}, {list(order)}): no permutation of the dimensions"
        )

    def body(*axes: Expr) -> Expr:
        source: list[Expr] = [Const(0)] * len(order)
        for d, o in enumerate(order):
            source[o] = axes[d]
        return x[tuple(source)]

    return te.compute([x.shape[o] for o in order], lambda *axes: body(*axes), name=name)


def reshape(x: Tensor, shape: Sequence[int], *, name: str = "Y") -> Compute:
    """The same elements in row-major order under another shape."""
    size = 1
    for n in shape:
        size *= n
    if size != x.size:
        raise TensorError(
            f"reshape({list(x.shape)} to {list(shape)}): {x.size} elements do not make {size}"
        )
    groups = _aligned(tuple(x.shape), tuple(shape))

    def body(*axes: Expr) -> Expr:
        index: list[Expr] = [Const(0)] * len(x.shape)
        for old, new in groups:
            flat: Expr = Const(0)
            for d in new:
                flat = flat * shape[d] + axes[d]
            for d in reversed(old[1:]):
                index[d] = flat % x.shape[d]
                flat = flat // x.shape[d]
            index[old[0]] = flat
        return x[tuple(index)]

    return te.compute(shape, lambda *axes: body(*axes), name=name)


def _aligned(
    old: tuple[int, ...], new: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The smallest runs of old and new dimensions that hold the same elements; ones are left out.

    Within a run indices need division and remainder; between runs they are independent.
    """
    left = [d for d, n in enumerate(old) if n > 1]
    right = [d for d, n in enumerate(new) if n > 1]
    groups = []
    while left:
        a, b = [left.pop(0)], [right.pop(0)]
        size_a, size_b = old[a[0]], new[b[0]]
        while size_a != size_b:
            if size_a < size_b:
                a.append(left.pop(0))
                size_a *= old[a[-1]]
            else:
                b.append(right.pop(0))
                size_b *= new[b[-1]]
        groups.append((tuple(a), tuple(b)))
    return groups


def concat(tensors: Sequence[Tensor], axis: int, *, name: str = "Y") -> Compute:
    """Join tensors along an axis."""
    rank = len(tensors[0].shape)
    call = f"concat({[list(t.shape) for t in tensors]}, axis={axis})"
    axis = axis_index(call, axis, rank)
    rest = {(*t.shape[:axis], -1, *t.shape[axis + 1 :]) for t in tensors}
    if len(rest) > 1:
        raise TensorError(f"{call}: the shapes differ in another dimension than the axis")
    total = sum(t.shape[axis] for t in tensors)
    shape = [total if d == axis else n for d, n in enumerate(tensors[0].shape)]

    def body(*axes: Expr) -> Expr:
        end = total
        out: Expr | None = None
        for t in reversed(tensors):
            start = end - t.shape[axis]
            here = t[tuple(v - start if d == axis else v for d, v in enumerate(axes))]
            out = here if out is None else te.select(axes[axis] < end, here, out)
            end = start
        assert out is not None
        return out

    return te.compute(shape, lambda *axes: body(*axes), name=name)


def slice_(
    x: Tensor, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int], *, name: str = "Y"
) -> Compute:
    """Every `steps`-th element from `starts`, `sizes` of them, in each dimension."""
    call = f"slice_({list(x.shape)})"
    check_lengths(call, len(x.shape), starts=starts, sizes=sizes, steps=steps)
    for d, (n, first, size, step) in enumerate(zip(x.shape, starts, sizes, steps)):
        last = first + (size - 1) * step
        if not (0 <= first < n and 0 <= last < n):
            raise TensorError(
                f"{call}: dimension {d} has the indices 0 to {n - 1}, not {first} to {last}"
            )
    return te.compute(
        sizes, lambda *axes: x[tuple(v * s + b for v, b, s in zip(axes, starts, steps))], name=name
    )


def pad(
    x: Tensor,
    before: Sequence[int],
    after: Sequence[int],
    *,
    mode: str = "constant",
    value: float | Tensor = 0.0,
    name: str = "Y",
) -> Compute:
    """Pad every dimension; negative paddings cut.

    Parameters
    ----------
    before, after : one integer a dimension
    mode : {"constant", "edge", "reflect", "wrap"}
    value : number or tensor of one element
    """
    call = f"pad({list(x.shape)}, {list(before)}, {list(after)}, mode={mode!r})"
    check_lengths(call, len(x.shape), before=before, after=after)
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise TensorError(f"{call}: unknown mode; choose constant, edge, reflect or wrap")
    if mode == "reflect" and any(p >= n for p, n in zip((*before, *after), x.shape * 2)):
        raise TensorError(f"{call}: a reflected border must be smaller than the dimension")
    shape = [n + b + a for n, b, a in zip(x.shape, before, after)]

    def body(*axes: Expr) -> Expr:
        inner = [v - b for v, b in zip(axes, before)]
        if mode == "wrap":
            return x[tuple(v % n if n > 1 else Const(0) for v, n in zip(inner, x.shape))]
        if mode == "edge":
            return x[tuple(te.minimum(te.maximum(v, 0), n - 1) for v, n in zip(inner, x.shape))]
        if mode == "reflect":
            folded = [te.maximum(v, -v) for v in inner]
            return x[tuple(te.minimum(v, 2 * (n - 1) - v) for v, n in zip(folded, x.shape))]
        tests = [
            t
            for v, n, b, a in zip(inner, x.shape, before, after)
            for t in (([v >= 0] if b else []) + ([v < n] if a else []))
        ]
        if not tests:
            return x[tuple(inner)]
        number: ExprLike
        if isinstance(value, (int, float)):
            number = value if x.dtype.is_float else int(value)
        else:
            number = value[tuple(Const(0) for _ in value.shape)] if value.shape else _only(value)
        return te.select(te.logical_and(*tests), x[tuple(inner)], number)

    return te.compute(shape, lambda *axes: body(*axes), name=name)


def wrapped(index: Expr, size: int) -> Expr:
    """A data-dependent place, counted from the end where it is negative, and kept inside."""
    index = te.cast(index, "int64")
    index = te.select(index < 0, index + size, index)
    return te.minimum(te.maximum(index, te.cast(0, "int64")), te.cast(size - 1, "int64"))


def gather(x: Tensor, indices: Tensor, *, axis: int = 0, name: str = "Y") -> Compute:
    """Take the slices of `x` along an axis that `indices` name; negative ones count from the end.

    An index beyond either end takes the slice at that end: no index reads outside of `x`.
    """
    axis = axis_index(f"gather({list(x.shape)})", axis, len(x.shape))
    rank = len(indices.shape)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])

    def body(*axes: Expr) -> Expr:
        place = tuple(axes[axis : axis + rank])
        i = wrapped(indices[place] if rank else _only(indices), x.shape[axis])
        return x[(*axes[:axis], i, *axes[axis + rank :])]

    return te.compute(shape, lambda *axes: body(*axes), name=name)


def _only(t: Tensor) -> Expr:
    from tilewright.tensor.ops.elementwise import te_scalar

    return te_scalar(t)


def expand(x: Tensor, shape: Sequence[int], *, name: str = "Y") -> Compute:
    """Broadcast to a shape."""
    return elementwise(name, lambda v: v, x, shape=tuple(shape))

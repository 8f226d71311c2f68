"""Operators that move elements without computing."""

from __future__ import annotations

from tilewright.graph.operators.call import Call, Lower, Table, view_shape
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]


def _transpose(call: Call) -> Compute:
    x = call.tensor(0)
    order = call.attribute("perm") or tuple(reversed(range(len(x.shape))))
    return ops.transpose(x, order, name=call.name)


def _reshape(call: Call) -> Compute:
    return ops.reshape(call.tensor(0), view_shape(call), name=call.name)


def _concat(call: Call) -> Compute:
    tensors = [call.tensor(n) for n in range(len(call.tensors))]
    return ops.concat(tensors, int(call.attribute("axis")), name=call.name)


def _slice(call: Call) -> Compute:
    x = call.tensor(0)
    starts, ends = call.numbers(1, "starts") or [], call.numbers(2, "ends") or []
    axes = call.numbers(3, "axes") or list(range(len(starts)))
    steps = call.numbers(4) or [1] * len(starts)
    first, sizes, by = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    for a, b, e, s in zip(axes, starts, ends, steps):
        span = range(*slice(b, e if e > -(1 << 62) else None, s).indices(x.shape[a]))
        first[a], sizes[a], by[a] = span.start, len(span), s
    return ops.slice_(x, first, sizes, by, name=call.name)


def _tile(call: Call) -> Compute:
    x, times = call.tensor(0), call.numbers(1) or []
    shape = [n * t for n, t in zip(x.shape, times)]
    return te.compute(
        shape,
        lambda *axes: x[tuple(v % n if n > 1 else Const(0) for v, n in zip(axes, x.shape))],
        name=call.name,
    )


def _pad(call: Call) -> Compute:
    x = call.tensor(0)
    pads = call.numbers(1, "pads") or []
    mode = call.attribute("mode", "constant")
    value: float | Tensor = float(call.attribute("value", 0.0))
    if call.has(2):
        known = call.constants[2]
        value = call.tensor(2) if known is None else known.reshape(-1)[0].item()
    rank = len(x.shape)
    axes = call.numbers(3) or list(range(rank))
    before, after = [0] * rank, [0] * rank
    for n, a in enumerate(axes):
        before[a], after[a] = pads[n], pads[len(axes) + n]
    return ops.pad(x, before, after, mode=mode, value=value, name=call.name)


def _depth_to_space(call: Call) -> Compute:
    x, b = call.tensor(0), int(call.attribute("blocksize"))
    n, c, h, w = x.shape
    small = c // (b * b)
    columns_first = call.attribute("mode", "DCR") == "CRD"

    def body(i: Expr, d: Expr, y: Expr, z: Expr) -> Expr:
        inner = y % b * b + z % b
        channel = d * (b * b) + inner if columns_first else inner * small + d
        return x[(i, channel, y // b, z // b)]

    return te.compute((n, small, h * b, w * b), body, name=call.name)


def _space_to_depth(call: Call) -> Compute:
    x, b = call.tensor(0), int(call.attribute("blocksize"))
    n, c, h, w = x.shape
    columns_first = call.attribute("mode", "DCR") == "CRD"

    def body(i: Expr, d: Expr, y: Expr, z: Expr) -> Expr:
        block, channel = (d % (b * b), d // (b * b)) if columns_first else (d // c, d % c)
        return x[(i, channel, y * b + block // b, z * b + block % b)]

    return te.compute((n, c * b * b, h // b, w // b), body, name=call.name)


def _trilu(call: Call) -> Compute:
    x = call.tensor(0)
    shift = (call.numbers(1) or [0])[0]
    upper = bool(call.attribute("upper", 1))

    def body(*axes: Expr) -> Expr:
        i, j = axes[-2:]
        keep = j - i >= shift if upper else j - i <= shift
        return te.select(keep, x[axes], te.cast(0, x.dtype))

    return te.compute(x.shape, lambda *axes: body(*axes), name=call.name)


def _cumulative(op: str) -> Lower:
    def lower(call: Call) -> Compute:
        """Each result by itself: the work grows with the square of the axis."""
        x = call.tensor(0)
        axis = (call.numbers(1) or [0])[0] % len(x.shape)
        exclusive = bool(call.attribute("exclusive", 0))
        reverse = bool(call.attribute("reverse", 0))
        k = te.reduce_axis(x.shape[axis], "k")

        def body(*axes: Expr) -> Expr:
            at = [*axes]
            at[axis] = k.var
            first, second = (axes[axis], k.var) if reverse else (k.var, axes[axis])
            inside = first < second if exclusive else first <= second
            each = te.select(inside, x[tuple(at)], te.identity(op, x.dtype))
            return te.sum(each, k) if op == "sum" else te.prod(each, k)

        return te.compute(x.shape, lambda *axes: body(*axes), name=call.name)

    return lower


OPERATORS: Table = {
    "Transpose": ("move", _transpose),
    "Reshape": ("move", _reshape),
    "Concat": ("move", _concat),
    "Slice": ("move", _slice),
    "Tile": ("move", _tile),
    "Pad": ("move", _pad),
    "DepthToSpace": ("move", _depth_to_space),
    "SpaceToDepth": ("move", _space_to_depth),
    "Trilu": ("move", _trilu),
    "CumSum": ("rows", _cumulative("sum")),
    "CumProd": ("rows", _cumulative("prod")),
}

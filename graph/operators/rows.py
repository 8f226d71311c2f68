"""Reductions along axes, softmax, norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Lower, Table
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.precision import wider
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]


def _reduced(call: Call) -> list[int]:
    """The axes of a reduction; none given means all, or with `noop_with_empty_axes` none."""
    axes = call.numbers(1, "axes")
    if axes or call.attribute("noop_with_empty_axes", 0):
        return axes or []
    return list(range(len(call.tensor(0).shape)))


def _reduce(op: str) -> Lower:
    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        axes = _reduced(call)
        if not axes:
            return te.compute(x.shape, lambda *v: x[v], name=call.name)
        keep = bool(call.attribute("keepdims", 1))
        if op == "mean":
            return ops.mean(x, axes, keepdims=keep, name=call.name)
        return ops.reduce(x, op, axes, keepdims=keep, name=call.name)

    return lower


def _softmax(f: Callable[..., Compute]) -> Lower:
    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        if call.node.opset >= 13:
            return f(x, axis=int(call.attribute("axis", -1)), name=call.name)
        axis = int(call.attribute("axis", 1)) % max(1, len(x.shape))
        if axis == len(x.shape) - 1 or all(n == 1 for n in x.shape[axis + 1 :]):
            return f(x, axis=axis, name=call.name)
        return f(x, axis=range(axis, len(x.shape)), name=call.name)

    return lower


def _layer_norm(call: Call) -> Compute:
    return ops.layer_norm(
        call.tensor(0), call.tensor(1) if call.has(1) else None, call.tensor(2) if call.has(2) else None,
        axis=int(call.attribute("axis", -1)), eps=float(call.attribute("epsilon", 1e-5)), name=call.name,
    )  # fmt: skip


def _rms_norm(call: Call) -> Compute:
    return ops.rms_norm(
        call.tensor(0), call.tensor(1), axis=int(call.attribute("axis", -1)),
        eps=float(call.attribute("epsilon", 1e-5)), name=call.name,
    )  # fmt: skip


def _composed(before: Callable[[Expr], Expr], after: Callable[[Expr], Expr]) -> Lower:
    """A sum of something of each element, and something of the sum."""

    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        axes = _reduced(call)
        keep = bool(call.attribute("keepdims", 1))
        if not axes:
            return ops.elementwise(call.name, lambda v: after(before(v)), x)
        each = ops.elementwise(f"{call.name}.each", before, x)
        total = ops.reduce(each, "sum", axes, keepdims=keep, name=f"{call.name}.sum")
        return ops.elementwise(call.name, after, total)

    return lower


def _in_single(lower: Lower) -> Lower:
    """Compute float16 and bfloat16 in float32, and round at the end."""

    def whole(call: Call) -> Compute:
        dtype = call.tensor(0).dtype
        single = wider(dtype)
        if single is dtype:
            return lower(call)
        tensors = tuple(
            t if t is None or not t.dtype.is_float
            else ops.elementwise(f"{call.name}.in{n}", lambda v: te.cast(v, single), t)
            for n, t in enumerate(call.tensors)
        )  # fmt: skip
        out = lower(replace(call, tensors=tensors, name=f"{call.name}.wide"))
        return ops.elementwise(call.name, lambda v: te.cast(v, dtype), out)

    return whole


def _log_sum_exp(call: Call) -> Compute:
    x = call.tensor(0)
    axes = _reduced(call)
    keep = bool(call.attribute("keepdims", 1))
    if not axes:
        return te.compute(x.shape, lambda *v: x[v], name=call.name)
    most = ops.reduce(x, "max", axes, name=f"{call.name}.max")
    # an infinite maximum is no shift: the difference of two infinities is no number
    top = ops.elementwise(
        f"{call.name}.top", lambda m: te.select(te.abs(m) < math.inf, m, te.cast(0, m.dtype)), most
    )
    e = ops.elementwise(f"{call.name}.exp", lambda v, m: te.exp(v - m), x, top)
    total = ops.reduce(e, "sum", axes, name=f"{call.name}.sum")
    out = ops.elementwise(f"{call.name}.log", lambda s, m: te.log(s) + m, total, top)
    shape = [n for d, n in enumerate(x.shape) if keep or d not in {a % len(x.shape) for a in axes}]
    if keep:
        shape = list(out.shape)
    return ops.reshape(out, shape, name=call.name)


def _extreme_place(op: str) -> Lower:
    """Where the greatest or least element is: the first such place, or the last."""

    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        axis = int(call.attribute("axis", 0)) % len(x.shape)
        keep, last = (
            bool(call.attribute("keepdims", 1)),
            bool(call.attribute("select_last_index", 0)),
        )
        n = x.shape[axis]
        best = ops.reduce(x, op, [axis], name=f"{call.name}.{op}")
        shape = [1 if d == axis else s for d, s in enumerate(x.shape)]
        k = te.reduce_axis(n, "k")

        def place(*axes: Expr) -> Expr:
            at = [*axes]
            at[axis] = k.var
            value, top = x[tuple(at)], best[axes]
            found = te.equal(value, top)
            if x.dtype.is_float:  # the extreme of a row with a NaN is NaN
                found = te.logical_or(found, te.isnan(value))
            where = te.select(found, te.cast(k.var, "int64"), te.cast(-1 if last else n, "int64"))
            return te.max(where, k) if last else te.min(where, k)

        out = te.compute(
            shape, lambda *axes: place(*axes), f"{call.name}.place" if not keep else call.name
        )
        if keep:
            return out
        return ops.reshape(out, [s for d, s in enumerate(x.shape) if d != axis], name=call.name)

    return lower


def _normalised(call: Call, x: Tensor, axes: list[int], eps: float) -> Compute:
    """(x - mean) / sqrt(variance + eps) over axes."""
    mean = ops.mean(x, axes, name=f"{call.name}.mean")
    centred = ops.elementwise(f"{call.name}.sub", lambda v, m: v - m, x, mean)
    square = ops.elementwise(f"{call.name}.sq", lambda v: v * v, centred)
    variance = ops.mean(square, axes, name=f"{call.name}.var")
    return ops.elementwise(
        f"{call.name}.norm", lambda v, s: v * te.rsqrt(s + eps), centred, variance
    )


def _instance_norm(call: Call) -> Compute:
    x, scale, bias = (call.tensor(n) for n in range(3))
    y = _normalised(call, x, list(range(2, len(x.shape))), float(call.attribute("epsilon", 1e-5)))
    return te.compute(
        x.shape, lambda *axes: y[axes] * scale[axes[1]] + bias[axes[1]], name=call.name
    )


def _group_norm(call: Call) -> Compute:
    x, scale, bias = (call.tensor(n) for n in range(3))
    groups, channels = int(call.attribute("num_groups")), x.shape[1]
    size = channels // groups
    if channels % groups:
        raise GraphError(f"{call.node.op} {call.node.name}: {channels} channels in {groups} groups")
    split = (x.shape[0], groups, size, *x.shape[2:])
    parts = te.compute(
        split,
        lambda n, g, c, *rest: x[(n, g * size + c, *rest)],
        f"{call.name}.groups",
    )
    y = _normalised(call, parts, list(range(2, len(split))), float(call.attribute("epsilon", 1e-5)))
    per_channel = call.node.opset >= 21  # before, one scale a group

    def body(n: Expr, c: Expr, *rest: Expr) -> Expr:
        of = c if per_channel else c // size
        return y[(n, c // size, c % size, *rest)] * scale[of] + bias[of]

    return te.compute(x.shape, body, name=call.name)


def _lp_norm(call: Call) -> Compute:
    x, p = call.tensor(0), int(call.attribute("p", 2))
    axis = int(call.attribute("axis", -1))
    each = ops.elementwise(f"{call.name}.each", te.abs if p == 1 else lambda v: v * v, x)
    total = ops.reduce(each, "sum", [axis], name=f"{call.name}.sum")

    def body(v: Expr, s: Expr) -> Expr:  # a row of zeros stays one
        return te.select(te.equal(s, 0.0), s, v / (s if p == 1 else te.sqrt(s)))

    return ops.elementwise(call.name, body, x, total)


def _hardmax(call: Call) -> Compute:
    """One where the first greatest element of each row is, zero elsewhere."""
    x = call.tensor(0)
    axis = int(call.attribute("axis", -1 if call.node.opset >= 13 else 1)) % len(x.shape)
    axes = [axis] if call.node.opset >= 13 else list(range(axis, len(x.shape)))
    top = ops.reduce(x, "max", axes, name=f"{call.name}.max")
    runs = {d: te.reduce_axis(x.shape[d], f"r{d}") for d in axes}
    names = [f"i{d}" for d in range(len(x.shape))]

    def flat(at: Sequence[Expr]) -> Expr:
        out: Expr = Const(0)
        for d in axes:
            out = out * x.shape[d] + at[d]
        return te.cast(out, "int64")

    def place(*v: Expr) -> Expr:
        at = [runs[d].var if d in runs else e for d, e in enumerate(v)]
        hit = te.equal(x[tuple(at)], top[v])
        return te.min(te.select(hit, flat(at), te.cast(x.size, "int64")), list(runs.values()))

    first = te.compute(top.shape, place, f"{call.name}.place", axes=names)

    def body(*v: Expr) -> Expr:
        row = tuple(Const(0) if d in runs else e for d, e in enumerate(v))
        hit = te.equal(first[row], flat(v))
        return te.select(hit, te.cast(1, x.dtype), te.cast(0, x.dtype))

    return te.compute(x.shape, lambda *v: body(*v), name=call.name)


OPERATORS: Table = {
    "ReduceL1": ("rows", _in_single(_composed(te.abs, lambda s: s))),
    "ReduceL2": ("rows", _in_single(_composed(lambda v: v * v, te.sqrt))),
    "ReduceSumSquare": ("rows", _in_single(_composed(lambda v: v * v, lambda s: s))),
    "ReduceLogSum": ("rows", _in_single(_composed(lambda v: v, te.log))),
    "ReduceLogSumExp": ("rows", _in_single(_log_sum_exp)),
    "ArgMax": ("rows", _extreme_place("max")),
    "ArgMin": ("rows", _extreme_place("min")),
    "Hardmax": ("rows", _hardmax),
    "InstanceNormalization": ("rows", _in_single(_instance_norm)),
    "GroupNormalization": ("rows", _in_single(_group_norm)),
    "LpNormalization": ("rows", _in_single(_lp_norm)),
    **{
        f"Reduce{op}": ("rows", _reduce(op.lower())) for op in ("Sum", "Max", "Min", "Prod", "Mean")
    },
    "Softmax": ("rows", _softmax(ops.softmax)),
    "LogSoftmax": ("rows", _softmax(ops.log_softmax)),
    "LayerNormalization": ("rows", _layer_norm),
    "RMSNormalization": ("rows", _rms_norm),
}

"""Reductions along axes, softmax, norms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Lower, Table
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.precision import wider
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]


def _reduce(op: str) -> Lower:
    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        axes = call.numbers(1, "axes")
        if not axes:
            axes = list(range(len(x.shape)))
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
        raise GraphError(
            f"{call.node.op} {call.node.name}: before opset 13 it flattens axes from {axis} on, which is not implemented"
        )

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
        axes = call.numbers(1, "axes") or list(range(len(x.shape)))
        keep = bool(call.attribute("keepdims", 1))
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
    axes = call.numbers(1, "axes") or list(range(len(x.shape)))
    keep = bool(call.attribute("keepdims", 1))
    top = ops.reduce(x, "max", axes, name=f"{call.name}.max")
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
    return ops.elementwise(call.name, lambda v, s: v / (s if p == 1 else te.sqrt(s)), x, total)


OPERATORS: Table = {
    "ReduceL1": ("rows", _in_single(_composed(te.abs, lambda s: s))),
    "ReduceL2": ("rows", _in_single(_composed(lambda v: v * v, te.sqrt))),
    "ReduceSumSquare": ("rows", _in_single(_composed(lambda v: v * v, lambda s: s))),
    "ReduceLogSum": ("rows", _in_single(_composed(lambda v: v, te.log))),
    "ReduceLogSumExp": ("rows", _in_single(_log_sum_exp)),
    "ArgMax": ("rows", _extreme_place("max")),
    "ArgMin": ("rows", _extreme_place("min")),
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

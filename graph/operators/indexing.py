"""Operators whose places come from tensors: gather, scatter, one-hot."""

from __future__ import annotations

import math

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.tensor import te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.layout import wrapped
from tilewright.tensor.te import Compute

__all__ = ["OPERATORS"]


def _wrapped(index: Expr, size: int) -> Expr:
    """A place counted from the end where it is negative; one outside equals no place."""
    index = te.cast(index, "int64")
    return te.select(index < 0, index + size, index)


def _gather_elements(call: Call) -> Compute:
    x, indices = call.tensor(0), call.tensor(1)
    axis = int(call.attribute("axis", 0)) % len(x.shape)

    def body(*axes: Expr) -> Expr:
        at = [*axes]
        at[axis] = wrapped(indices[axes], x.shape[axis])
        return x[tuple(at)]

    return te.compute(indices.shape, lambda *axes: body(*axes), name=call.name)


def _gather_nd(call: Call) -> Compute:
    x, indices = call.tensor(0), call.tensor(1)
    batch = int(call.attribute("batch_dims", 0))
    depth, lead = indices.shape[-1], len(indices.shape) - 1
    rest = x.shape[batch + depth :]

    def body(*axes: Expr) -> Expr:
        own = axes[:lead]
        at = [wrapped(indices[(*own, Const(d))], x.shape[batch + d]) for d in range(depth)]
        return x[(*axes[:batch], *at, *axes[lead:])]

    return te.compute((*indices.shape[:-1], *rest), lambda *axes: body(*axes), name=call.name)


def _plain(call: Call) -> None:
    if call.attribute("reduction", "none") != "none":
        raise GraphError(f"{call.node.op} {call.node.name}: reduction is not implemented")


def _scatter_elements(call: Call) -> Compute:
    """For every element the last update that names it: the work grows with updates along the axis."""
    _plain(call)
    x, indices, updates = (call.tensor(n) for n in range(3))
    axis = int(call.attribute("axis", 0)) % len(x.shape)
    k = te.reduce_axis(indices.shape[axis], "k")
    inside_axes = [d for d, (n, m) in enumerate(zip(x.shape, indices.shape)) if d != axis and m < n]

    def clipped(axes: tuple[Expr, ...]) -> list[Expr]:
        return [
            te.minimum(v, m - 1) if d in inside_axes else v
            for d, (v, m) in enumerate(zip(axes, indices.shape))
        ]

    def which(*axes: Expr) -> Expr:
        at = clipped(axes)
        at[axis] = k.var
        hit = te.equal(_wrapped(indices[tuple(at)], x.shape[axis]), te.cast(axes[axis], "int64"))
        hit = te.logical_and(hit, *(axes[d] < indices.shape[d] for d in inside_axes))
        return te.max(te.select(hit, te.cast(k.var, "int64"), te.cast(-1, "int64")), k)

    last = te.compute(x.shape, lambda *axes: which(*axes), f"{call.name}.last")

    def body(*axes: Expr) -> Expr:
        at = clipped(axes)
        at[axis] = te.maximum(last[axes], te.cast(0, "int64"))
        return te.select(last[axes] >= 0, updates[tuple(at)], x[axes])

    return te.compute(x.shape, lambda *axes: body(*axes), name=call.name)


def _scatter_nd(call: Call) -> Compute:
    """For every element the last update that names it: the work grows with the number of updates."""
    _plain(call)
    x, indices, updates = (call.tensor(n) for n in range(3))
    depth, lead = indices.shape[-1], indices.shape[:-1]
    count = math.prod(lead)
    if count == 0:
        return te.compute(x.shape, lambda *axes: x[axes], name=call.name)
    k = te.reduce_axis(count, "k")

    def places(flat: Expr) -> list[Expr]:
        out: list[Expr] = []
        for n in reversed(lead):
            out.insert(0, flat % n if n > 1 else Const(0))
            flat = flat // n
        return out

    def which(*axes: Expr) -> Expr:
        at = places(k.var)
        tests = [
            te.equal(_wrapped(indices[(*at, Const(d))], x.shape[d]), te.cast(axes[d], "int64"))
            for d in range(depth)
        ]
        hit = te.logical_and(*tests)
        return te.max(te.select(hit, te.cast(k.var, "int64"), te.cast(-1, "int64")), k)

    last = te.compute(x.shape[:depth], lambda *axes: which(*axes), f"{call.name}.last")

    def body(*axes: Expr) -> Expr:
        found = last[axes[:depth]]
        at = places(te.maximum(found, te.cast(0, "int64")))
        return te.select(found >= 0, updates[(*at, *axes[depth:])], x[axes])

    return te.compute(x.shape, lambda *axes: body(*axes), name=call.name)


def _one_hot(call: Call) -> Compute:
    indices, values = call.tensor(0), call.tensor(2)
    depth = (call.numbers(1) or [0])[0]
    rank = len(indices.shape)
    axis = int(call.attribute("axis", -1)) % (rank + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])

    def body(*axes: Expr) -> Expr:
        index = _wrapped(indices[(*axes[:axis], *axes[axis + 1 :])], depth)
        hot = te.equal(index, te.cast(axes[axis], "int64"))
        return te.select(hot, values[Const(1)], values[Const(0)])

    return te.compute(shape, lambda *axes: body(*axes), name=call.name)


OPERATORS: Table = {
    "GatherElements": ("move", _gather_elements),
    "GatherND": ("move", _gather_nd),
    "OneHot": ("move", _one_hot),
    "ScatterElements": ("rows", _scatter_elements),
    "ScatterND": ("rows", _scatter_nd),
}

"""Operators whose places come from tensors: gather, scatter, one-hot.

ONNX calls an index outside of its dimension an error. Constant ones are refused when the model is
read. Of those that come as data nothing is known before the kernel runs, and a kernel cannot fail:
a gather then takes the nearest element and a scatter leaves the update out, so that no memory
outside of the tensors is touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.layout import wrapped
from tilewright.tensor.te import Compute, ReduceAxis

__all__ = ["OPERATORS"]


def _wrapped(index: Expr, size: int) -> Expr:
    """A place counted from the end where it is negative; one outside equals no place."""
    index = te.cast(index, "int64")
    return te.select(index < 0, index + size, index)


def _check_known(call: Call, n: int, sizes: Sequence[int]) -> None:
    """Refuse constant indices outside of their dimensions; `sizes` belong to the last axis, or one to all."""
    known = call.constants[n]
    if known is None or known.size == 0:
        return
    limits = np.asarray(sizes, np.int64)
    outside = (known < -limits) | (known >= limits)
    if outside.any():
        place = tuple(int(v[0]) for v in np.nonzero(outside))
        limit = int(np.broadcast_to(limits, known.shape)[place])
        raise GraphError(
            f"{call.node.op} {call.node.name}: index {int(known[place])} at {list(place)} lies outside of a "
            f"dimension of {limit} elements"
        )


def _gather(call: Call) -> Compute:
    axis = int(call.attribute("axis", 0))
    out = ops.gather(call.tensor(0), call.tensor(1), axis=axis, name=call.name)
    _check_known(call, 1, [call.tensor(0).shape[axis]])
    return out


def _gather_elements(call: Call) -> Compute:
    x, indices = call.tensor(0), call.tensor(1)
    axis = int(call.attribute("axis", 0)) % len(x.shape)
    _check_known(call, 1, [x.shape[axis]])

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
    _check_known(call, 1, x.shape[batch : batch + depth])

    def body(*axes: Expr) -> Expr:
        own = axes[:lead]
        at = [wrapped(indices[(*own, Const(d))], x.shape[batch + d]) for d in range(depth)]
        return x[(*axes[:batch], *at, *axes[lead:])]

    return te.compute((*indices.shape[:-1], *rest), lambda *axes: body(*axes), name=call.name)


_JOIN: dict[str, tuple[str, Callable[[Any, Any], Expr]]] = {
    "add": ("sum", lambda a, b: a + b),
    "mul": ("prod", lambda a, b: a * b),
    "max": ("max", te.maximum),
    "min": ("min", te.minimum),
}
_REDUCE = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def _scattered(
    call: Call,
    k: ReduceAxis,
    hit: Callable[[tuple[Expr, ...]], Expr],
    update: Callable[[tuple[Expr, ...], Expr], Expr],
) -> Compute:
    """What the updates leave of a tensor.

    `hit` tells whether update k of a reduction over updates names the element at `axes`;
    `update` reads update k for it.
    """
    x, kind = call.tensor(0), call.attribute("reduction", "none")
    if kind == "none":  # the last one that names it
        none = te.cast(-1, "int64")
        last = te.compute(
            x.shape,
            lambda *axes: te.max(te.select(hit(axes), te.cast(k.var, "int64"), none), k),
            f"{call.name}.last",
        )

        def take(*axes: Expr) -> Expr:
            found = last[axes]
            at = te.maximum(found, te.cast(0, "int64"))
            return te.select(found >= 0, update(axes, at), x[axes])

        return te.compute(x.shape, take, name=call.name)
    if kind not in _JOIN:
        raise GraphError(f"{call.node.op} {call.node.name}: no such reduction: {kind!r}")
    op, join = _JOIN[kind]
    nothing = te.identity(op, x.dtype)
    found = te.compute(
        x.shape,
        lambda *axes: _REDUCE[op](te.select(hit(axes), update(axes, k.var), nothing), k),
        f"{call.name}.{op}",
    )
    return te.compute(x.shape, lambda *axes: join(x[axes], found[axes]), name=call.name)


def _scatter_elements(call: Call) -> Compute:
    """For every element the updates that name it: the work grows with updates along the axis."""
    x, indices, updates = (call.tensor(n) for n in range(3))
    axis = int(call.attribute("axis", 0)) % len(x.shape)
    _check_known(call, 1, [x.shape[axis]])
    k = te.reduce_axis(indices.shape[axis], "k")
    short = [d for d, (n, m) in enumerate(zip(x.shape, indices.shape)) if d != axis and m < n]

    def clipped(axes: tuple[Expr, ...], place: Expr) -> tuple[Expr, ...]:
        at = [
            te.minimum(v, m - 1) if d in short else v
            for d, (v, m) in enumerate(zip(axes, indices.shape))
        ]
        at[axis] = place
        return tuple(at)

    def hit(axes: tuple[Expr, ...]) -> Expr:
        index = _wrapped(indices[clipped(axes, k.var)], x.shape[axis])
        same = te.equal(index, te.cast(axes[axis], "int64"))
        return te.logical_and(same, *(axes[d] < indices.shape[d] for d in short))

    return _scattered(call, k, hit, lambda axes, n: updates[clipped(axes, n)])


def _scatter_nd(call: Call) -> Compute:
    """For every element the updates that name it: the work grows with the number of updates."""
    x, indices, updates = (call.tensor(n) for n in range(3))
    depth, lead = indices.shape[-1], indices.shape[:-1]
    count = math.prod(lead)
    if count == 0:
        return te.compute(x.shape, lambda *axes: x[axes], name=call.name)
    _check_known(call, 1, x.shape[:depth])
    k = te.reduce_axis(count, "k")

    def places(flat: Expr) -> list[Expr]:
        out: list[Expr] = []
        for n in reversed(lead):
            out.insert(0, flat % n if n > 1 else Const(0))
            flat = flat // n
        return out

    def hit(axes: tuple[Expr, ...]) -> Expr:
        at = places(k.var)
        tests = [
            te.equal(_wrapped(indices[(*at, Const(d))], x.shape[d]), te.cast(axes[d], "int64"))
            for d in range(depth)
        ]
        return te.logical_and(*tests)

    return _scattered(call, k, hit, lambda axes, n: updates[(*places(n), *axes[depth:])])


def _top_k_places(call: Call) -> Compute:
    """Where the k greatest (or least) elements are, in order; of equal ones the first comes first.

    Each element's rank is the number of those that go before it: n * n comparisons a row, all
    independent. It is meant for rows up to a few thousand. A NaN counts as the greatest.
    """
    x = call.tensor(0)
    axis = int(call.attribute("axis", -1)) % len(x.shape)
    largest, n = bool(call.attribute("largest", 1)), x.shape[axis]
    size = (call.numbers(1, "k") or [1])[0]
    if not 1 <= size <= n:
        raise GraphError(f"TopK {call.node.name}: k = {size} of {n} elements")
    j, i = te.reduce_axis(n, "j"), te.reduce_axis(n, "i")

    def rank(*axes: Expr) -> Expr:
        other = x[tuple(j.var if d == axis else v for d, v in enumerate(axes))]
        own = x[axes]
        first, same = (other > own) if largest else (other < own), te.equal(other, own)
        if x.dtype.is_float:
            nans = te.isnan(other), te.isnan(own)
            lone = te.logical_and(
                nans[0 if largest else 1], te.logical_not(nans[1 if largest else 0])
            )
            first = te.logical_or(first, lone)
            same = te.logical_or(same, te.logical_and(*nans))
        before = te.logical_or(first, te.logical_and(same, j.var < axes[axis]))
        return te.sum(te.select(before, te.cast(1, "int64"), te.cast(0, "int64")), j)

    ranks = te.compute(x.shape, lambda *axes: rank(*axes), f"{call.name}.rank")

    def place(*axes: Expr) -> Expr:
        at = ranks[tuple(i.var if d == axis else v for d, v in enumerate(axes))]
        hit = te.equal(at, te.cast(axes[axis], "int64"))
        return te.max(te.select(hit, te.cast(i.var, "int64"), te.cast(0, "int64")), i)

    shape = [size if d == axis else m for d, m in enumerate(x.shape)]
    return te.compute(shape, lambda *axes: place(*axes), name=call.name)


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
    "Gather": ("move", _gather),
    "GatherElements": ("move", _gather_elements),
    "GatherND": ("move", _gather_nd),
    "OneHot": ("move", _one_hot),
    "ScatterElements": ("rows", _scatter_elements),
    "ScatterND": ("rows", _scatter_nd),
    "TopKPlaces": ("rows", _top_k_places),
}

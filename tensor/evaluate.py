"""The reference evaluator: what every kernel is compared with.

Whole tensors at a time in NumPy. Sums of products run through `numpy.einsum` on strided views
where that has the same meaning; everything else is evaluated on index grids in bounded slabs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import TensorError
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Min,
    Poly,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
)
from tilewright.tensor.te import Compute, Tensor
from tilewright.tensor.workload import Workload

__all__ = ["evaluate"]

Array = NDArray[Any]
SLAB = 1_000_000  # elements of a temporary
Env = dict[Var, Array]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "min": np.minimum,
    "max": np.maximum, "floordiv": np.floor_divide, "mod": np.mod, "ceildiv": lambda a, b: -(-a // b), "lt": np.less,
    "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
}
_ACCUMULATE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum
}  # fmt: skip


_python_erf = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    return np.asarray(_python_erf(x)).astype(np.float64)


_UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": _erf, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "neg": np.negative, "abs": np.abs, "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "ceil": np.ceil, "round": np.round, "not": np.logical_not, "isnan": np.isnan,
}  # fmt: skip


def evaluate(
    workload: Workload,
    arrays: Sequence[Array],
    *,
    precision: Literal["native", "double"] = "native",
) -> list[Array]:
    """Compute a workload's outputs.

    Parameters
    ----------
    workload : Workload
    arrays : sequence of arrays
        One for each input, of its shape and type.
    precision : {"native", "double"}
        "double" keeps every floating-point stage and the result in float64: the oracle that
        tolerances are measured from. "native" rounds each stage to its own type.

    Returns
    -------
    list of arrays
        One for each output.

    Raises
    ------
    TensorError
        If an array has the wrong shape or type.
    """
    if len(arrays) != len(workload.inputs):
        raise TensorError(f"evaluate: {len(arrays)} arrays for {len(workload.inputs)} inputs")
    known: dict[Tensor, Array] = {}
    for p, a in zip(workload.inputs, arrays):
        a = np.asarray(a)
        if a.shape != p.shape or a.dtype != p.dtype.numpy:
            raise TensorError(
                f"evaluate: input {p.name} is {p.dtype}{list(p.shape)}, got {a.dtype}{list(a.shape)}"
            )
        known[p] = a.astype(np.float64, order="C") if p.dtype.is_float else a
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for stage in workload.stages:
            result = _stage(stage, known)
            if stage.dtype.is_float:
                if precision == "native":
                    result = result.astype(stage.dtype.numpy)
                result = result.astype(np.float64)
            known[stage] = result
    if precision == "double":
        return [known[o] for o in workload.outputs]
    return [known[o].astype(o.dtype.numpy) for o in workload.outputs]


def _stage(stage: Compute, known: dict[Tensor, Array]) -> Array:
    dtype = np.float64 if stage.dtype.is_float else stage.dtype.numpy
    body = stage.body
    if isinstance(body, Reduce):
        product = _einsum(stage, body, known)
        return _reduce(stage, body, known).astype(dtype) if product is None else product
    out = np.empty(stage.shape, dtype)
    for block, env in _blocks(tuple(zip(stage.axes, stage.shape))):
        out[block] = _Evaluator(env, known).run(body)
    return out


def _reduce(stage: Compute, body: Reduce, known: dict[Tensor, Array]) -> Array:
    """Accumulate over blocks of the grid of spatial and reduced axes, in that order."""
    rank = len(stage.axes)
    reduced = tuple(range(rank, rank + len(body.axes)))
    dtype = np.float64 if stage.dtype.is_float else stage.dtype.numpy
    out = np.empty(stage.shape, dtype)
    for block, env in _blocks((*zip(stage.axes, stage.shape), *body.axes)):
        value = np.asarray(_Evaluator(env, known).run(body.value))
        value = np.broadcast_to(value, tuple(s.stop - s.start for s in block))
        piece = _REDUCE[body.op](value, axis=reduced)
        here = block[:rank]
        first = all(s.start == 0 for s in block[rank:])
        out[here] = piece if first else _ACCUMULATE[body.op](out[here], piece)
    return out


def _blocks(axes: Sequence[tuple[Var, int]]) -> Iterator[tuple[tuple[slice, ...], Env]]:
    """Blocks of at most `SLAB` elements that tile the axes in row-major order, as open grids."""
    shape = [n for _, n in axes]
    cut, inside = len(shape), 1
    while cut > 0 and inside * shape[cut - 1] <= SLAB:
        cut -= 1
        inside *= shape[cut]
    steps = [1] * len(shape)
    steps[cut:] = shape[cut:]
    if cut > 0:
        steps[cut - 1] = max(1, SLAB // inside)
    for corner in np.ndindex(*(-(-n // s) for n, s in zip(shape, steps))):
        block = tuple(slice(c * s, min(n, (c + 1) * s)) for c, n, s in zip(corner, shape, steps))
        env = {
            v: np.arange(s.start, s.stop).reshape((-1,) + (1,) * (len(shape) - 1 - d))
            for d, ((v, _), s) in enumerate(zip(axes, block))
        }
        yield block, env


class _Evaluator:
    """Values of expressions on one grid; `live` marks where a guarded operand is used."""

    def __init__(self, env: Env, known: dict[Tensor, Array], live: Array | None = None) -> None:
        self.env, self.known, self.live = env, known, live

    def run(self, e: Expr) -> Any:
        match e:
            case Const(value):
                # rounded as a kernel holds it; integers wrap
                literal = np.asarray(value).astype(e.dtype.numpy)
                return literal.astype(np.float64) if e.dtype.is_float else literal
            case Var():
                return self.env[e]
            case Poly(terms, const, dtype):
                total: Any = np.asarray(const).astype(dtype.numpy)
                for atoms, c in terms:
                    term: Any = np.asarray(c).astype(dtype.numpy)
                    for a in atoms:
                        term = term * self.run(a)
                    total = total + term
                return total
            case Min(args):
                out = self.run(args[0])
                for a in args[1:]:
                    out = np.minimum(out, self.run(a))
                return out
            case Binary(op, a, b):
                return _BINARY[op](self.run(a), self.run(b))
            case Unary("floor" | "ceil" | "round" as op, a):
                return _UNARY[op](_held(np.asarray(self.run(a)), a.dtype))
            case Unary(op, a):
                return _UNARY[op](self.run(a))
            case Select(c, a, b):
                test = np.asarray(self.run(c))
                return np.where(test, self._where(test).run(a), self._where(~test).run(b))
            case Cast(a, dtype):
                return _cast(np.asarray(self.run(a)), a.dtype, dtype)
            case Read(tensor, indices):
                return self._read(tensor, [self.run(i) for i in indices])
        raise AssertionError(type(e))

    def _where(self, test: Array) -> _Evaluator:
        return _Evaluator(self.env, self.known, test if self.live is None else self.live & test)

    def _read(self, tensor: Tensor, indices: list[Any]) -> Any:
        inside = []
        for d, (i, n) in enumerate(zip(indices, tensor.shape)):
            if np.min(i) < 0 or np.max(i) >= n:
                outside = (i < 0) | (i >= n)
                if np.any(outside if self.live is None else outside & self.live):
                    raise TensorError(
                        f"evaluate: {tensor.name} is read outside of its {n} elements in dimension "
                        f"{d}; guard the read with select"
                    )
                i = np.clip(i, 0, n - 1)
            inside.append(i)
        return self.known[tensor][tuple(inside)]


def _cast(value: Array, old: DType, new: DType) -> Array:
    if new.is_float:
        return value.astype(new.numpy).astype(np.float64)
    if new is DType.BOOL:
        return np.asarray(value != 0)
    if old.is_float:
        return np.trunc(_held(value, old)).astype(new.numpy)
    return value.astype(new.numpy)


def _held(value: Array, dtype: DType) -> Array:
    """As a kernel holds it: what jumps at integers must jump at the same numbers.

    One product, quotient or sum of float32 in float64, rounded once more, is what float32 arithmetic
    gives, so integers that are made from such are exact.
    """
    held = DType.FLOAT32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype
    return value.astype(held.numpy).astype(np.float64)


# ------------------------------------------------------------- sums of products


def _einsum(stage: Compute, body: Reduce, known: dict[Tensor, Array]) -> Array | None:
    """A sum of a product of two affine reads as einsum on strided views, or None."""
    value = body.value
    if (
        body.op != "sum"
        or not stage.dtype.is_float
        or not isinstance(value, Binary)
        or value.op != "mul"
    ):
        return None
    extents = {**dict(zip(stage.axes, stage.shape)), **dict(body.axes)}
    letters = {v: chr(ord("a") + n) for n, v in enumerate(extents)}
    if len(letters) > 20:
        return None
    views = [_view(r, extents, known) for r in (value.a, value.b)]
    if views[0] is None or views[1] is None:
        return None
    (a, va), (b, vb) = views[0], views[1]
    text = f"{''.join(letters[v] for v in va)},{''.join(letters[v] for v in vb)}"
    used = set(va) | set(vb)
    spatial = [v for v in stage.axes if v in used]
    if any(v not in used for v, _ in body.axes):
        return None
    out = np.empty(tuple(extents[v] for v in spatial))
    for share in _shares(spatial, extents, max((a, va), (b, vb), key=lambda view: view[0].size)):
        parts = [x[tuple(share.get(v, slice(None)) for v in vs)] for x, vs in ((a, va), (b, vb))]
        here = tuple(share.get(v, slice(None)) for v in spatial)
        out[here] = np.einsum(
            f"{text}->{''.join(letters[v] for v in spatial)}", *parts, optimize=True
        )
    shape = tuple(extents[v] if v in used else 1 for v in stage.axes)
    return np.broadcast_to(out.reshape(shape), stage.shape).copy()


def _shares(
    spatial: list[Var], extents: dict[Var, int], large: tuple[Array, list[Var]]
) -> Iterator[dict[Var, slice]]:
    """Parts of the longest axis of the result in the larger view, which einsum may copy."""
    view, variables = large
    choices = [v for v in spatial if v in variables]
    if not choices:
        yield {}
        return
    longest = max(choices, key=lambda v: extents[v])
    n = extents[longest]
    step = max(1, n * 4 * SLAB // max(view.size, n))
    for start in range(0, n, step):
        yield {longest: slice(start, min(n, start + step))}


def _view(
    e: Expr, extents: dict[Var, int], known: dict[Tensor, Array]
) -> tuple[Array, list[Var]] | None:
    """A read as a strided view with one axis for each variable in its indices."""
    if not isinstance(e, Read):
        return None
    data = known[e.tensor]
    strides: dict[Var, int] = {}
    offset = 0
    terms: list[tuple[tuple[Expr, ...], int]]
    for index, stride, size in zip(e.indices, data.strides, data.shape):
        if isinstance(index, Const):
            terms, const = [], int(index.value)
        elif isinstance(index, Var):
            terms, const = [((index,), 1)], 0
        elif isinstance(index, Poly):
            terms, const = list(index.terms), index.const
        else:
            return None
        top = const
        for atoms, c in terms:
            atom = atoms[0]
            if len(atoms) != 1 or not isinstance(atom, Var) or c < 0:
                return None
            strides[atom] = strides.get(atom, 0) + c * stride
            top += c * (extents[atom] - 1)
        if const < 0 or top >= size:
            return None
        offset += const * stride
    variables = list(strides)
    base = np.ndarray(
        tuple(extents[v] for v in variables), data.dtype, buffer=data.data if data.flags.c_contiguous else None,
        offset=offset, strides=tuple(strides[v] for v in variables),
    ) if data.flags.c_contiguous else None  # fmt: skip
    return None if base is None else (base, variables)

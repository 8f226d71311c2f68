"""The reference evaluator: what every kernel is compared with.

Whole tensors at a time in NumPy. Sums of products run through `numpy.einsum` on strided views
where that has the same meaning; everything else is evaluated on index grids in bounded slabs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
SLAB = 4_000_000  # elements of a temporary

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


def _erf(x: Array) -> Array:
    """Error function by its Taylor series (small) and continued fraction (large), about 1e-15."""
    a = np.abs(x).astype(np.float64)
    small = np.minimum(a, 3.0)
    term = small.copy()
    total = small.copy()
    for n in range(1, 70):
        term = term * (2 * small * small) / (2 * n + 1)
        total = total + term
    near = 2 / np.sqrt(np.pi) * np.exp(-small * small) * total
    large = np.maximum(a, 3.0)
    fraction = np.zeros_like(large)
    for n in range(60, 0, -1):
        fraction = (n / 2) / (large + fraction)
    with np.errstate(under="ignore", invalid="ignore"):
        far = 1 - np.exp(-large * large) / (np.sqrt(np.pi) * (large + fraction))
    return np.where(np.isnan(x), np.nan, np.sign(x) * np.where(a < 3, near, far))


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": _erf, "sigmoid": _sigmoid, "sqrt": np.sqrt,
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
        known[p] = a.astype(np.float64) if p.dtype.is_float else a
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
        if product is not None:
            return product
        return _reduce(stage, body, known).astype(dtype)
    out = np.empty(stage.shape, dtype)
    for slab, env in _slabs(stage, 1):
        out[slab] = _eval(body, env, known)
    return out


def _slabs(stage: Compute, inner: int) -> Any:
    """Blocks of the first axis with open index grids, so that temporaries stay small."""
    shape = stage.shape
    if not shape:
        yield (), {}
        return
    row = inner
    for n in shape[1:]:
        row *= n
    step = max(1, SLAB // max(1, row))
    for start in range(0, shape[0], step):
        stop = min(shape[0], start + step)
        env: dict[Var, Array] = {}
        for d, v in enumerate(stage.axes):
            span = np.arange(start, stop) if d == 0 else np.arange(shape[d])
            env[v] = span.reshape((-1,) + (1,) * (len(shape) - 1 - d))
        yield slice(start, stop), env


def _reduce(stage: Compute, body: Reduce, known: dict[Tensor, Array]) -> Array:
    """Grids over the result and the last reduced axis; the other reduced axes one by one."""
    *outer, (last, extent) = body.axes
    parts = []
    for _, env in _slabs(stage, extent):
        wide = {v: a[..., None] for v, a in env.items()}
        wide[last] = np.arange(extent)
        total: Any = None
        for position in np.ndindex(*(n for _, n in outer)):
            here = dict(wide)
            here.update({v: np.asarray(p) for (v, _), p in zip(outer, position)})
            value = np.asarray(_eval(body.value, here, known))
            shape = tuple(a.size for a in env.values())
            value = np.broadcast_to(value, (*shape, extent))
            piece = _REDUCE[body.op](value, axis=-1)
            total = piece if total is None else _ACCUMULATE[body.op](total, piece)
        parts.append(total)
    return np.concatenate(parts) if stage.shape else np.asarray(parts[0])


def _eval(e: Expr, env: dict[Var, Array], known: dict[Tensor, Array]) -> Any:
    match e:
        case Const(value):
            return np.float64(value) if e.dtype.is_float else e.dtype.numpy.type(value)
        case Var():
            return env[e]
        case Poly(terms, const, dtype):
            total: Any = dtype.numpy.type(const)
            for atoms, c in terms:
                term: Any = dtype.numpy.type(c)
                for a in atoms:
                    term = term * _eval(a, env, known)
                total = total + term
            return total
        case Min(args):
            out = _eval(args[0], env, known)
            for a in args[1:]:
                out = np.minimum(out, _eval(a, env, known))
            return out
        case Binary(op, a, b):
            return _BINARY[op](_eval(a, env, known), _eval(b, env, known))
        case Unary(op, a):
            return _UNARY[op](_eval(a, env, known))
        case Select(c, a, b):
            return np.where(_eval(c, env, known), _eval(a, env, known), _eval(b, env, known))
        case Cast(a, dtype):
            return _cast(np.asarray(_eval(a, env, known)), a.dtype, dtype)
        case Read(tensor, indices):
            data = known[tensor]
            # a select may guard an index that is out of bounds: such elements are never used
            return data[
                tuple(np.clip(_eval(i, env, known), 0, n - 1) for i, n in zip(indices, data.shape))
            ]
    raise AssertionError(type(e))


def _cast(value: Array, old: DType, new: DType) -> Array:
    if new.is_float:
        return value.astype(new.numpy).astype(np.float64)
    if new is DType.BOOL:
        return np.asarray(value != 0)
    if old.is_float:
        return np.trunc(value).astype(new.numpy)
    return value.astype(new.numpy)


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
    out = np.einsum(f"{text}->{''.join(letters[v] for v in spatial)}", a, b, optimize=True)
    shape = tuple(extents[v] if v in used else 1 for v in stage.axes)
    return np.broadcast_to(out.reshape(shape), stage.shape).copy()


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

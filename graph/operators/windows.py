"""Pooling, and the attributes of windows."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.operators.call import Call, Lower, Table
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.linear import padded
from tilewright.tensor.ops.precision import wide
from tilewright.tensor.te import Compute

__all__ = ["OPERATORS", "spatial"]


def spatial(
    call: Call, kernel: Sequence[int]
) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Strides, (before, after) paddings and dilations of a windowed operator."""
    dims = len(kernel)
    strides = list(call.attribute("strides", (1,) * dims))
    dilations = list(call.attribute("dilations", (1,) * dims))
    pads = list(call.attribute("pads", (0,) * (2 * dims)))
    mode = call.attribute("auto_pad", "NOTSET")
    pairs = list(zip(pads[:dims], pads[dims:]))
    if mode == "VALID":
        pairs = [(0, 0)] * dims
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for n, k, s, d in zip(call.tensor(0).shape[2:], kernel, strides, dilations):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            less, more = total // 2, total - total // 2
            pairs.append((less, more) if mode == "SAME_UPPER" else (more, less))
    return strides, pairs, dilations


def _pool(kind: str) -> Lower:
    def lower(call: Call) -> Compute:
        kernel = list(call.attribute("kernel_shape"))
        strides, pads, dilations = spatial(call, kernel)
        return ops.pool(
            call.tensor(0), kind, kernel=kernel, stride=strides, padding=pads, dilation=dilations,
            ceil_mode=bool(call.attribute("ceil_mode", 0)),
            count_include_pad=bool(call.attribute("count_include_pad", 0)), name=call.name,
        )  # fmt: skip

    return lower


def _lp_pool(call: Call) -> Compute:
    """The p-norm of each window."""
    p, kernel = int(call.attribute("p", 2)), list(call.attribute("kernel_shape"))
    strides, pads, dilations = spatial(call, kernel)
    each = ops.elementwise(f"{call.name}.each", lambda v: _power(te.abs(v), p), call.tensor(0))
    total = ops.pool(
        each, "sum", kernel=kernel, stride=strides, padding=pads, dilation=dilations,
        ceil_mode=bool(call.attribute("ceil_mode", 0)), name=f"{call.name}.sum",
    )  # fmt: skip
    return ops.elementwise(call.name, lambda v: _root(v, p), total)


def _power(v: Expr, p: int) -> Expr:
    return v if p == 1 else v * v if p == 2 else v ** te.cast(p, v.dtype)


def _root(v: Expr, p: int) -> Expr:
    return v if p == 1 else te.sqrt(v) if p == 2 else v ** te.cast(1 / p, v.dtype)


def _places(call: Call) -> Compute:
    """Where the maximum of each window is, counted through the whole input: the first such place."""
    x, kernel = call.tensor(0), list(call.attribute("kernel_shape"))
    strides, pads, dilations = spatial(call, kernel)
    best = ops.pool(
        x, "max", kernel=kernel, stride=strides, padding=pads, dilation=dilations,
        ceil_mode=bool(call.attribute("ceil_mode", 0)), name=f"{call.name}.max",
    )  # fmt: skip
    window = [te.reduce_axis(k, f"k{d}") for d, k in enumerate(kernel)]
    columns_first = bool(call.attribute("storage_order", 0))

    def place(n: Expr, c: Expr, *out: Expr) -> Expr:
        at = [
            v * s - b + r.var * d
            for v, s, (b, _), r, d in zip(out, strides, pads, window, dilations)
        ]
        inside = [t for v, size in zip(at, x.shape[2:]) for t in (v >= 0, v < size)]
        safe = [te.minimum(te.maximum(v, 0), size - 1) for v, size in zip(at, x.shape[2:])]
        value = x[(n, c, *safe)]
        hit = te.equal(value, best[(n, c, *out)])
        if x.dtype.is_float:  # the maximum of a window with a NaN is NaN
            hit = te.logical_or(hit, te.isnan(value))
        flat = n * x.shape[1] + c
        for v, size in zip(safe, x.shape[2:]):
            flat = flat * size + v
        found = te.cast(flat, "int64")
        return te.min(
            te.select(te.logical_and(hit, *inside), found, te.cast(x.size, "int64")), window
        )

    first = f"{call.name}.rows" if columns_first else call.name
    found = te.compute(best.shape, lambda *axes: place(*axes), name=first)
    if not columns_first:
        return found

    def turned(*axes: Expr) -> Expr:
        rest, places = found[axes], []
        for size in reversed(x.shape[2:]):
            places.append(rest % size)
            rest = rest // size
        for v, size in zip(places, reversed(x.shape[2:])):
            rest = rest * size + v
        return rest

    return te.compute(best.shape, lambda *axes: turned(*axes), name=call.name)


def _global_pool(kind: str) -> Lower:
    return lambda call: ops.global_pool(call.tensor(0), kind, name=call.name)


def _global_lp_pool(call: Call) -> Compute:
    x, p = call.tensor(0), int(call.attribute("p", 2))
    each = ops.elementwise(f"{call.name}.each", lambda v: _power(te.abs(v), p), x)
    total = ops.reduce(each, "sum", range(2, len(x.shape)), name=f"{call.name}.sum")
    return ops.elementwise(call.name, lambda v: _root(v, p), total)


def _lrn(call: Call) -> Compute:
    """Local response normalisation: each element over a power of the squares of neighbouring channels."""
    x, size = call.tensor(0), int(call.attribute("size"))
    alpha, beta = float(call.attribute("alpha", 1e-4)), float(call.attribute("beta", 0.75))
    bias = float(call.attribute("bias", 1.0))
    square = ops.elementwise(f"{call.name}.sq", lambda v: wide(v) * wide(v), x)
    before = (size - 1) // 2
    around = padded(square, [before, *(0 for _ in x.shape[2:])], [size - 1 - before, *(0 for _ in x.shape[2:])], 0.0, f"{call.name}.pad")  # fmt: skip
    k = te.reduce_axis(size, "k")
    total = te.compute(
        x.shape,
        lambda n, c, *rest: te.sum(around[(n, c + k.var, *rest)], k),
        f"{call.name}.sum",
    )
    return ops.elementwise(
        call.name,
        lambda v, s: te.cast(
            wide(v) / (s * (alpha / size) + bias) ** te.cast(beta, s.dtype), x.dtype
        ),
        x,
        total,
    )


OPERATORS: Table = {
    "MaxPool": ("anchor", _pool("max")),
    "AveragePool": ("anchor", _pool("average")),
    "GlobalAveragePool": ("rows", _global_pool("average")),
    "GlobalMaxPool": ("rows", _global_pool("max")),
    "GlobalLpPool": ("rows", _global_lp_pool),
    "LpPool": ("anchor", _lp_pool),
    "LRN": ("rows", _lrn),
    "MaxPoolPlaces": ("rows", _places),
}

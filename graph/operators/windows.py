"""Pooling, and the attributes of windows."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Lower, Table
from tilewright.tensor import ops, te
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
        if any(d != 1 for d in dilations):
            raise GraphError(f"{call.node.op} {call.node.name}: dilated pooling is not implemented")
        return ops.pool(
            call.tensor(0), kind, kernel=kernel, stride=strides, padding=pads,
            ceil_mode=bool(call.attribute("ceil_mode", 0)),
            count_include_pad=bool(call.attribute("count_include_pad", 0)), name=call.name,
        )  # fmt: skip

    return lower


def _global_pool(kind: str) -> Lower:
    return lambda call: ops.global_pool(call.tensor(0), kind, name=call.name)


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
    "LRN": ("rows", _lrn),
}

"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.graph.operators.einsum import einsum
from tilewright.graph.operators.windows import spatial
from tilewright.tensor import ops, te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.precision import wide, wider
from tilewright.tensor.ops.winograd import winograd_conv
from tilewright.tensor.te import Compute

__all__ = ["OPERATORS"]


def _biased(call: Call, convolution: Callable[[str, DType | None], Compute]) -> Compute:
    """A convolution of that name and that type of sums; with a bias for each channel if the node has one."""
    if not call.has(2):
        return convolution(call.name, None)
    dtype, bias = call.tensor(0).dtype, call.tensor(2)
    y = convolution(f"{call.name}.acc", wider(dtype))

    def body(*axes: Expr) -> Expr:
        return te.cast(wide(y[axes]) + wide(bias[axes[1]]), dtype)

    return te.compute(y.shape, lambda *axes: body(*axes), name=call.name)


def _conv(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    strides, pads, dilations = spatial(call, w.shape[2:])
    groups = int(call.attribute("group", 1))
    return _biased(
        call,
        lambda name, accumulate: ops.conv(
            x, w, stride=strides, padding=pads, dilation=dilations, groups=groups, name=name, accumulate=accumulate
        ),
    )  # fmt: skip


def _winograd(call: Call) -> Compute:
    """A convolution whose weights have been transformed; made by the graph, not known to ONNX."""
    x, u, m = call.tensor(0), call.tensor(1), int(call.attribute("tile"))
    _, pads, _ = spatial(call, (*u.shape[2:-2], 3, 3))
    return _biased(call, lambda name, _: winograd_conv(x, u, m, padding=pads, name=name))


def _conv_transpose(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    dims = len(w.shape) - 2
    strides, pads, dilations = spatial(call, w.shape[2:])
    more = [int(v) for v in call.attribute("output_padding", (0,) * dims)]
    wanted, mode = call.attribute("output_shape"), call.attribute("auto_pad", "NOTSET")
    if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        # the padding follows from the size; an odd rest goes to the end, with SAME_LOWER to the start
        sizes = [int(v) for v in wanted or (n * s for n, s in zip(x.shape[2:], strides))]
        pads, grown = [], []
        for n, k, s, d, p, size in zip(
            x.shape[2:], w.shape[2:], strides, dilations, more, sizes[-dims:]
        ):
            total = (n - 1) * s + p + (k - 1) * d + 1 - size
            grown.append(p - min(0, total))
            total = max(0, total)
            half = total // 2
            pads.append((half, total - half) if mode != "SAME_LOWER" else (total - half, half))
        more = grown
    groups = int(call.attribute("group", 1))
    return _biased(
        call,
        lambda name, _: ops.conv_transpose(
            x, w, stride=strides, padding=pads, output_padding=more, dilation=dilations, groups=groups, name=name
        ),
    )  # fmt: skip


def _matmul(call: Call) -> Compute:
    a, b = call.tensor(0), call.tensor(1)
    if len(a.shape) > 1 and len(b.shape) > 1:
        return ops.matmul(a, b, name=call.name)
    size = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    if a.shape[-1] != size:
        raise GraphError(
            f"MatMul {call.node.name}: the inner sizes {a.shape[-1]} and {size} differ"
        )
    k = te.reduce_axis(size, "k")

    def body(*axes: Expr) -> Expr:  # a vector's dimension is not in the result
        if len(b.shape) == 1:
            return te.sum(a[(*axes, k.var)] * b[k.var], k)
        return te.sum(a[k.var] * b[(*axes[:-1], k.var, axes[-1])], k)

    shape = a.shape[:-1] if len(b.shape) == 1 else (*b.shape[:-2], b.shape[-1])
    return te.compute(shape, lambda *axes: body(*axes), name=call.name)


def _gemm(call: Call) -> Compute:
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    biased = call.has(2) and beta != 0.0
    dtype, plain = call.tensor(0).dtype, not biased and alpha == 1.0
    y = ops.matmul(
        call.tensor(0), call.tensor(1), accumulate=None if plain else wider(dtype), transpose_a=bool(call.attribute("transA", 0)),
        transpose_b=bool(call.attribute("transB", 0)), name=call.name if plain else f"{call.name}.acc",
    )  # fmt: skip
    if plain:
        return y
    operands = [y, *([call.operand(2)] if biased else [])]

    def f(a: Expr, *c: Expr) -> Expr:
        a = a * alpha if alpha != 1.0 else a
        if c:
            more = te.cast(c[0], a.dtype)
            a = a + (more * beta if beta != 1.0 else more)
        return te.cast(a, dtype)

    return ops.elementwise(call.name, f, *operands)


OPERATORS: Table = {
    "Conv": ("anchor", _conv),
    "WinogradConv": ("anchor", _winograd),
    "ConvTranspose": ("anchor", _conv_transpose),
    "MatMul": ("anchor", _matmul),
    "Gemm": ("anchor", _gemm),
    "Einsum": ("anchor", einsum),
}

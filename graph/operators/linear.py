"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.graph.operators.windows import spatial
from tilewright.tensor import ops, te
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.winograd import winograd_conv
from tilewright.tensor.te import Compute

__all__ = ["OPERATORS"]


def _biased(call: Call, convolution: Callable[[str], Compute]) -> Compute:
    """A convolution of that name; with a bias for each channel if the node has one."""
    if not call.has(2):
        return convolution(call.name)
    y, bias = convolution(f"{call.name}.acc"), call.tensor(2)
    return te.compute(y.shape, lambda *axes: y[axes] + bias[axes[1]], name=call.name)


def _conv(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    strides, pads, dilations = spatial(call, w.shape[2:])
    groups = int(call.attribute("group", 1))
    return _biased(
        call,
        lambda name: ops.conv(
            x, w, stride=strides, padding=pads, dilation=dilations, groups=groups, name=name
        ),
    )


def _winograd(call: Call) -> Compute:
    """A convolution whose weights have been transformed; made by the graph, not known to ONNX."""
    x, u, m = call.tensor(0), call.tensor(1), int(call.attribute("tile"))
    _, pads, _ = spatial(call, (*u.shape[2:-2], 3, 3))
    return _biased(call, lambda name: winograd_conv(x, u, m, padding=pads, name=name))


def _conv_transpose(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    dims = len(w.shape) - 2
    strides, pads, dilations = spatial(call, w.shape[2:])
    more = [int(v) for v in call.attribute("output_padding", (0,) * dims)]
    wanted, mode = call.attribute("output_shape"), call.attribute("auto_pad", "NOTSET")
    if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        # the padding follows from the size; an odd rest goes to the end, with SAME_LOWER to the start
        sizes = [int(v) for v in wanted or (n * s for n, s in zip(x.shape[2:], strides))]
        pads = []
        for n, k, s, d, p, size in zip(
            x.shape[2:], w.shape[2:], strides, dilations, more, sizes[-dims:]
        ):
            total = max(0, (n - 1) * s + p + (k - 1) * d + 1 - size)
            half = total // 2
            pads.append((half, total - half) if mode != "SAME_LOWER" else (total - half, half))
    groups = int(call.attribute("group", 1))
    return _biased(
        call,
        lambda name: ops.conv_transpose(
            x, w, stride=strides, padding=pads, output_padding=more, dilation=dilations, groups=groups, name=name
        ),
    )  # fmt: skip


def _matmul(call: Call) -> Compute:
    return ops.matmul(call.tensor(0), call.tensor(1), name=call.name)


def _gemm(call: Call) -> Compute:
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    biased = call.has(2) and beta != 0.0
    y = ops.matmul(
        call.tensor(0), call.tensor(1), transpose_a=bool(call.attribute("transA", 0)),
        transpose_b=bool(call.attribute("transB", 0)), name=f"{call.name}.acc" if biased or alpha != 1.0 else call.name,
    )  # fmt: skip
    if not biased and alpha == 1.0:
        return y
    operands = [y, *([call.operand(2)] if biased else [])]

    def f(a: Expr, *c: Expr) -> Expr:
        a = a * alpha if alpha != 1.0 else a
        return a + (c[0] * beta if beta != 1.0 else c[0]) if c else a

    return ops.elementwise(call.name, f, *operands)


def _einsum(call: Call) -> Compute:
    """Products summed over the letters that the result lacks; without ellipsis or diagonals."""
    equation = str(call.attribute("equation")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    letters = "".join(dict.fromkeys(c for t in terms for c in t))
    if not arrow:  # those that occur once, in alphabetical order
        right = "".join(sorted(c for c in letters if left.count(c) == 1))
    tensors = [call.tensor(n) for n in range(len(terms))]
    whole = f"Einsum {call.node.name}: {equation!r}"
    if "." in equation or any(len(set(t)) < len(t) for t in terms):
        raise GraphError(f"{whole}: ellipsis and diagonals are not implemented")
    sizes: dict[str, int] = {}
    for term, t in zip(terms, tensors):
        if len(term) != len(t.shape) or any(
            sizes.setdefault(c, n) != n for c, n in zip(term, t.shape)
        ):
            raise GraphError(f"{whole} does not fit the shapes {[list(x.shape) for x in tensors]}")
    reduced = {c: te.reduce_axis(sizes[c], c) for c in letters if c not in right}

    def body(*axes: Expr) -> Expr:
        at = {**dict(zip(right, axes)), **{c: r.var for c, r in reduced.items()}}
        out = tensors[0][tuple(at[c] for c in terms[0])]
        for t, term in zip(tensors[1:], terms[1:]):
            out = out * t[tuple(at[c] for c in term)]
        return te.sum(out, list(reduced.values())) if reduced else out

    return te.compute([sizes[c] for c in right], lambda *axes: body(*axes), name=call.name)


OPERATORS: Table = {
    "Conv": ("anchor", _conv),
    "WinogradConv": ("anchor", _winograd),
    "ConvTranspose": ("anchor", _conv_transpose),
    "MatMul": ("anchor", _matmul),
    "Gemm": ("anchor", _gemm),
    "Einsum": ("anchor", _einsum),
}

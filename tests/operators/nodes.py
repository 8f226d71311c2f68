"""Random configurations of ONNX operators that `tensor.ops` does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.operators.draws import REAL, Draw

from tilewright.graph.ir import Node
from tilewright.graph.operators import OPERATORS, Call
from tilewright.tensor.te import Compute, Placeholder

__all__ = ["NODES"]

Array = NDArray[Any]


def node(op: str, *operands: Placeholder | Array | None, **attributes: Any) -> Compute:
    """One node, some of whose operands may be known."""
    names = tuple("" if o is None else f"in{n}" for n, o in enumerate(operands))
    given = tuple(o if isinstance(o, Placeholder) else None for o in operands)
    known = tuple(o if isinstance(o, np.ndarray) else None for o in operands)
    tensors = tuple(
        Placeholder(f"in{n}", a.shape, _dtype(a)) if a is not None else t
        for n, (t, a) in enumerate(zip(given, known))
    )
    made = Node(op, names, ("out",), tuple(sorted(attributes.items())))
    return OPERATORS[op][1](Call(made, tensors, known, "out"))


def _dtype(a: Array) -> Any:
    from tilewright.tensor.dtype import as_dtype

    return as_dtype(a.dtype)


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def resize(d: Draw) -> Compute:
    kind = d.one(("nearest", "linear", "cubic"))
    x = d.tensor("x", d.one((1, 2)), d.size(7), d.size(19), d.size(23), dtype=d.one(REAL))
    sizes = integers(*x.shape[:2], *(d.size(31) for _ in range(2)))
    rounding = d.one(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    place = d.one(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    return node("Resize", x, None, None, sizes, mode=kind, nearest_mode=rounding, coordinate_transformation_mode=place)  # fmt: skip


def gather_elements(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 3), 2000)
    axis = d.integer(0, len(shape) - 1)
    places = [d.size(37) if n == axis else m for n, m in enumerate(shape)]
    x = d.tensor("x", *shape, dtype=d.one((*REAL, "int64")))
    return node("GatherElements", x, d.tensor("i", *places, dtype="int64"), axis=axis)


def gather_nd(d: Draw) -> Compute:
    shape, depth = d.shape(3, 2000), d.integer(1, 3)
    return node(
        "GatherND",
        d.tensor("x", *shape),
        d.tensor("i", d.size(13), d.size(5), depth, dtype="int64"),
    )


def scatter_elements(d: Draw) -> Compute:
    shape = d.shape(2, 500)
    axis = d.integer(0, 1)
    places = [d.size(n) for n in shape]
    i, u = d.tensor("i", *places, dtype="int64"), d.tensor("u", *places)
    return node("ScatterElements", d.tensor("x", *shape), i, u, axis=axis)


def scatter_nd(d: Draw) -> Compute:
    shape, depth, n = d.shape(2, 500), d.integer(1, 2), d.size(7)
    u = d.tensor("u", n, *shape[depth:])
    return node("ScatterND", d.tensor("x", *shape), d.tensor("i", n, depth, dtype="int64"), u)


def one_hot(d: Draw) -> Compute:
    i = d.tensor("i", *d.shape(d.integer(1, 2), 40), dtype="int64")
    return node(
        "OneHot", i, integers(d.size(17)), np.array([0.0, 1.0], np.float32), axis=d.one((-1, 0))
    )


def cum_sum(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 3), 800)
    x = d.tensor("x", *shape, dtype=d.one((*REAL, "int64")))
    axis = integers(d.integer(0, len(shape) - 1))
    return node("CumSum", x, axis, exclusive=d.integer(0, 1), reverse=d.integer(0, 1))


def trilu(d: Draw) -> Compute:
    x = d.tensor("x", d.size(5), d.size(29), d.size(31), dtype=d.one((*REAL, "int64")))
    return node("Trilu", x, integers(d.integer(-4, 4)), upper=d.integer(0, 1))


def tile(d: Draw) -> Compute:
    shape = d.shape(3, 300)
    return node("Tile", d.tensor("x", *shape), integers(*(d.integer(1, 3) for _ in shape)))


def space(d: Draw) -> Compute:
    b, op = d.integer(1, 3), d.one(("DepthToSpace", "SpaceToDepth"))
    n, c, h, w = d.one((1, 2)), d.size(7), d.size(11), d.size(13)
    if op == "DepthToSpace":
        x, more = d.tensor("x", n, c * b * b, h, w), {"mode": d.one(("DCR", "CRD"))}
    else:
        x, more = d.tensor("x", n, c, h * b, w * b), {}
    return node(op, x, blocksize=b, **more)


def extreme(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 3), 1500)
    x = d.tensor("x", *shape, dtype=d.one((*REAL, "int64")))
    more = {"keepdims": d.integer(0, 1), "select_last_index": d.integer(0, 1)}
    return node(d.one(("ArgMax", "ArgMin")), x, axis=d.integer(0, len(shape) - 1), **more)


def composed(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 3), 1500)
    op = d.one(("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"))
    return node(
        op,
        d.tensor("x", *shape, dtype=d.one(REAL)),
        axes=tuple(d.axes(len(shape))),
        keepdims=d.integer(0, 1),
    )


def channel_norm(d: Draw) -> Compute:
    groups, own = d.integer(1, 4), d.size(5)
    c = groups * own
    x = d.tensor("x", d.one((1, 2, 3)), c, *d.shape(d.integer(1, 2), 400))
    scale, bias = d.tensor("s", c), d.tensor("b", c)
    if d.flag():
        return node("InstanceNormalization", x, scale, bias, epsilon=1e-3)
    return node("GroupNormalization", x, scale, bias, num_groups=groups, epsilon=1e-3)


def lrn(d: Draw) -> Compute:
    x = d.tensor("x", d.one((1, 2)), d.size(19), d.size(11), d.size(13))
    return node("LRN", x, size=d.one((1, 3, 5)), alpha=0.1, beta=0.75, bias=1.0)


def einsum(d: Draw) -> Compute:
    size = {c: d.size(13) for c in "bijkl"}
    text = d.one(
        (
            "bij,bjk->bik",
            "bij,kj->bki",
            "ij,kl->ikjl",
            "bij,bij->b",
            "ijk->kji",
            "bi,bj->ij",
            "ijk->j",
            "bil,bjl->bijl",
        )
    )
    terms = text.split("->")[0].split(",")
    return node("Einsum", *(d.tensor(f"x{n}", *(size[c] for c in t)) for n, t in enumerate(terms)), equation=text)  # fmt: skip


def quantize(d: Draw) -> Compute:
    shape = d.shape(3, 1500)
    if d.flag():
        x, zero = d.tensor("x", *shape, dtype="int8"), d.tensor("z", shape[1], dtype="int8")
        return node("DequantizeLinear", x, d.tensor("s", shape[1]), zero, axis=1)
    scale = np.array(0.125, np.float32)
    return node(
        "QuantizeLinear", d.tensor("x", *shape), scale, np.array(3, d.one((np.int8, np.uint8)))
    )


def top_k(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 3), 200)
    axis = d.integer(0, len(shape) - 1)
    x = d.tensor("x", *shape, dtype=d.one((*REAL, "int64", "int8")))
    k = integers(d.integer(1, shape[axis]))
    return node("TopKPlaces", x, k, axis=axis, largest=d.integer(0, 1))


def bytes_matmul(d: Draw) -> Compute:
    m, n, k, batch = d.size(37), d.size(53), d.size(67), d.shape(d.integer(0, 2), 5)
    left, right = d.one(("uint8", "int8")), d.one(("uint8", "int8"))
    a = d.tensor("a", *batch, m, k, dtype=left)
    b = d.tensor("b", *(batch if d.flag(0.3) else ()), k, n, dtype=right, const=d.flag(0.7))
    zeros = [np.array(d.integer(0, 9), t) for t in (left, right)] if d.flag() else []
    return node("MatMulInteger", a, b, *zeros)


def bytes_conv(d: Draw) -> Compute:
    groups, kernel = d.one((1, 1, 2)), [d.one((1, 2, 3)) for _ in range(2)]
    c_in, c_out, stride = d.size(9) * groups, d.size(11) * groups, d.one((1, 1, 2))
    left, right = d.one(("uint8", "int8")), d.one(("uint8", "int8"))
    x = d.tensor("x", d.one((1, 2)), c_in, d.size(13) + 2, d.size(19) + 2, dtype=left)
    w = d.tensor("w", c_out, c_in // groups, *kernel, dtype=right, const=d.flag(0.8))
    zeros = [np.array(d.integer(0, 9), t) for t in (left, right)] if d.flag() else []
    pads = tuple(d.integer(0, k - 1) for k in (*kernel, *kernel))
    return node("ConvInteger", x, w, *zeros, group=groups, pads=pads, strides=(stride, stride))


NODES: Mapping[str, Callable[[Draw], Compute]] = {
    f.__name__: f
    for f in (
        resize, gather_elements, gather_nd, scatter_elements, scatter_nd, one_hot, cum_sum, trilu, tile, space, extreme,
        composed, channel_norm, lrn, einsum, quantize, top_k, bytes_matmul, bytes_conv,
    )
}  # fmt: skip

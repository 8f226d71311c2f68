"""Small workloads that schedule tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor import Workload, te


def matmul(
    m: int = 7, n: int = 11, k: int = 5, *, const: bool = False, epilogue: bool = True
) -> Workload:
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B", const=const)
    axis = te.reduce_axis(k, "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis), name="C")
    if not epilogue:
        return Workload.of(c)
    return Workload.of(te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D"))


def conv(
    channels: int = 3, out: int = 5, size: int = 7, kernel: int = 3, stride: int = 2
) -> Workload:
    x = te.placeholder((1, channels, size, size), name="X")
    w = te.placeholder((out, channels, kernel, kernel), name="W", const=True)
    pad = kernel // 2
    padded = te.compute(
        (1, channels, size + 2 * pad, size + 2 * pad),
        lambda n, c, h, v: te.select(
            te.logical_and(h >= pad, h < size + pad, v >= pad, v < size + pad),
            x[n, c, h - pad, v - pad],
            0.0,
        ),
        name="P",
    )
    rest = (size + 2 * pad - kernel) // stride + 1
    ic, kh, kw = (
        te.reduce_axis(channels, "ic"),
        te.reduce_axis(kernel, "kh"),
        te.reduce_axis(kernel, "kw"),
    )
    c = te.compute(
        (1, out, rest, rest),
        lambda n, oc, oh, ow: te.sum(
            padded[n, ic, oh * stride + kh, ow * stride + kw] * w[oc, ic, kh, kw], [ic, kh, kw]
        ),
        name="C",
    )
    return Workload.of(
        te.compute(c.shape, lambda n, oc, oh, ow: te.maximum(c[n, oc, oh, ow], 0.0), name="R")
    )


def bytes_matmul(
    m: int = 3, n: int = 5, k: int = 4, *, a: str = "uint8", b: str = "int8"
) -> Workload:
    """A product of bytes in int32."""
    x = te.placeholder((m, k), a, name="A")
    y = te.placeholder((n, k), b, name="B", const=True)
    axis = te.reduce_axis(k, "k")
    return Workload.of(
        te.compute(
            (m, n),
            lambda i, j: te.sum(te.cast(x[i, axis], "int32") * te.cast(y[j, axis], "int32"), axis),
            name="C",
        )
    )


def softmax(rows: int = 3, columns: int = 13) -> Workload:
    x = te.placeholder((rows, columns), name="X")
    k1, k2 = te.reduce_axis(columns, "k1"), te.reduce_axis(columns, "k2")
    top = te.compute((rows,), lambda i: te.max(x[i, k1], k1), name="M")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(e[i, k2], k2), name="S")
    return Workload.of(te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y"))


def transpose(m: int = 9, n: int = 14) -> Workload:
    x = te.placeholder((m, n), name="X")
    return Workload.of(te.compute((n, m), lambda i, j: x[j, i] * 2.0, name="Y"))


def arrays(workload: Workload, seed: int = 0) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 256, p.shape).astype(np.uint8).view(p.dtype.numpy)
        if p.dtype.n_bytes == 1
        else rng.standard_normal(p.shape).astype(p.dtype.numpy)
        for p in workload.inputs
    ]

"""Products of 8-bit integers: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.

A value of such a tensor stands for ``(q - zero) * scale``. The zero points are taken out of the sum of
products, ``sum (a - p)*(b - q) = sum a*b - p*sum b - q*sum a + n*p*q``, so that its factors stay bytes.
Sums of constant weights are computed once, at load time. Scales multiply in float32, in the order of
ONNX Runtime; what is rounded is the same everywhere, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.graph.operators.windows import spatial
from tilewright.tensor import ops, te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.axes import leading
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]

INT = DType.INT32


def _is_zero(call: Call, n: int) -> bool:
    """Whether operand n is absent, or a constant of zeros."""
    value = call.constants[n] if call.has(n) else None
    return not call.has(n) or (value is not None and not np.any(value))


def _number(call: Call, n: int, axis: Expr, axes: tuple[Expr, ...], dtype: DType) -> Expr:
    """A scale or zero point: one for all, one for each place of an axis, or broadcast to all axes."""
    t = call.operand(n)
    if isinstance(t, Expr):
        return te.cast(t, dtype)
    if t.size == 1:
        return te.cast(t[tuple(Const(0) for _ in t.shape)], dtype)
    if len(t.shape) == 1:
        return te.cast(t[axis], dtype)
    rest = axes[len(axes) - len(t.shape) :]
    return te.cast(t[tuple(Const(0) if s == 1 else v for s, v in zip(t.shape, rest))], dtype)


class _Product:
    """The exact sum of products of a call, by operand numbers of the factors and their zero points."""

    def __init__(self, call: Call, name: str, a: int, b: int, zero_a: int, zero_b: int) -> None:
        self.call, self.name = call, name
        self.x, self.w = call.tensor(a), call.tensor(b)
        self.zero_x, self.zero_w = zero_a, zero_b
        for t in (self.x, self.w):
            if t.dtype not in (DType.INT8, DType.UINT8):
                raise GraphError(f"{call.node.op} {call.node.name}: {t.dtype} is not implemented; use 8 bits")  # fmt: skip

    def _corrected(
        self,
        total: Compute,
        n: int,
        columns: Callable[[], Callable[[tuple[Expr, ...]], Expr]],
        rows: Callable[[], Callable[[tuple[Expr, ...]], Expr]],
        along: tuple[int, int],
    ) -> Callable[..., Expr]:
        """Element of the result; `along` are the axes that zero points of x and w may run along."""
        has_x, has_w = not _is_zero(self.call, self.zero_x), not _is_zero(self.call, self.zero_w)
        of_w = columns() if has_x else None
        of_x = rows() if has_w else None

        def element(*axes: Expr) -> Expr:
            out = total[axes]
            zx = _number(self.call, self.zero_x, axes[along[0]], axes, INT) if has_x else None
            zw = _number(self.call, self.zero_w, axes[along[1]], axes, INT) if has_w else None
            if zx is not None and of_w is not None:
                out = out - zx * of_w(axes)
            if zw is not None and of_x is not None:
                out = out - zw * of_x(axes)
            if zx is not None and zw is not None:
                out = out + zx * zw * n
            return out

        return element

    def matmul(self) -> tuple[tuple[int, ...], Callable[..., Expr]]:
        """Shape and element of the matrix product."""
        x, w, name = self.x, self.w, self.name
        total = ops.matmul(x, w, name=f"{name}.total", accumulate=INT)
        rank = len(total.shape)

        def columns() -> Callable[[tuple[Expr, ...]], Expr]:
            sums = ops.reduce(w, "sum", [-2], name=f"{name}.columns", accumulate=INT)
            return lambda axes: sums[(*leading(sums.shape[:-2], axes[:-2]), 0, axes[-1])]

        def rows() -> Callable[[tuple[Expr, ...]], Expr]:
            sums = ops.reduce(x, "sum", [-1], name=f"{name}.rows", accumulate=INT)
            return lambda axes: sums[(*leading(sums.shape[:-2], axes[:-2]), axes[-2], 0)]

        return total.shape, self._corrected(total, x.shape[-1], columns, rows, (rank - 2, rank - 1))

    def conv(self) -> tuple[tuple[int, ...], Callable[..., Expr]]:
        """Shape and element of the convolution, whose padding is the zero point of x."""
        call, x, w, name = self.call, self.x, self.w, self.name
        strides, pads, dilations = spatial(call, w.shape[2:])
        groups = int(call.attribute("group", 1))
        fill: Expr = Const(0, x.dtype)
        if not _is_zero(call, self.zero_x):
            zero = call.operand(self.zero_x)
            if not isinstance(zero, Expr) and zero.size > 1:
                raise GraphError(f"{call.node.op} {call.node.name}: x has more than one zero point")
            fill = zero if isinstance(zero, Expr) else zero[tuple(Const(0) for _ in zero.shape)]

        def over(weights: Tensor, label: str) -> Compute:
            return ops.conv(
                x, weights, stride=strides, padding=pads, dilation=dilations, groups=groups,
                name=f"{name}.{label}", accumulate=INT, fill=fill,
            )  # fmt: skip

        total = over(w, "total")

        def columns() -> Callable[[tuple[Expr, ...]], Expr]:
            axes = list(range(1, len(w.shape)))
            sums = ops.reduce(
                w, "sum", axes, keepdims=False, name=f"{name}.columns", accumulate=INT
            )
            return lambda axes: sums[axes[1]]

        def rows() -> Callable[[tuple[Expr, ...]], Expr]:
            sums = self._windows(total, groups, fill, strides, pads, dilations)
            per = w.shape[0] // groups
            return lambda axes: sums[(axes[0], axes[1] // per, *axes[2:])]

        n = w.size // w.shape[0]
        return total.shape, self._corrected(total, n, columns, rows, (1, 1))

    def _windows(
        self, total: Compute, groups: int, fill: Expr, strides: list[int],
        pads: list[tuple[int, int]], dilations: list[int],
    ) -> Compute:  # fmt: skip
        """Sums of the input's windows, one for each group."""
        x, w, name = self.x, self.w, self.name
        source = ops.padded(x, [b for b, _ in pads], [a for _, a in pads], fill, f"{name}.rows.pad")
        own = w.shape[1]
        channel = te.reduce_axis(own, "ic")
        window = [te.reduce_axis(k, f"k{d}") for d, k in enumerate(w.shape[2:])]

        def body(n: Expr, g: Expr, *place: Expr) -> Expr:
            at = [p * s + r.var * d for p, s, r, d in zip(place, strides, window, dilations)]
            base = channel.var if groups == 1 else g * own + channel.var
            return te.sum(te.cast(source[(n, base, *at)], INT), [channel, *window])

        axes = ["n", "g", *(f"o{d}" for d in range(len(window)))]
        shape = (x.shape[0], groups, *total.shape[2:])
        return te.compute(shape, body, f"{name}.rows", axes=axes)


def _integer(kind: str) -> Callable[[Call], Compute]:
    def lower(call: Call) -> Compute:
        product = _Product(call, call.name, 0, 1, 2, 3)
        shape, element = product.matmul() if kind == "matmul" else product.conv()
        return te.compute(shape, lambda *axes: element(*axes), name=call.name)

    return lower


def _scale(call: Call, along: tuple[int, int], rank: int) -> Callable[[tuple[Expr, ...]], Expr]:
    """``scale_x * scale_w / scale_y`` in float32, by the result's axes."""
    numbers = [call.constants[n] for n in (1, 4, 6)]
    if all(v is not None and v.size == 1 for v in numbers):
        x, w, y = (np.float32(v.reshape(-1)[0]) for v in numbers if v is not None)
        return lambda axes: Const(float(x * w / y), DType.FLOAT32)
    full = [1] * rank
    for n, axis in ((1, along[0]), (4, along[1]), (6, along[1])):
        shape = call.tensor(n).shape
        if len(shape) == 1 and shape[0] > 1:
            full[axis] = shape[0]
        elif len(shape) > 1:
            full = list(ops.broadcast_shape(tuple(full), shape))

    def body(*axes: Expr) -> Expr:
        x, w, y = (
            _number(call, n, axes[a], axes, DType.FLOAT64)
            for n, a in ((1, along[0]), (4, along[1]), (6, along[1]))
        )
        product = te.cast(te.cast(x * w, DType.FLOAT32), DType.FLOAT64)  # rounded like float32's
        return te.cast(product / y, DType.FLOAT32)

    scale = te.compute(full, lambda *axes: body(*axes), name=f"{call.name}.scale")
    return lambda axes: scale[tuple(Const(0) if n == 1 else v for n, v in zip(full, axes))]


def _requantised(
    call: Call, shape: tuple[int, ...], element: Callable[..., Expr], along: tuple[int, int]
) -> Compute:
    """The sum as a quantised value of the result's type."""
    scale = _scale(call, along, len(shape))
    dtype = call.tensor(7).dtype
    low, high = (0, 255) if dtype is DType.UINT8 else (-128, 127)

    def body(*axes: Expr) -> Expr:
        value = te.round(scale(axes) * te.cast(element(*axes), DType.FLOAT32))
        if not _is_zero(call, 7):
            value = value + _number(call, 7, axes[along[1]], axes, DType.FLOAT32)
        return te.cast(te.minimum(te.maximum(value, float(low)), float(high)), dtype)

    return te.compute(shape, lambda *axes: body(*axes), name=call.name)


def _qlinear_matmul(call: Call) -> Compute:
    shape, element = _Product(call, call.name, 0, 3, 2, 5).matmul()
    return _requantised(call, shape, element, (len(shape) - 2, len(shape) - 1))


def _qlinear_conv(call: Call) -> Compute:
    shape, plain = _Product(call, call.name, 0, 3, 2, 5).conv()

    def element(*axes: Expr) -> Expr:
        return plain(*axes) + call.tensor(8)[axes[1]] if call.has(8) else plain(*axes)

    return _requantised(call, shape, element, (1, 1))


OPERATORS: Table = {
    "MatMulInteger": ("anchor", _integer("matmul")),
    "ConvInteger": ("anchor", _integer("conv")),
    "QLinearMatMul": ("anchor", _qlinear_matmul),
    "QLinearConv": ("anchor", _qlinear_conv),
}

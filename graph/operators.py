"""What each operator computes, as tensor expressions: the one definition behind shape inference,
constant folding, the reference interpreter and the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.graph.ir import Node
from tilewright.tensor import ops, te
from tilewright.tensor.dtype import as_dtype
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS", "VIEWS", "Call", "Kind", "view_shape"]

Kind: TypeAlias = str  # "elementwise", "anchor", "rows" or "move"
ONNX_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    16: "bfloat16",
}


@dataclass(frozen=True)
class Call:
    """One application of an operator: its operands as tensors, constants as arrays where known."""

    node: Node
    tensors: tuple[Tensor | None, ...]
    constants: tuple[NDArray[Any] | None, ...]
    name: str

    def attribute(self, key: str, default: Any = None) -> Any:
        """An attribute of the node."""
        return self.node.attribute(key, default)

    def tensor(self, n: int) -> Tensor:
        """Operand n."""
        if n >= len(self.tensors) or self.tensors[n] is None:
            raise GraphError(f"{self.node.op} {self.node.name}: input {n} is missing")
        return self.tensors[n]  # type: ignore[return-value]

    def has(self, n: int) -> bool:
        """Whether operand n is given."""
        return n < len(self.tensors) and self.tensors[n] is not None

    def operand(self, n: int) -> Tensor | Expr:
        """Operand n; a constant of one element as a number."""
        value = self.constants[n]
        if value is not None and value.size == 1:
            return Const(value.reshape(-1)[0].item(), as_dtype(value.dtype))
        return self.tensor(n)

    def numbers(self, n: int, attribute: str | None = None) -> list[int] | None:
        """A list of integers from an attribute or a constant operand; None if neither is given."""
        if attribute is not None and self.attribute(attribute) is not None:
            found = self.attribute(attribute)
            return [int(v) for v in (found if isinstance(found, tuple) else (found,))]
        if n >= len(self.tensors) or self.tensors[n] is None:
            return None
        value = self.constants[n]
        if value is None:
            raise GraphError(
                f"{self.node.op} {self.node.name}: input {n} must be a constant; fold or fix it in the model"
            )
        return [int(v) for v in value.reshape(-1)]

    @property
    def shape(self) -> tuple[int, ...]:
        """What all operands broadcast to."""
        return ops.broadcast_shape(*(t.shape for t in self.tensors if t is not None))


Lower: TypeAlias = Callable[[Call], Compute]
OPERATORS: dict[str, tuple[Kind, Lower]] = {}
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")


def view_shape(call: Call) -> tuple[int, ...]:
    """The shape that a view gives to its operand."""
    shape, node = call.tensor(0).shape, call.node
    rank = len(shape)
    match node.op:
        case "Identity" | "Dropout":
            return shape
        case "Flatten":
            axis = int(call.attribute("axis", 1))
            axis = axis + rank if axis < 0 else axis
            return (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        case "Squeeze":
            axes = call.numbers(1, "axes")
            gone = (
                {a % rank for a in axes}
                if axes is not None
                else {d for d, n in enumerate(shape) if n == 1}
            )
            return tuple(n for d, n in enumerate(shape) if d not in gone)
        case "Unsqueeze":
            axes = call.numbers(1, "axes") or []
            total = rank + len(axes)
            new = {a % total for a in axes}
            rest = iter(shape)
            return tuple(1 if d in new else next(rest) for d in range(total))
    wanted = call.numbers(1, "shape")
    if wanted is None:
        raise GraphError(f"Reshape {node.name}: no shape is given")
    out = [
        shape[d] if n == 0 and not call.attribute("allowzero", 0) else n
        for d, n in enumerate(wanted)
    ]
    if -1 in out:
        known = int(np.prod([n for n in out if n != -1]))
        out[out.index(-1)] = int(np.prod(shape)) // max(1, known)
    return tuple(out)


def _elementwise(op: str, f: Callable[..., Any]) -> None:
    def lower(call: Call) -> Compute:
        operands = [call.operand(n) for n in range(len(call.tensors))]
        return ops.elementwise(call.name, f, *operands, shape=call.shape)

    OPERATORS[op] = ("elementwise", lower)


def _register(op: str, kind: Kind) -> Callable[[Lower], Lower]:
    def add(f: Lower) -> Lower:
        OPERATORS[op] = (kind, f)
        return f

    return add


def _fold(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def many(first: Any, *rest: Any) -> Any:
        for r in rest:
            first = f(first, r)
        return first

    return many


def _div(a: Expr, b: Expr) -> Expr:
    if a.dtype.is_float:
        return a / b
    quotient = te.abs(a) // te.abs(b)  # ONNX truncates towards zero
    return te.select(te.not_equal(a < 0, b < 0), -quotient, quotient)


def _pow(a: Expr, b: Expr) -> Expr:
    b = te.cast(b, a.dtype)
    if isinstance(b, Const) and b.value == 2:
        return a * a
    if isinstance(b, Const) and b.value == 0.5:
        return te.sqrt(a)
    return a**b


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": _div, "Pow": _pow,
    "Min": _fold(te.minimum), "Max": _fold(te.maximum), "Sum": _fold(lambda a, b: a + b),
    "Sqrt": te.sqrt, "Exp": te.exp, "Log": te.log, "Erf": te.erf, "Tanh": te.tanh, "Sigmoid": te.sigmoid,
    "Sin": te.sin, "Cos": te.cos, "Neg": lambda a: -a, "Abs": te.abs, "Floor": te.floor, "Ceil": te.ceil,
    "Round": te.round, "Reciprocal": lambda a: 1.0 / a, "Relu": lambda a: te.maximum(a, 0.0 if a.dtype.is_float else 0),
    "Softplus": lambda a: te.maximum(a, 0.0) + te.log(1.0 + te.exp(-te.abs(a))),
    "HardSwish": lambda a: a * te.minimum(te.maximum(a * (1 / 6) + 0.5, 0.0), 1.0),
    "Where": lambda c, a, b: te.select(c, a, b), "Equal": te.equal, "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b, "Greater": lambda a, b: a > b, "GreaterOrEqual": lambda a, b: a >= b,
    "And": te.logical_and, "Or": te.logical_or, "Not": te.logical_not, "IsNaN": te.isnan,
    "PRelu": lambda a, s: te.select(a < 0.0, a * s, a),
}  # fmt: skip
for _name, _f in _FUNCTIONS.items():
    _elementwise(_name, _f)


@_register("Cast", "elementwise")
def _cast(call: Call) -> Compute:
    to = ONNX_TYPES.get(int(call.attribute("to")))
    if to is None:
        raise GraphError(f"Cast {call.node.name}: no element type for code {call.attribute('to')}")
    return ops.elementwise(call.name, lambda a: te.cast(a, to), call.tensor(0))


@_register("Clip", "elementwise")
def _clip(call: Call) -> Compute:
    def bound(n: int, attribute: str) -> Any:
        if call.attribute(attribute) is not None:
            return float(call.attribute(attribute))
        return call.operand(n) if call.has(n) else None

    low, high = bound(1, "min"), bound(2, "max")

    def f(a: Expr, *limits: Expr) -> Expr:
        rest = list(limits)
        if low is not None:
            a = te.maximum(a, rest.pop(0))
        if high is not None:
            a = te.minimum(a, rest.pop(0))
        return a

    return ops.elementwise(call.name, f, call.tensor(0), *(b for b in (low, high) if b is not None))


@_register("LeakyRelu", "elementwise")
def _leaky_relu(call: Call) -> Compute:
    slope = float(call.attribute("alpha", 0.01))
    return ops.elementwise(call.name, lambda a: te.select(a < 0.0, a * slope, a), call.tensor(0))


@_register("Elu", "elementwise")
def _elu(call: Call) -> Compute:
    scale = float(call.attribute("alpha", 1.0))
    return ops.elementwise(
        call.name, lambda a: te.select(a < 0.0, (te.exp(a) - 1.0) * scale, a), call.tensor(0)
    )


@_register("HardSigmoid", "elementwise")
def _hard_sigmoid(call: Call) -> Compute:
    alpha, beta = float(call.attribute("alpha", 0.2)), float(call.attribute("beta", 0.5))
    return ops.elementwise(
        call.name, lambda a: te.minimum(te.maximum(a * alpha + beta, 0.0), 1.0), call.tensor(0)
    )


@_register("Gelu", "elementwise")
def _gelu(call: Call) -> Compute:
    if call.attribute("approximate", "none") == "tanh":
        return ops.elementwise(
            call.name,
            lambda a: a * 0.5 * (1.0 + te.tanh((a + a * a * a * 0.044715) * 0.7978845608028654)),
            call.tensor(0),
        )
    return ops.elementwise(
        call.name, lambda a: a * 0.5 * (1.0 + te.erf(a * 0.7071067811865476)), call.tensor(0)
    )


@_register("BatchNormalization", "elementwise")
def _batch_norm(call: Call) -> Compute:
    eps = float(call.attribute("epsilon", 1e-5))
    x = call.tensor(0)

    def f(*axes: Expr) -> Expr:
        c = axes[1]
        scale, bias, mean, var = (call.tensor(n)[c] for n in (1, 2, 3, 4))
        return (x[axes] - mean) * (scale * te.rsqrt(var + eps)) + bias

    return te.compute(x.shape, lambda *axes: f(*axes), name=call.name)


def _spatial(
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


@_register("Conv", "anchor")
def _conv(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    strides, pads, dilations = _spatial(call, w.shape[2:])
    biased = call.has(2)
    y = ops.conv(
        x, w, stride=strides, padding=pads, dilation=dilations, groups=int(call.attribute("group", 1)),
        name=f"{call.name}.acc" if biased else call.name,
    )  # fmt: skip
    if not biased:
        return y
    bias = call.tensor(2)
    return te.compute(y.shape, lambda *axes: y[axes] + bias[axes[1]], name=call.name)


@_register("ConvTranspose", "anchor")
def _conv_transpose(call: Call) -> Compute:
    x, w = call.tensor(0), call.tensor(1)
    dims = len(w.shape) - 2
    strides, pads, dilations = _spatial(call, w.shape[2:])
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
    biased = call.has(2)
    y = ops.conv_transpose(
        x, w, stride=strides, padding=pads, output_padding=more, dilation=dilations,
        groups=int(call.attribute("group", 1)), name=f"{call.name}.acc" if biased else call.name,
    )  # fmt: skip
    if not biased:
        return y
    bias = call.tensor(2)
    return te.compute(y.shape, lambda *axes: y[axes] + bias[axes[1]], name=call.name)


@_register("MatMul", "anchor")
def _matmul(call: Call) -> Compute:
    return ops.matmul(call.tensor(0), call.tensor(1), name=call.name)


@_register("Gemm", "anchor")
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


def _pool(kind: str) -> Lower:
    def lower(call: Call) -> Compute:
        kernel = list(call.attribute("kernel_shape"))
        strides, pads, dilations = _spatial(call, kernel)
        if any(d != 1 for d in dilations):
            raise GraphError(f"{call.node.op} {call.node.name}: dilated pooling is not implemented")
        return ops.pool(
            call.tensor(0), kind, kernel=kernel, stride=strides, padding=pads,
            ceil_mode=bool(call.attribute("ceil_mode", 0)),
            count_include_pad=bool(call.attribute("count_include_pad", 0)), name=call.name,
        )  # fmt: skip

    return lower


OPERATORS["MaxPool"] = ("anchor", _pool("max"))
OPERATORS["AveragePool"] = ("anchor", _pool("average"))
OPERATORS["GlobalAveragePool"] = (
    "rows",
    lambda c: ops.global_pool(c.tensor(0), "average", name=c.name),
)
OPERATORS["GlobalMaxPool"] = ("rows", lambda c: ops.global_pool(c.tensor(0), "max", name=c.name))


def _reduce(op: str) -> Lower:
    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        axes = call.numbers(1, "axes")
        if not axes:
            axes = list(range(len(x.shape)))
        keep = bool(call.attribute("keepdims", 1))
        if op == "mean":
            return ops.mean(x, axes, keepdims=keep, name=call.name)
        return ops.reduce(x, op, axes, keepdims=keep, name=call.name)

    return lower


for _op in ("Sum", "Max", "Min", "Prod", "Mean"):
    OPERATORS[f"Reduce{_op}"] = ("rows", _reduce(_op.lower()))


def _softmax(f: Callable[..., Compute]) -> Lower:
    def lower(call: Call) -> Compute:
        x = call.tensor(0)
        if call.node.opset >= 13:
            return f(x, axis=int(call.attribute("axis", -1)), name=call.name)
        axis = int(call.attribute("axis", 1)) % max(1, len(x.shape))
        if axis == len(x.shape) - 1 or all(n == 1 for n in x.shape[axis + 1 :]):
            return f(x, axis=axis, name=call.name)
        raise GraphError(
            f"{call.node.op} {call.node.name}: before opset 13 it flattens axes from {axis} on, which is not implemented"
        )

    return lower


OPERATORS["Softmax"] = ("rows", _softmax(ops.softmax))
OPERATORS["LogSoftmax"] = ("rows", _softmax(ops.log_softmax))


@_register("LayerNormalization", "rows")
def _layer_norm(call: Call) -> Compute:
    return ops.layer_norm(
        call.tensor(0), call.tensor(1) if call.has(1) else None, call.tensor(2) if call.has(2) else None,
        axis=int(call.attribute("axis", -1)), eps=float(call.attribute("epsilon", 1e-5)), name=call.name,
    )  # fmt: skip


@_register("RMSNormalization", "rows")
def _rms_norm(call: Call) -> Compute:
    return ops.rms_norm(
        call.tensor(0), call.tensor(1), axis=int(call.attribute("axis", -1)),
        eps=float(call.attribute("epsilon", 1e-5)), name=call.name,
    )  # fmt: skip


@_register("Transpose", "move")
def _transpose(call: Call) -> Compute:
    x = call.tensor(0)
    order = call.attribute("perm") or tuple(reversed(range(len(x.shape))))
    return ops.transpose(x, order, name=call.name)


@_register("Reshape", "move")
def _reshape(call: Call) -> Compute:
    return ops.reshape(call.tensor(0), view_shape(call), name=call.name)


@_register("Concat", "move")
def _concat(call: Call) -> Compute:
    tensors = [call.tensor(n) for n in range(len(call.tensors))]
    return ops.concat(tensors, int(call.attribute("axis")), name=call.name)


@_register("Slice", "move")
def _slice(call: Call) -> Compute:
    x = call.tensor(0)
    starts, ends = call.numbers(1, "starts") or [], call.numbers(2, "ends") or []
    axes = call.numbers(3, "axes") or list(range(len(starts)))
    steps = call.numbers(4) or [1] * len(starts)
    first, sizes, by = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    for a, b, e, s in zip(axes, starts, ends, steps):
        span = range(*slice(b, e if e > -(1 << 62) else None, s).indices(x.shape[a]))
        first[a], sizes[a], by[a] = span.start, len(span), s
    return ops.slice_(x, first, sizes, by, name=call.name)


@_register("Gather", "move")
def _gather(call: Call) -> Compute:
    return ops.gather(
        call.tensor(0), call.tensor(1), axis=int(call.attribute("axis", 0)), name=call.name
    )


@_register("Expand", "elementwise")
def _expand(call: Call) -> Compute:
    shape = tuple(call.numbers(1, "shape") or ())
    return ops.expand(
        call.tensor(0), ops.broadcast_shape(call.tensor(0).shape, shape), name=call.name
    )


@_register("Tile", "move")
def _tile(call: Call) -> Compute:
    x, times = call.tensor(0), call.numbers(1) or []
    shape = [n * t for n, t in zip(x.shape, times)]
    return te.compute(
        shape,
        lambda *axes: x[tuple(v % n if n > 1 else Const(0) for v, n in zip(axes, x.shape))],
        name=call.name,
    )


@_register("Pad", "move")
def _pad(call: Call) -> Compute:
    x = call.tensor(0)
    pads = call.numbers(1, "pads") or []
    mode = call.attribute("mode", "constant")
    value = float(call.attribute("value", 0.0))
    if call.has(2) and call.constants[2] is not None:
        value = float(call.constants[2].reshape(-1)[0])
    rank = len(x.shape)
    axes = call.numbers(3) or list(range(rank))
    before, after = [0] * rank, [0] * rank
    for n, a in enumerate(axes):
        before[a], after[a] = pads[n], pads[len(axes) + n]
    if min(*before, *after, 0) < 0:
        raise GraphError(f"Pad {call.node.name}: negative padding is not implemented; use Slice")
    return ops.pad(x, before, after, mode=mode, value=value, name=call.name)

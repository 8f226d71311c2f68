"""Operators that compute each element of the result on its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.errors import GraphError
from tilewright.graph.operators.call import ONNX_TYPES, Call, Lower, Table
from tilewright.tensor import ops, te
from tilewright.tensor.dtype import as_dtype
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.te import Compute

__all__ = ["OPERATORS"]


def _fold(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def many(first: Any, *rest: Any) -> Any:
        for r in rest:
            first = f(first, r)
        return first

    return many


def _div(a: Expr, b: Expr) -> Expr:
    if a.dtype.is_float:
        return a / b
    if a.dtype is as_dtype("uint8"):
        return te.cast(te.cast(a, "int32") // te.cast(b, "int32"), a.dtype)
    quotient = te.abs(a) // te.abs(b)  # ONNX truncates towards zero
    return te.select(te.not_equal(a < 0, b < 0), -quotient, quotient)


def _pow(a: Expr, b: Expr) -> Expr:
    if not a.dtype.is_float:  # exact while float64 is; a cast rounds towards zero
        p = te.cast(a, "float64") ** te.cast(b, "float64")
        whole = te.round(p)
        p = te.select(te.abs(p - whole) <= te.abs(p) * 1e-12, whole, p)
        return te.cast(p, a.dtype)
    b = te.cast(b, a.dtype)
    if isinstance(b, Const) and b.value == 2:
        return a * a
    if isinstance(b, Const) and b.value == 0.5:
        return te.sqrt(a)
    return a**b


def _softplus(a: Expr) -> Expr:
    return te.maximum(a, 0.0) + te.log(1.0 + te.exp(-te.abs(a)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": _div, "Pow": _pow,
    "Min": _fold(te.minimum), "Max": _fold(te.maximum), "Sum": _fold(lambda a, b: a + b),
    "Sqrt": te.sqrt, "Exp": te.exp, "Log": te.log, "Erf": te.erf, "Tanh": te.tanh, "Sigmoid": te.sigmoid,
    "Sin": te.sin, "Cos": te.cos, "Neg": lambda a: -a, "Abs": te.abs, "Floor": te.floor, "Ceil": te.ceil,
    "Round": te.round, "Reciprocal": lambda a: 1.0 / a, "Relu": lambda a: te.maximum(a, 0.0 if a.dtype.is_float else 0),
    "Softplus": lambda a: _softplus(a),
    "HardSwish": lambda a: a * te.minimum(te.maximum(a * (1 / 6) + 0.5, 0.0), 1.0),
    "Where": lambda c, a, b: te.select(c, a, b), "Equal": te.equal, "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b, "Greater": lambda a, b: a > b, "GreaterOrEqual": lambda a, b: a >= b,
    "And": te.logical_and, "Or": te.logical_or, "Not": te.logical_not, "IsNaN": te.isnan,
    "Sign": lambda a: te.select(a > 0, te.cast(1, a.dtype), te.select(a < 0, te.cast(-1, a.dtype), a * 0)),
    "Softsign": lambda a: a / (1.0 + te.abs(a)), "Mish": lambda a: a * te.tanh(_softplus(a)),
    "Tan": lambda a: te.sin(a) / te.cos(a), "Cosh": lambda a: 0.5 * (te.exp(a) + te.exp(-a)),
    "Sinh": lambda a: te.tanh(a) * 0.5 * (te.exp(a) + te.exp(-a)), "Xor": te.not_equal,
    "Mean": lambda *a: _fold(lambda x, y: x + y)(*a) * (1.0 / len(a)),
    "PRelu": lambda a, s: te.select(a < 0.0, a * s, a),
}  # fmt: skip


def _of(f: Callable[..., Any]) -> Lower:
    def lower(call: Call) -> Compute:
        operands = [call.operand(n) for n in range(len(call.tensors))]
        return ops.elementwise(call.name, f, *operands, shape=call.shape)

    return lower


def _cast(call: Call) -> Compute:
    to = ONNX_TYPES.get(int(call.attribute("to")))
    if to is None:
        raise GraphError(f"Cast {call.node.name}: no element type for code {call.attribute('to')}")
    return ops.elementwise(call.name, lambda a: te.cast(a, to), call.tensor(0))


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


def _leaky_relu(call: Call) -> Compute:
    slope = float(call.attribute("alpha", 0.01))
    return ops.elementwise(call.name, lambda a: te.select(a < 0.0, a * slope, a), call.tensor(0))


def _elu(call: Call) -> Compute:
    scale = float(call.attribute("alpha", 1.0))
    return ops.elementwise(
        call.name, lambda a: te.select(a < 0.0, (te.exp(a) - 1.0) * scale, a), call.tensor(0)
    )


def _hard_sigmoid(call: Call) -> Compute:
    alpha, beta = float(call.attribute("alpha", 0.2)), float(call.attribute("beta", 0.5))
    return ops.elementwise(
        call.name, lambda a: te.minimum(te.maximum(a * alpha + beta, 0.0), 1.0), call.tensor(0)
    )


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


def _batch_norm(call: Call) -> Compute:
    eps = float(call.attribute("epsilon", 1e-5))
    x = call.tensor(0)

    def f(*axes: Expr) -> Expr:
        c = axes[1]
        scale, bias, mean, var = (call.tensor(n)[c] for n in (1, 2, 3, 4))
        return (x[axes] - mean) * (scale * te.rsqrt(var + eps)) + bias

    return te.compute(x.shape, lambda *axes: f(*axes), name=call.name)


def _expand(call: Call) -> Compute:
    shape = tuple(call.numbers(1, "shape") or ())
    return ops.expand(
        call.tensor(0), ops.broadcast_shape(call.tensor(0).shape, shape), name=call.name
    )


def _scaled_elu(call: Call, alpha: float, gamma: float) -> Compute:
    alpha, gamma = float(call.attribute("alpha", alpha)), float(call.attribute("gamma", gamma))
    return ops.elementwise(
        call.name,
        lambda a: te.select(a > 0.0, a, (te.exp(a) - 1.0) * alpha) * gamma,
        call.tensor(0),
    )


def _selu(call: Call) -> Compute:
    return _scaled_elu(call, 1.67326319217681884765625, 1.05070102214813232421875)


def _celu(call: Call) -> Compute:
    alpha = float(call.attribute("alpha", 1.0))
    return ops.elementwise(
        call.name,
        lambda a: te.select(a > 0.0, a, (te.exp(a * (1.0 / alpha)) - 1.0) * alpha),
        call.tensor(0),
    )


def _thresholded_relu(call: Call) -> Compute:
    alpha = float(call.attribute("alpha", 1.0))
    return ops.elementwise(call.name, lambda a: te.select(a > alpha, a, 0.0), call.tensor(0))


def _is_inf(call: Call) -> Compute:
    signs = (call.attribute("detect_positive", 1), call.attribute("detect_negative", 1))
    ends = [te.cast(v, call.tensor(0).dtype) for v, on in zip((math.inf, -math.inf), signs) if on]

    def f(a: Expr) -> Expr:
        tests = [te.equal(a, e) for e in ends]
        return te.logical_or(*tests) if tests else te.not_equal(a, a)

    return ops.elementwise(call.name, f, call.tensor(0))


def _dropout_mask(call: Call) -> Compute:
    return te.compute(call.tensor(0).shape, lambda *axes: Const(True, as_dtype("bool")), call.name)


def _mod(call: Call) -> Compute:
    """The remainder with the divisor's sign, or with the dividend's as C has it (fmod=1).

    Of floating-point numbers it is a - q * b with a rounded quotient q: exact only while q is small.
    """
    like_c = bool(call.attribute("fmod", 0))

    def f(a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_float:
            return a - _div(a, b) * b if like_c else a % b
        q = a / b
        whole = te.select(q < 0.0, te.ceil(q), te.floor(q)) if like_c else te.floor(q)
        finite = te.logical_and(te.abs(a) < math.inf, te.equal(te.abs(b), math.inf))
        apart = te.logical_and(te.not_equal(a < 0.0, b < 0.0), te.not_equal(a, 0.0))
        return te.select(finite, a if like_c else te.select(apart, b, a), a - whole * b)

    return ops.elementwise(call.name, f, call.operand(0), call.operand(1), shape=call.shape)


def _per_axis(call: Call, n: int, axis: int, axes: tuple[Expr, ...]) -> Expr:
    """Element of a scale or zero point: one for all, or one for each place along an axis."""
    t = call.tensor(n)
    size = 1
    for d in t.shape:
        size *= d
    return t[tuple(Const(0) for _ in t.shape)] if size == 1 else t[axes[axis]]


def _dequantize(call: Call) -> Compute:
    x = call.tensor(0)
    axis = int(call.attribute("axis", 1)) % max(1, len(x.shape))

    def f(*axes: Expr) -> Expr:
        value = te.cast(x[axes], "int32")
        if call.has(2):
            value = value - te.cast(_per_axis(call, 2, axis, axes), "int32")
        scale = _per_axis(call, 1, axis, axes)
        return te.cast(value, scale.dtype) * scale

    return te.compute(x.shape, lambda *axes: f(*axes), name=call.name)


def _quantize(call: Call) -> Compute:
    x = call.tensor(0)
    axis = int(call.attribute("axis", 1)) % max(1, len(x.shape))
    dtype = call.tensor(2).dtype if call.has(2) else as_dtype("uint8")
    if dtype.n_bytes != 1:
        raise GraphError(f"QuantizeLinear {call.node.name}: {dtype} is not implemented; use 8 bits")
    low, high = (0, 255) if dtype is as_dtype("uint8") else (-128, 127)

    def f(*axes: Expr) -> Expr:
        value = te.round(x[axes] / _per_axis(call, 1, axis, axes))
        if call.has(2):
            value = value + te.cast(_per_axis(call, 2, axis, axes), x.dtype)
        return te.cast(te.minimum(te.maximum(value, float(low)), float(high)), dtype)

    return te.compute(x.shape, lambda *axes: f(*axes), name=call.name)


OPERATORS: Table = {
    **{name: ("elementwise", _of(f)) for name, f in _FUNCTIONS.items()},
    "Cast": ("elementwise", _cast),
    "Clip": ("elementwise", _clip),
    "LeakyRelu": ("elementwise", _leaky_relu),
    "Elu": ("elementwise", _elu),
    "HardSigmoid": ("elementwise", _hard_sigmoid),
    "Gelu": ("elementwise", _gelu),
    "BatchNormalization": ("elementwise", _batch_norm),
    "Expand": ("elementwise", _expand),
    "Selu": ("elementwise", _selu),
    "Celu": ("elementwise", _celu),
    "ThresholdedRelu": ("elementwise", _thresholded_relu),
    "IsInf": ("elementwise", _is_inf),
    "Mod": ("elementwise", _mod),
    "DropoutMask": ("elementwise", _dropout_mask),
    "DequantizeLinear": ("elementwise", _dequantize),
    "QuantizeLinear": ("elementwise", _quantize),
}

"""Resizing by nearest, linear and cubic interpolation, one axis after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call, Table
from tilewright.tensor import te
from tilewright.tensor.expr import Expr
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]

SNAP = 2.0**20


@dataclass(frozen=True)
class _Axis:
    """How one axis is resized."""

    old: int
    new: int
    scale: float  # new over old, as the model gives it
    mode: str

    def place(self, v: Expr) -> Expr:
        """Where in the old axis a new element lies, as a real number."""
        x = te.cast(v, "float64")
        match self.mode:
            case "asymmetric":
                return x * (1.0 / self.scale)
            case "align_corners":
                return x * ((self.old - 1) / (self.new - 1)) if self.new > 1 else x * 0.0
            case "pytorch_half_pixel" if self.new == 1:
                return x * 0.0
            case "half_pixel" | "pytorch_half_pixel":
                return (x + 0.5) * (1.0 / self.scale) - 0.5
            case "half_pixel_symmetric":
                shift = self.old / 2 * (1 - self.new / (self.scale * self.old))
                return (x + 0.5) * (1.0 / self.scale) + (shift - 0.5)
        raise GraphError(f"Resize: the coordinates {self.mode!r} are not implemented")

    def clip(self, index: Expr) -> Expr:
        """An index inside the old axis."""
        return te.minimum(te.maximum(index, 0), self.old - 1)


def _integer(value: Expr) -> Expr:
    return te.cast(value, "int64")


def _nearest(axis: _Axis, rounding: str) -> Callable[[Expr], Expr]:
    factor = axis.new // axis.old
    whole = axis.new == factor * axis.old and axis.scale == factor
    if whole and axis.mode == "asymmetric" and rounding == "floor":
        return lambda v: v // factor
    if (
        whole and axis.mode == "half_pixel" and rounding.startswith("round")
    ):  # never halfway between two elements
        return lambda v: v // factor
    steps: dict[str, Callable[[Expr], Expr]] = {
        "round_prefer_floor": lambda p: te.ceil(p - 0.5),
        "round_prefer_ceil": lambda p: te.floor(p + 0.5),
        "floor": te.floor,
        "ceil": te.ceil,
    }
    if rounding not in steps:
        raise GraphError(f"Resize: the rounding {rounding!r} is not implemented")

    def place(
        v: Expr,
    ) -> Expr:  # scales are rounded to float32; what was meant to be whole becomes so
        return te.round(axis.place(v) * SNAP) * (1.0 / SNAP)

    return lambda v: axis.clip(_integer(steps[rounding](place(v))))


def _linear(axis: _Axis, read: Callable[[Expr], Expr], v: Expr) -> Expr:
    place = axis.place(v)
    low = te.floor(place)
    share = te.cast(place - low, "float32")
    first, second = read(axis.clip(_integer(low))), read(axis.clip(_integer(low) + 1))
    return first * (1.0 - te.cast(share, first.dtype)) + second * te.cast(share, first.dtype)


def _cubic(axis: _Axis, read: Callable[[Expr], Expr], v: Expr, a: float) -> Expr:
    place = axis.place(v)
    low = te.floor(place)
    t = place - low

    def weight(d: Expr, near: bool) -> Expr:
        if near:
            return ((a + 2) * d - (a + 3)) * d * d + 1.0
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    weights = [weight(t + 1.0, False), weight(t, True), weight(1.0 - t, True), weight(2.0 - t, False)]  # fmt: skip
    out: Expr | None = None
    for n, w in enumerate(weights):
        value = read(axis.clip(_integer(low) + (n - 1)))
        term = value * te.cast(w, value.dtype)
        out = term if out is None else out + term
    assert out is not None
    return out


def _axes(call: Call, x: Tensor) -> dict[int, _Axis]:
    """The axes whose size changes."""
    old_form = call.node.op == "Upsample" or call.node.opset < 11
    mode = str(call.attribute("coordinate_transformation_mode", "asymmetric" if old_form else "half_pixel"))  # fmt: skip
    given = call.attribute("axes")
    which = [int(a) % len(x.shape) for a in given] if given else list(range(len(x.shape)))
    sizes = None if old_form else call.numbers(3)
    if sizes:
        scales = [n / x.shape[d] for n, d in zip(sizes, which)]
        policy = call.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":  # one scale for all axes
            scales = [(min if policy == "not_larger" else max)(scales)] * len(which)
            sizes = [math.floor(s * x.shape[d] + 0.5) for s, d in zip(scales, which)]
    else:
        n = 1 if old_form else 2
        value = call.constants[n] if n < len(call.constants) else None
        found = call.attribute("scales", None if value is None else value.reshape(-1))
        if found is None or len(found) != len(which):
            raise GraphError(f"{call.node.op} {call.node.name}: sizes or scales must be constants")
        scales = [float(s) for s in found]
        sizes = [math.floor(x.shape[d] * s) for s, d in zip(scales, which)]
    if call.attribute("antialias", 0) or call.attribute("exclude_outside", 0):
        raise GraphError(
            f"{call.node.op} {call.node.name}: antialias and exclude_outside are not implemented"
        )
    return {
        d: _Axis(x.shape[d], n, s, mode)
        for d, n, s in zip(which, sizes, scales)
        if n != x.shape[d] or s != 1.0
    }


def _resize(call: Call) -> Compute:
    x = call.tensor(0)
    kind = str(call.attribute("mode", "nearest"))
    old_form = call.node.op == "Upsample" or call.node.opset < 11
    rounding = str(call.attribute("nearest_mode", "floor" if old_form else "round_prefer_floor"))
    changes = _axes(call, x)
    if kind == "nearest":
        maps = {d: _nearest(axis, rounding) for d, axis in changes.items()}
        shape = [changes[d].new if d in changes else n for d, n in enumerate(x.shape)]
        return te.compute(
            shape,
            lambda *v: x[tuple(maps[d](i) if d in maps else i for d, i in enumerate(v))],
            name=call.name,
        )
    if kind not in ("linear", "cubic"):
        raise GraphError(f"{call.node.op} {call.node.name}: the mode {kind!r} is not implemented")
    a = float(call.attribute("cubic_coeff_a", -0.75))
    out: Tensor = x
    todo = sorted(changes.items(), reverse=True)
    for n, (d, axis) in enumerate(todo):
        name = call.name if n == len(todo) - 1 else f"{call.name}.axis{d}"
        out = _one_axis(out, d, axis, kind, a, name)
    if not todo:
        return te.compute(x.shape, lambda *v: x[v], name=call.name)
    assert isinstance(out, Compute)
    return out


def _one_axis(x: Tensor, d: int, axis: _Axis, kind: str, a: float, name: str) -> Compute:
    shape = [axis.new if e == d else n for e, n in enumerate(x.shape)]

    def body(*v: Expr) -> Expr:
        def read(index: Expr) -> Expr:
            return x[(*v[:d], index, *v[d + 1 :])]

        return _linear(axis, read, v[d]) if kind == "linear" else _cubic(axis, read, v[d], a)

    return te.compute(shape, lambda *v: body(*v), name=name)


OPERATORS: Table = {"Resize": ("move", _resize), "Upsample": ("move", _resize)}

"""Workloads of many shapes from plain specifications, reproducible by a seed.

A specification is a dictionary of JSON values: ``kind`` and the sizes of that kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tilewright.tensor import Workload, ops, te

__all__ = ["KINDS", "Spec", "name_of", "varied", "workload"]

Spec: TypeAlias = "dict[str, Any]"
Rng: TypeAlias = np.random.Generator

MAX_FLOPS = 4e8  # so that the default schedule, without any optimisation, is timed in a second
MAX_BYTES = 32 << 20


def workload(spec: Spec) -> Workload:
    """Build what a specification describes."""
    out = _BUILD[spec["kind"]](spec)
    return Workload.of(out, name_of(spec))


def name_of(spec: Spec) -> str:
    """Readable and unique."""
    rest = ",".join(f"{k}={_text(v)}" for k, v in spec.items() if k != "kind")
    return f"{spec['kind']}[{rest}]"


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def varied(n: int, seed: int = 0) -> list[Spec]:
    """n distinct workloads; every prefix of the list holds all kinds in equal parts."""
    rng = np.random.default_rng(seed)
    out: list[Spec] = []
    known: set[str] = set()
    while len(out) < n:
        kind = KINDS[len(out) % len(KINDS)]
        spec = {"kind": kind, **_DRAW[kind](rng)}
        w = workload(spec)
        if name_of(spec) not in known and w.flops <= MAX_FLOPS and w.n_bytes <= MAX_BYTES:
            known.add(name_of(spec))
            out.append(spec)
    return out


def _size(rng: Rng, least: int, most: int) -> int:
    """Log-uniform; mostly a power of two or a multiple of 8 as in real models, often anything."""
    value = math.exp(rng.uniform(math.log(least), math.log(most)))
    kind = rng.random()
    if kind < 0.4:
        value = 2 ** round(math.log2(value))
    elif kind < 0.7 and value >= 8:
        value = 8 * round(value / 8)
    return int(min(max(least, round(value)), most))


def _draw_matmul(rng: Rng) -> Spec:
    return {**{c: _size(rng, 1 if c == "m" else 8, 1024) for c in "mnk"}, "const": bool(rng.random() < 0.5)}  # fmt: skip


def _draw_bmm(rng: Rng) -> Spec:
    return {"b": _size(rng, 2, 32), **{c: _size(rng, 8, 256) for c in "mnk"}}


def _draw_conv(rng: Rng) -> Spec:
    kernel = int(rng.choice([1, 1, 3, 3, 3, 5, 7]))
    return {
        "x": [1, _size(rng, 3, 256), (s := _size(rng, max(7, kernel), 112)), s], "out": _size(rng, 8, 256),
        "k": kernel, "s": int(rng.choice([1, 1, 2])), "relu": bool(rng.random() < 0.5),
    }  # fmt: skip


def _draw_depthwise(rng: Rng) -> Spec:
    kernel = int(rng.choice([3, 3, 5]))
    size = _size(rng, 7, 112)
    return {"x": [1, _size(rng, 8, 512), size, size], "k": kernel, "s": int(rng.choice([1, 1, 2]))}


def _draw_pool(rng: Rng) -> Spec:
    size = _size(rng, 8, 112)
    return {
        "x": [1, _size(rng, 8, 256), size, size], "op": str(rng.choice(["max", "average"])),
        "k": int(rng.choice([2, 3])), "s": int(rng.choice([1, 2])),
    }  # fmt: skip


def _draw_rows(rng: Rng) -> Spec:
    return {"x": [_size(rng, 1, 2048), _size(rng, 16, 8192)]}


def _draw_sum(rng: Rng) -> Spec:
    return {**_draw_rows(rng), "axis": int(rng.integers(2))}


def _draw_elementwise(rng: Rng) -> Spec:
    return {**_draw_rows(rng), "op": str(rng.choice(["relu", "add", "sigmoid", "gelu", "scale"]))}


_DRAW: dict[str, Callable[[Rng], Spec]] = {
    "matmul": _draw_matmul, "conv": _draw_conv, "depthwise": _draw_depthwise, "bmm": _draw_bmm, "softmax": _draw_rows,
    "pool": _draw_pool, "layer_norm": _draw_rows, "elementwise": _draw_elementwise, "rms_norm": _draw_rows,
    "sum": _draw_sum, "transpose": _draw_rows,
}  # fmt: skip

KINDS = tuple(_DRAW)


def _matmul(s: Spec) -> te.Compute:
    a = te.placeholder((s["m"], s["k"]), name="A")
    return ops.matmul(a, te.placeholder((s["k"], s["n"]), name="B", const=s["const"]))


def _bmm(s: Spec) -> te.Compute:
    a = te.placeholder((s["b"], s["m"], s["k"]), name="A")
    return ops.matmul(a, te.placeholder((s["b"], s["k"], s["n"]), name="B"))


def _conv(s: Spec) -> te.Compute:
    x = te.placeholder(s["x"], name="X")
    w = te.placeholder((s["out"], s["x"][1], s["k"], s["k"]), name="W", const=True)
    y = ops.conv2d(x, w, stride=s["s"], padding=s["k"] // 2)
    return ops.elementwise("R", lambda v: te.maximum(v, 0.0), y) if s["relu"] else y


def _depthwise(s: Spec) -> te.Compute:
    channels = s["x"][1]
    w = te.placeholder((channels, 1, s["k"], s["k"]), name="W", const=True)
    x = te.placeholder(s["x"], name="X")
    return ops.conv2d(x, w, stride=s["s"], padding=s["k"] // 2, groups=channels)


def _pool(s: Spec) -> te.Compute:
    x = te.placeholder(s["x"], name="X")
    pad = [(s["k"] // 2, s["k"] // 2)] * 2
    return ops.pool(x, s["op"], kernel=[s["k"]] * 2, stride=[s["s"]] * 2, padding=pad)


def _norm(s: Spec) -> te.Compute:
    x = te.placeholder(s["x"], name="X")
    scale, bias = (te.placeholder(s["x"][-1:], name=n, const=True) for n in ("scale", "bias"))
    return ops.layer_norm(x, scale, bias) if s["kind"] == "layer_norm" else ops.rms_norm(x, scale)


def _elementwise(s: Spec) -> te.Compute:
    x, y = (te.placeholder(s["x"], name=n) for n in "XZ")
    row = te.placeholder(s["x"][-1:], name="S", const=True)
    match s["op"]:
        case "add":
            return ops.elementwise("Y", lambda a, b: a + b, x, y)
        case "scale":
            return ops.elementwise("Y", lambda a, b: a * b, x, row)
        case "sigmoid":
            return ops.elementwise("Y", te.sigmoid, x)
        case "gelu":
            return ops.elementwise("Y", lambda v: v * 0.5 * (te.erf(v * 0.70710678) + 1.0), x)
        case _:
            return ops.elementwise("Y", lambda v: te.maximum(v, 0.0), x)


_BUILD: dict[str, Callable[[Spec], te.Compute]] = {
    "matmul": _matmul, "bmm": _bmm, "conv": _conv, "depthwise": _depthwise, "pool": _pool, "layer_norm": _norm,
    "rms_norm": _norm, "elementwise": _elementwise,
    "softmax": lambda s: ops.softmax(te.placeholder(s["x"], name="X")),
    "sum": lambda s: ops.reduce(te.placeholder(s["x"], name="X"), "sum", [s["axis"]]),
    "transpose": lambda s: ops.transpose(te.placeholder(s["x"], name="X"), (1, 0)),
}  # fmt: skip

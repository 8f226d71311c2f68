"""DynamicQuantizeLinear in terms of other operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Node, ValueInfo
from tilewright.tensor.dtype import as_dtype

__all__ = ["dynamic_quantize"]

_UINT8 = 2  # ONNX's code


def dynamic_quantize(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]]
) -> list[Node]:
    """The nodes that compute ``(y, y_scale, y_zero_point)``; their constants are added to the graph's.

    The scale is ``(max(x, 0) - min(x, 0)) / 255``, 1 if that is 0, and the zero point ``-min(x, 0) / scale``
    rounded, so that zero is exact.
    """
    x, base = node.inputs[0], node.outputs[0]
    y, scale, zero = (
        node.outputs[n] if n < len(node.outputs) and node.outputs[n] else f"{base}.{label}"
        for n, label in enumerate(("y", "scale", "zero"))
    )
    for label, value in (("0", 0.0), ("1", 1.0), ("255", 255.0)):
        name = f"{base}.{label}"
        constants[name] = np.array(value, np.float32)
        values[name] = ValueInfo(name, (), as_dtype("float32"))
    steps: list[tuple[str, tuple[str, ...], str, tuple[tuple[str, Any], ...]]] = [
        ("ReduceMin", (x,), "least", (("keepdims", 0),)),
        ("ReduceMax", (x,), "most", (("keepdims", 0),)),
        ("Min", ("least", "0"), "low", ()),
        ("Max", ("most", "0"), "high", ()),
        ("Sub", ("high", "low"), "range", ()),
        ("Div", ("range", "255"), "step", (("exact", 1),)),
        ("Equal", ("step", "0"), "flat", ()),
        ("Where", ("flat", "1", "step"), scale, ()),
        ("Neg", ("low",), "up", ()),
        ("Div", ("up", scale), "place", ()),
        ("Round", ("place",), "whole", ()),
        ("Min", ("whole", "255"), "inside", ()),
        ("Cast", ("inside",), zero, (("to", _UINT8),)),
        ("QuantizeLinear", (x, scale, zero), y, ()),
    ]
    own = {x, scale, zero, y}

    def full(name: str) -> str:
        return name if name in own else f"{base}.{name}"

    return [
        Node(op, tuple(map(full, inputs)), (full(out),), attributes, node.name, node.opset)
        for op, inputs, out, attributes in steps
    ]

"""Tensors without elements: constants of shape arithmetic, and slices that take nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Node

__all__ = ["empty_slice", "without_elements"]


def without_elements(node: Node, operands: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """The value of a node that slices, joins or reduces constants, one of them or the result empty.

    None for other nodes, and where nothing is empty.
    """
    arrays = [a for a in operands if a is not None]
    if node.op == "Slice":
        found = _slice(node, operands)
        return found if found.size == 0 else None
    if all(a.size for a in arrays[: 1 if node.op != "Concat" else None]):
        return None
    match node.op:
        case "Concat":
            return np.concatenate(arrays, int(node.attribute("axis")))
        case "ReduceProd" if arrays[0].ndim == 1:
            return np.ones((1,) if node.attribute("keepdims", 1) else (), arrays[0].dtype)
        case "Cast":
            from tilewright.graph.operators.call import ONNX_TYPES
            from tilewright.tensor.dtype import as_dtype

            return arrays[0].astype(as_dtype(ONNX_TYPES[int(node.attribute("to"))]).numpy)
    return None


def empty_slice(
    node: Node, shape: Sequence[int], operands: Sequence[NDArray[Any] | None]
) -> tuple[int, ...] | None:
    """The shape of a slice of data that has no elements; None if it has some."""
    data = np.broadcast_to(np.zeros((), np.bool_), tuple(shape))
    found = _slice(node, [data, *operands])
    return found.shape if found.size == 0 else None


def _slice(node: Node, operands: Sequence[NDArray[Any] | None]) -> NDArray[Any]:
    x = operands[0]
    assert x is not None

    def numbers(n: int, attribute: str, default: list[int]) -> list[int]:
        given = node.attribute(attribute)
        if given is not None:
            return list(given)
        value = operands[n] if n < len(operands) else None
        return default if value is None else [int(v) for v in value.reshape(-1)]

    starts, ends = numbers(1, "starts", []), numbers(2, "ends", [])
    axes = numbers(3, "axes", list(range(len(starts))))
    steps = numbers(4, "steps", [1] * len(starts))
    cut = [slice(None)] * x.ndim
    for a, b, e, s in zip(axes, starts, ends, steps):
        cut[a] = slice(b, e if e > -(1 << 62) else None, s)
    return x[tuple(cut)]

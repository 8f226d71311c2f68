"""Unsigned constant weights of integer products as signed ones, which dot-product instructions multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Node

__all__ = ["signed_weights"]

# operand numbers of the weights and of their zero point
_PLACES = {
    "MatMulInteger": (1, 3),
    "ConvInteger": (1, 3),
    "QLinearMatMul": (3, 5),
    "QLinearConv": (3, 5),
}


def signed_weights(graph: Graph) -> Graph:
    """Take 128 from uint8 weights and from their zero points: the differences stay as they are."""
    constants: dict[str, NDArray[Any]] = {}
    nodes = [_signed(graph, n, constants) for n in graph.nodes]
    return graph.with_nodes(nodes, constants) if constants else graph


def _signed(graph: Graph, n: Node, constants: dict[str, NDArray[Any]]) -> Node:
    if n.op not in _PLACES:
        return n
    weights, zero = _PLACES[n.op]
    inputs = [*n.inputs, *[""] * (zero + 1 - len(n.inputs))]
    value = graph.constants.get(inputs[weights])
    offset = graph.constants.get(inputs[zero]) if inputs[zero] else np.zeros((), np.uint8)
    if value is None or offset is None or value.dtype != np.uint8:
        return n
    for place, array in ((weights, value), (zero, offset)):
        name = f"{inputs[place] or n.outputs[0]}.signed"
        constants[name] = (array.astype(np.int16) - 128).astype(np.int8)
        inputs[place] = name
    return Node(n.op, tuple(inputs), n.outputs, n.attributes, n.name, n.opset)

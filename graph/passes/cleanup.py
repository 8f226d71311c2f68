"""Constant folding, common subexpressions, dead code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Node
from tilewright.graph.lowering import evaluate_node

__all__ = ["eliminate_common", "eliminate_dead", "fold_constants"]


def fold_constants(graph: Graph) -> Graph:
    """Compute nodes whose operands are all constants."""
    constants: dict[str, NDArray[Any]] = dict(graph.constants)
    new: dict[str, NDArray[Any]] = {}
    nodes: list[Node] = []
    for n in graph.nodes:
        if n.inputs and all(i in constants for i in n.inputs if i):
            array = np.asarray(evaluate_node(n, graph.values, constants))
            constants[n.outputs[0]] = new[n.outputs[0]] = array
        else:
            nodes.append(n)
    return graph.with_nodes(nodes, new) if new else graph


def eliminate_common(graph: Graph) -> Graph:
    """Let equal computations be one, and equal small constants be one."""
    names: dict[str, str] = {}
    by_value: dict[tuple[Any, ...], str] = {}
    for name, array in graph.constants.items():
        if array.size <= 64:
            key = (array.dtype.str, array.shape, array.tobytes())
            if by_value.setdefault(key, name) != name:
                names[name] = by_value[key]
    seen: dict[tuple[Any, ...], Node] = {}
    nodes = []
    for n in graph.nodes:
        inputs = tuple(names.get(i, i) for i in n.inputs)
        identity = (n.op, inputs, n.attributes, n.opset)
        first = seen.setdefault(identity, n)
        if first is n or n.outputs[0] in graph.outputs:
            nodes.append(n)
        else:
            names[n.outputs[0]] = first.outputs[0]
    return graph.with_nodes(nodes).rename(
        {k: v for k, v in names.items() if k not in graph.outputs}
    )


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes and constants that no output needs."""
    needed = set(graph.outputs)
    nodes: list[Node] = []
    for n in reversed(graph.nodes):
        if any(o in needed for o in n.outputs):
            nodes.append(n)
            needed.update(n.inputs)
    nodes.reverse()
    constants = {k: v for k, v in graph.constants.items() if k in needed}
    made = {o for n in nodes for o in n.outputs}
    keep = made | set(constants) | {i.name for i in graph.inputs}
    values = {k: v for k, v in graph.values.items() if k in keep}
    return Graph(graph.inputs, graph.outputs, tuple(nodes), constants, values)

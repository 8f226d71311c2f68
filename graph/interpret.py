"""Run a graph node by node on the reference evaluator: the oracle of graph tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tilewright.graph.ir import Graph
from tilewright.graph.lowering import evaluate_node

__all__ = ["interpret"]


def interpret(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The outputs of a graph, slowly and simply."""
    arrays: dict[str, NDArray[Any]] = {**graph.constants, **inputs}
    for node in graph.nodes:
        arrays[node.outputs[0]] = evaluate_node(node, graph.values, arrays)
    return {o: arrays[o] for o in graph.outputs}

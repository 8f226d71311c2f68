"""Rewrites of the model graph; each is a function from graph to graph."""

from __future__ import annotations

from tilewright.graph.ir import Graph
from tilewright.graph.passes.algebra import simplify_algebra
from tilewright.graph.passes.cleanup import eliminate_common, eliminate_dead, fold_constants
from tilewright.graph.passes.convolution import decompose_batch_norm, fold_into_weights
from tilewright.graph.passes.signed_weights import signed_weights

__all__ = [
    "decompose_batch_norm", "eliminate_common", "eliminate_dead", "fold_constants", "fold_into_weights",
    "signed_weights", "simplify", "simplify_algebra",
]  # fmt: skip


def simplify(graph: Graph) -> Graph:
    """All passes, until nothing changes."""
    graph = decompose_batch_norm(graph)
    while True:
        before = graph.nodes
        for rewrite in (
            fold_constants,
            simplify_algebra,
            fold_into_weights,
            signed_weights,
            eliminate_common,
            eliminate_dead,
        ):
            graph = rewrite(graph)
        if graph.nodes == before:
            return graph

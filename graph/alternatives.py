"""Other ways to compute a group of nodes, which round differently: Winograd's convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Node
from tilewright.tensor.dtype import DType
from tilewright.tensor.ops.winograd import TILES, winograd_weights

if TYPE_CHECKING:
    from tilewright.graph.fusion import Group

__all__ = ["rewritten", "with_weights"]

LEAST_CHANNELS = 16  # below, transforms take longer than the products that they save
WINOGRAD = "WinogradConv"


def rewritten(graph: Graph, cluster: Sequence[Node]) -> list[tuple[Graph, list[Node]]]:
    """The group in each other form, with the graph that has its constants.

    Constants that only another form needs are placeholders of zeros without memory until a form is
    chosen (`with_weights`).
    """
    seed = cluster[0]
    if not _small_window(graph, seed):
        return []
    channels_out, channels_in, *window = graph.values[seed.inputs[1]].shape
    out = []
    for m in TILES:
        name = f"{seed.inputs[1]}.winograd{m}"
        shape = (m + 2, m + 2, *window[:-2], channels_in, channels_out)
        zeros = np.broadcast_to(np.float32(0), shape)
        node = replace(
            seed, op=WINOGRAD, inputs=(seed.inputs[0], name, *seed.inputs[2:]),
            attributes=(*seed.attributes, ("tile", m)),
        )  # fmt: skip
        out.append((graph.with_nodes(graph.nodes, {name: zeros}), [node, *cluster[1:]]))
    return out


def _small_window(graph: Graph, n: Node) -> bool:
    """Whether a node is a convolution that Winograd's tiles suit: 3x3 (or n x 3 x 3), stride 1, many
    channels."""
    if n.op != "Conv" or n.inputs[1] not in graph.constants:
        return False
    weights = graph.values[n.inputs[1]]
    return (
        weights.dtype is DType.FLOAT32
        and len(weights.shape) in (4, 5)
        and weights.shape[-2:] == (3, 3)
        and n.attribute("group", 1) == 1
        and all(s == 1 for s in n.attribute("strides", (1,)))
        and all(d == 1 for d in n.attribute("dilations", (1,)))
        and min(weights.shape[:2]) >= LEAST_CHANNELS
        and min(graph.values[n.outputs[0]].shape[-2:]) >= 4
    )


def with_weights(graph: Graph, groups: Sequence[Group]) -> Graph:
    """The graph with the constants that the groups need in the forms that they have."""
    made: dict[str, NDArray[Any]] = {}
    for group in groups:
        seed = group.nodes[0]
        if seed.op == WINOGRAD and seed.inputs[1] not in made:
            m = seed.attribute("tile")
            source = seed.inputs[1].removesuffix(f".winograd{m}")
            made[seed.inputs[1]] = winograd_weights(graph.constants[source], m)
    return graph.with_nodes(graph.nodes, made) if made else graph

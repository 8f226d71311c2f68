"""Batch normalisation and per-channel constants into the weights of convolutions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Node, ValueInfo

__all__ = ["decompose_batch_norm", "fold_into_weights"]


def decompose_batch_norm(graph: Graph) -> Graph:
    """Write batch normalisation with constant statistics as a product and a sum."""
    nodes: list[Node] = []
    constants: dict[str, NDArray[Any]] = {}
    values = dict(graph.values)
    for n in graph.nodes:
        given = (
            [graph.constants.get(i) for i in n.inputs[1:5]]
            if n.op == "BatchNormalization"
            else [None]
        )
        if any(g is None for g in given):
            nodes.append(n)
            continue
        gamma, beta, mean, var = (np.asarray(g, np.float64) for g in given)
        scale = gamma / np.sqrt(var + float(n.attribute("epsilon", 1e-5)))
        info = graph.values[n.outputs[0]]
        shape = (-1, *(1 for _ in info.shape[2:]))
        out, mid = n.outputs[0], f"{n.outputs[0]}.scaled"
        constants[f"{out}.scale"] = scale.reshape(shape).astype(info.dtype.numpy)
        constants[f"{out}.shift"] = (beta - mean * scale).reshape(shape).astype(info.dtype.numpy)
        values[mid] = ValueInfo(mid, info.shape, info.dtype)
        nodes.append(Node("Mul", (n.inputs[0], f"{out}.scale"), (mid,), (), n.name, n.opset))
        nodes.append(Node("Add", (mid, f"{out}.shift"), (out,), (), n.name, n.opset))
    return replace(graph, values=values).with_nodes(nodes, constants)


def _per_channel(array: NDArray[Any], channels: int, rank: int) -> NDArray[Any] | None:
    """A constant that varies along the channels only, as a vector."""
    shape = (1,) * (rank - array.ndim) + array.shape if array.ndim <= rank else array.shape
    if (
        len(shape) != rank
        or any(n != 1 for d, n in enumerate(shape) if d != 1)
        or shape[1] not in (1, channels)
    ):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,)).astype(np.float64)


def fold_into_weights(graph: Graph) -> Graph:
    """Conv * c + d becomes a Conv with other weights and a bias, where c and d vary by channel only."""
    made = graph.producers()
    consumers = graph.consumers()
    constants: dict[str, NDArray[Any]] = {}
    replaced: dict[str, Node] = {}
    dropped: set[int] = set()
    for n in graph.nodes:
        if n.op not in ("Mul", "Add") or id(n) in dropped:
            continue
        for x, c in ((0, 1), (1, 0)):
            conv = replaced.get(n.inputs[x]) or made.get(n.inputs[x])
            value = graph.constants.get(n.inputs[c])
            if (
                conv is None
                or value is None
                or conv.op != "Conv"
                or len(consumers.get(n.inputs[x], [])) != 1
            ):
                continue
            if (
                n.inputs[x] in graph.outputs
                or graph.values[n.inputs[x]].shape != graph.values[n.outputs[0]].shape
            ):
                continue
            new = _fold(graph, constants, conv, n, value)
            if new is None:
                continue
            source = made[n.inputs[x]] if n.inputs[x] not in replaced else replaced[n.inputs[x]]
            dropped |= {id(source), id(n)}
            replaced[n.outputs[0]] = new
            break
    if not replaced:
        return graph
    final = {id(v): v for v in replaced.values()}
    nodes: list[Node] = []
    for n in graph.nodes:
        if id(n) in dropped:
            new = replaced.get(n.outputs[0])
            if new is not None and id(new) in final and id(new) not in dropped:
                nodes.append(new)
        else:
            nodes.append(n)
    return graph.with_nodes(nodes, constants)


def _fold(
    graph: Graph, constants: dict[str, NDArray[Any]], conv: Node, n: Node, value: NDArray[Any]
) -> Node | None:
    def constant(name: str) -> NDArray[Any] | None:
        return constants[name] if name in constants else graph.constants.get(name)

    weights = constant(conv.inputs[1])
    bias_name = conv.inputs[2] if len(conv.inputs) > 2 else ""
    bias = constant(bias_name) if bias_name else None
    if weights is None or (bias_name and bias is None):
        return None
    channels = weights.shape[0]
    vector = _per_channel(value, channels, len(graph.values[n.outputs[0]].shape))
    if vector is None:
        return None
    out = n.outputs[0]
    old = np.zeros(channels) if bias is None else bias.astype(np.float64)
    if n.op == "Mul":
        scaled = weights.astype(np.float64) * vector.reshape(-1, *(1 for _ in weights.shape[1:]))
        constants[f"{out}.weights"] = scaled.astype(weights.dtype)
        inputs = (conv.inputs[0], f"{out}.weights")
        if bias is None:
            return replace(conv, inputs=inputs, outputs=(out,))
        new_bias = old * vector
    else:
        inputs = (conv.inputs[0], conv.inputs[1])
        new_bias = old + vector
    constants[f"{out}.bias"] = new_bias.astype(weights.dtype)
    return replace(conv, inputs=(*inputs, f"{out}.bias"), outputs=(out,))

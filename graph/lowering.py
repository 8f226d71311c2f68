"""Nodes to tensor expressions, and single nodes evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError, TensorError
from tilewright.graph.ir import Node, ValueInfo
from tilewright.graph.operators import OPERATORS, VIEWS, Call, view_shape
from tilewright.graph.operators.empty import without_elements
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.te import Compute, Tensor

__all__ = ["evaluate_node", "infer", "lower_node"]


def lower_node(
    node: Node, tensors: dict[str, Tensor], constants: dict[str, NDArray[Any]], name: str
) -> Compute:
    """One node as a compute named `name`.

    Raises
    ------
    GraphError
        If its operands do not fit.
    """
    call = Call(
        node,
        tuple(tensors[i] if i else None for i in node.inputs),
        tuple(constants.get(i) if i else None for i in node.inputs),
        name,
    )
    try:
        return OPERATORS[node.op][1](call)
    except TensorError as error:
        raise GraphError(f"{node.op} {node.name}: {error}") from None


def _placeholders(node: Node, values: dict[str, ValueInfo]) -> dict[str, Tensor]:
    return {
        i: te.placeholder(values[i].shape, values[i].dtype, name=f"in{k}")
        for k, i in enumerate(dict.fromkeys(i for i in node.inputs if i))
    }


def infer(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]]
) -> list[ValueInfo]:
    """Shapes and types of a node's outputs."""
    tensors = _placeholders(node, values)
    if node.op in VIEWS:
        call = Call(
            node, tuple(tensors[i] if i else None for i in node.inputs),
            tuple(constants.get(i) if i else None for i in node.inputs), "out",
        )  # fmt: skip
        return [ValueInfo(node.outputs[0], view_shape(call), tensors[node.inputs[0]].dtype)]
    out = lower_node(node, tensors, constants, "out")
    return [ValueInfo(node.outputs[0], out.shape, out.dtype)]


def evaluate_node(
    node: Node, graph_values: dict[str, ValueInfo], arrays: dict[str, NDArray[Any]]
) -> NDArray[Any]:
    """The value of a node whose operands are all known."""
    values = {
        i: graph_values.get(i) or ValueInfo(i, arrays[i].shape, _info(arrays[i]))
        for i in node.inputs
        if i
    }
    empty = without_elements(node, [arrays[i] if i else None for i in node.inputs])
    if empty is not None:
        return empty
    tensors = _placeholders(node, values)
    if node.op in VIEWS:
        return arrays[node.inputs[0]].reshape(infer(node, values, arrays)[0].shape)
    out = lower_node(node, tensors, arrays, "out")
    workload = Workload.of(out)
    by_tensor = {t: arrays[i] for i, t in tensors.items()}
    return evaluate(workload, [np.asarray(by_tensor[p]) for p in workload.inputs])[0]


def _info(array: NDArray[Any]) -> Any:
    from tilewright.tensor.dtype import as_dtype

    return as_dtype(array.dtype)

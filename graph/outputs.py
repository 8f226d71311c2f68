"""Nodes with several outputs, as nodes with one each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.graph.dynamic_quantize import dynamic_quantize
from tilewright.graph.ir import Node, ValueInfo

__all__ = ["SEVERAL", "one_each"]

Values = dict[str, ValueInfo]
Constants = dict[str, NDArray[Any]]  # those that a node's parts need are added


def one_each(node: Node, values: Values, constants: Constants) -> list[Node]:
    """A node as nodes of one output.

    Raises
    ------
    GraphError
        If it has an output that is not implemented.
    """
    if node.op in SEVERAL:
        return SEVERAL[node.op](node, values, constants)
    used = [n for n, o in enumerate(node.outputs) if o]
    if used != [0]:
        raise GraphError(
            f"load_onnx: {node.op} {node.name} uses the outputs {used}, of which 0 is implemented"
        )
    return [_with(node, node.outputs[0])]


def _with(node: Node, output: str, op: str | None = None, inputs: tuple[str, ...] = ()) -> Node:
    return Node(
        op or node.op, inputs or node.inputs, (output,), node.attributes, node.name, node.opset
    )


def _split(node: Node, values: Values, constants: Constants) -> list[Node]:
    shape = values[node.inputs[0]].shape
    axis = int(node.attribute("axis", 0)) % len(shape)
    sizes = node.attribute("split")
    if sizes is None and len(node.inputs) > 1 and node.inputs[1]:
        if node.inputs[1] not in constants:
            raise GraphError(
                f"load_onnx: Split {node.name}: input 1 must be a constant; fold or fix it in the model"
            )
        sizes = constants[node.inputs[1]].tolist()
    count = len(node.outputs)
    if sizes is None:
        step = -(-shape[axis] // count)
        sizes = [max(0, min(step, shape[axis] - step * k)) for k in range(count)]
    if sum(sizes) != shape[axis] or len(sizes) != count:
        raise GraphError(
            f"load_onnx: Split {node.name}: {list(sizes)} does not divide {shape[axis]} elements among {count} outputs"
        )
    out, start = [], 0
    for o, size in zip(node.outputs, sizes):
        attributes = (("axes", (axis,)), ("ends", (start + int(size),)), ("starts", (start,)))
        if o:
            out.append(Node("Slice", node.inputs[:1], (o,), attributes, node.name, node.opset))
        start += int(size)
    return out


def _top_k(node: Node, values: Values, constants: Constants) -> list[Node]:
    """The places first; the values are gathered from there."""
    kept, places = node.outputs[0], node.outputs[1] if len(node.outputs) > 1 else ""
    places = places or f"{kept}.places"
    axis = (("axis", int(node.attribute("axis", -1))),)
    out = [_with(node, places, "TopKPlaces")]
    if kept:
        gathered = (node.inputs[0], places)
        out.append(Node("GatherElements", gathered, (kept,), axis, node.name, node.opset))
    return out


def _max_pool(node: Node, values: Values, constants: Constants) -> list[Node]:
    ops = ("MaxPool", "MaxPoolPlaces")
    return [_with(node, o, op) for o, op in zip(node.outputs, ops) if o]


def _dropout(node: Node, values: Values, constants: Constants) -> list[Node]:
    """Inference passes everything; so does training with a ratio of zero."""
    training = node.inputs[2] if len(node.inputs) > 2 else ""
    if training and not (training in constants and not constants[training].any()):
        ratio = node.inputs[1]
        if not (ratio in constants and not constants[ratio].any()) or training not in constants:
            raise GraphError(
                f"load_onnx: Dropout {node.name}: training is not implemented; export the model for inference"
            )
    kept, mask = node.outputs[0], node.outputs[1] if len(node.outputs) > 1 else ""
    out = [_with(node, kept)] if kept else []
    if mask:
        out.append(_with(node, mask, "DropoutMask", node.inputs[:1]))
    return out


def _inference(node: Node, values: Values, constants: Constants) -> list[Node]:
    """Before opset 14 the further outputs are for training, and nothing reads them."""
    if node.attribute("training_mode", 0):
        raise GraphError(
            f"load_onnx: {node.op} {node.name}: training is not implemented; export the model for inference"
        )
    return [_with(node, node.outputs[0])]


SEVERAL: dict[str, Callable[[Node, Values, Constants], list[Node]]] = {
    "BatchNormalization": _inference,
    "Dropout": _dropout,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MaxPool": _max_pool,
    "Split": _split,
    "TopK": _top_k,
}

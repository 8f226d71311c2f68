"""Small ONNX models, and ONNX Runtime as the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Arrays = Mapping[str, NDArray[Any]]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Arrays,
    outputs: Sequence[str],
    constants: Arrays | None = None,
    *,
    opset: int = 17,
    dims: Mapping[str, Sequence[int | str]] | None = None,
) -> onnx.ModelProto:
    """A model whose inputs have the shapes and types of the given arrays."""
    declared = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), (dims or {}).get(n, a.shape)
        )
        for n, a in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(o) for o in outputs]
    initialisers = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "test", declared, results, initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def single(
    op: str,
    inputs: Arrays,
    constants: Arrays | None = None,
    *,
    opset: int = 17,
    order: Sequence[str] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node; `order` names its operands, by default inputs then constants."""
    names = list(order) or [*inputs, *(constants or {})]
    node = helper.make_node(op, names, ["y"], **attributes)
    return model([node], inputs, ["y"], constants, opset=opset)


def run_peer(proto: onnx.ModelProto, inputs: Arrays) -> list[NDArray[Any]]:
    """The outputs by ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found: list[NDArray[Any]] = session.run(None, dict(inputs))
    return found

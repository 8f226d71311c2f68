"""The node tests that the ONNX standard ships: their models and what is expected of them."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.backend.test.case import node as cases_of_nodes
from onnx.backend.test.case.test_case import TestCase

__all__ = ["TestCase", "cases", "fixed", "model", "modules"]

# operands that hold shapes, axes or sizes: constants in every real model, inputs in these cases
STATIC: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "ConstantOfShape": (0,), "CumProd": (1,), "CumSum": (1,), "Dropout": (1, 2),
    "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2),
    "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,),
    "ReduceMin": (1,), "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip


def modules() -> list[str]:
    """The files of the cases, about one an operator."""
    found = [m.name for m in pkgutil.iter_modules(cases_of_nodes.__path__)]
    return [m for m in found if not m.startswith("_")]


def cases(module: str) -> list[TestCase]:
    """The cases of one file."""
    store: list[TestCase] = cases_of_nodes._NodeTestCases
    before = len(store)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some compute expectations by zero divided by zero
        importlib.import_module(f"{cases_of_nodes.__name__}.{module}")
    _FOUND.setdefault(module, store[before:])
    return _FOUND[module]


_FOUND: dict[str, list[TestCase]] = {}


def model(case: TestCase) -> onnx.ModelProto:
    """The model of a case."""
    assert case.model is not None
    return case.model


def fixed(
    case: TestCase, static: dict[str, tuple[int, ...]] = STATIC
) -> tuple[onnx.ModelProto, dict[str, NDArray[Any]], list[NDArray[Any]]]:
    """A case's model with its shapes as constants, the other inputs, and the expected outputs."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model(case))
    assert case.data_sets is not None
    inputs, expected = case.data_sets[0]
    arrays = {i.name: _array(a) for i, a in zip(proto.graph.input, inputs)}
    for n in proto.graph.node:
        for k in static.get(n.op_type, ()):
            if k < len(n.input) and n.input[k] in arrays:
                proto.graph.initializer.append(
                    onnx.numpy_helper.from_array(arrays.pop(n.input[k]), n.input[k])
                )
    for info in list(proto.graph.input):
        if info.name not in arrays:
            proto.graph.input.remove(info)
    return proto, arrays, [_array(e) for e in expected]


def _array(value: Any) -> NDArray[Any]:
    if isinstance(value, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(value))
    return np.asarray(value)

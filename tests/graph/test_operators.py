"""Every operator against ONNX Runtime: interpreted, and compiled with the default schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from tests.graph import build

from tilewright.codegen.target import Target
from tilewright.errors import GraphError
from tilewright.graph import compile_graph, fuse, interpret, load_onnx, simplify
from tilewright.graph.operators import INTERNAL, OPERATORS

rng = np.random.default_rng(0)


def f(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def u(*shape: int) -> NDArray[np.uint8]:
    return rng.integers(0, 256, shape).astype(np.uint8)


def b(*shape: int) -> NDArray[np.int8]:
    return rng.integers(-128, 128, shape).astype(np.int8)


def i(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


Case = tuple[onnx.ModelProto, dict[str, NDArray[Any]]]


def one(
    op: str,
    inputs: dict[str, NDArray[Any]],
    constants: dict[str, NDArray[Any]] | None = None,
    **kw: Any,
) -> Case:
    return build.single(op, inputs, constants, **kw), inputs


def scalar(value: float) -> NDArray[np.float32]:
    return np.array(value, np.float32)


def top_k(a: NDArray[Any], outputs: tuple[str, str], **kw: Any) -> Case:
    """The five greatest or least; the output y is compared."""
    node = onnx.helper.make_node("TopK", ["a", "k"], list(outputs), **kw)
    return build.model([node], {"a": a}, sorted(outputs, key=lambda o: o != "y"), {"k": i(5)}), {"a": a}  # fmt: skip


x4 = f(1, 6, 9, 11)
CASES: dict[str, Case] = {
    **{op: one(op, {"a": f(2, 3, 7), "b": f(3, 1)}) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max")},
    **{
        op: one(op, {"a": f(4, 33)})
        for op in ("Exp", "Erf", "Tanh", "Sigmoid", "Sin", "Cos", "Neg", "Abs", "Floor", "Ceil", "Round", "Relu", "Softplus", "HardSwish", "LeakyRelu", "Elu", "HardSigmoid", "IsNaN", "Identity")
    },
    **{op: one(op, {"a": np.abs(f(4, 9)) + 0.1}) for op in ("Sqrt", "Log", "Reciprocal")},
    "Pow square": one("Pow", {"a": f(3, 5)}, {"p": scalar(2.0)}),
    "Pow general": one("Pow", {"a": np.abs(f(3, 5)), "b": f(3, 5)}),
    "PRelu": one("PRelu", {"a": f(2, 3, 4)}, {"s": f(3, 1)}),
    "Gelu": one("Gelu", {"a": f(5, 7)}, opset=20),
    "Gelu tanh": one("Gelu", {"a": f(5, 7)}, opset=20, approximate="tanh"),
    "Clip inputs": one("Clip", {"a": f(3, 8)}, {"low": scalar(-0.5), "high": scalar(0.4)}),
    "Clip attributes": one("Clip", {"a": f(3, 8)}, opset=7, min=-0.5, max=0.25),
    "Where": one("Where", {"c": f(3, 4) > 0, "a": f(3, 4), "b": f(4)}),
    "Equal": one("Equal", {"a": i(1, 2, 3), "b": i(1, 5, 3)}),
    **{op: one(op, {"a": f(3, 4), "b": f(3, 4)}) for op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")},
    **{op: one(op, {"a": f(6) > 0, "b": f(6) > 0}) for op in ("And", "Or")},
    "Not": one("Not", {"a": f(6) > 0}),
    "Sum": one("Sum", {"a": f(3, 4), "b": f(4), "c": f(3, 1)}),
    "Cast": one("Cast", {"a": f(3, 5) * 4}, to=onnx.TensorProto.INT32),
    "Div int": one("Div", {"a": i(-7, 7, -8, 8), "b": i(2, -2, 3, 3)}),
    "BatchNormalization": one("BatchNormalization", {"a": x4}, {"s": f(6), "b": f(6), "m": f(6), "v": np.abs(f(6)) + 0.5}),
    "Conv": one("Conv", {"a": x4}, {"w": f(8, 6, 3, 3)}, pads=[1, 1, 1, 1]),
    "Conv bias strided": one("Conv", {"a": x4}, {"w": f(8, 6, 3, 3), "b": f(8)}, pads=[0, 1, 2, 1], strides=[2, 1]),
    "Conv dilated": one("Conv", {"a": x4}, {"w": f(4, 6, 3, 3)}, dilations=[2, 2]),
    "Conv grouped": one("Conv", {"a": x4}, {"w": f(8, 3, 3, 3)}, group=2, pads=[1, 1, 1, 1]),
    "Conv depthwise": one("Conv", {"a": x4}, {"w": f(6, 1, 5, 5)}, group=6, pads=[2, 2, 2, 2]),
    "Conv pointwise": one("Conv", {"a": x4}, {"w": f(10, 6, 1, 1)}),
    "Conv same": one("Conv", {"a": x4}, {"w": f(4, 6, 3, 3)}, auto_pad="SAME_UPPER", strides=[2, 2]),
    "Conv 1d": one("Conv", {"a": f(1, 5, 20)}, {"w": f(7, 5, 3)}, strides=[2]),
    "Conv 3d": one("Conv", {"a": f(1, 2, 5, 6, 7)}, {"w": f(3, 2, 3, 3, 3)}, pads=[1] * 6),
    "ConvTranspose": one("ConvTranspose", {"a": f(1, 6, 4, 5)}, {"w": f(6, 3, 4, 4)}, strides=[2, 2], pads=[1, 1, 1, 1]),
    "ConvTranspose odd": one("ConvTranspose", {"a": f(2, 4, 4, 5)}, {"w": f(4, 3, 3, 2), "b": f(3)}, strides=[2, 3], pads=[0, 1, 1, 0], output_padding=[1, 0]),
    "ConvTranspose grouped": one("ConvTranspose", {"a": f(1, 6, 3, 7)}, {"w": f(6, 2, 3, 3)}, group=3),
    "ConvTranspose size": one("ConvTranspose", {"a": f(1, 2, 4, 5)}, {"w": f(2, 3, 3, 3)}, strides=[3, 2], output_shape=[10, 9]),
    "ConvTranspose same": one("ConvTranspose", {"a": f(1, 2, 7)}, {"w": f(2, 3, 3)}, strides=[2], auto_pad="SAME_LOWER"),
    **{op: one(op, {"a": f(3, 17) * 2}) for op in ("Sign", "Softsign", "Tan", "Cosh", "Sinh", "Selu", "Celu", "ThresholdedRelu")},
    "Mish": one("Mish", {"a": f(3, 17) * 2}, opset=18),
    "Sign of integers": one("Sign", {"a": i(-3, 0, 5)}),
    "IsInf": one("IsInf", {"a": np.array([1, np.inf, -np.inf, np.nan], np.float32)}),
    "IsInf negative": one("IsInf", {"a": np.array([1, np.inf, -np.inf], np.float32)}, detect_positive=0),
    "Xor": one("Xor", {"a": f(6) > 0, "b": f(6) > 0}),
    "Mean": one("Mean", {"a": f(3, 4), "b": f(4), "c": f(3, 1)}),
    "Mod": one("Mod", {"a": i(-7, 7, -8, 8), "b": i(2, -2, 3, 3)}),
    "Mod like C": one("Mod", {"a": f(9) * 9, "b": f(9)}, fmod=1),
    "Mod like C of integers": one("Mod", {"a": i(-7, 7, -8, 8), "b": i(2, -2, 3, 3)}, fmod=1),
    "DequantizeLinear": one("DequantizeLinear", {"a": np.arange(12, dtype=np.uint8).reshape(3, 4)}, {"s": scalar(0.1), "z": np.array(3, np.uint8)}),
    "DequantizeLinear axis": one("DequantizeLinear", {"a": np.arange(-6, 6, dtype=np.int8).reshape(3, 4)}, {"s": np.abs(f(3)), "z": np.array([1, 0, -2], np.int8)}, axis=0),
    "QuantizeLinear": one("QuantizeLinear", {"a": f(5, 9) * 20}, {"s": scalar(0.11), "z": np.array(128, np.uint8)}),
    "QuantizeLinear axis": one("QuantizeLinear", {"a": f(3, 9) * 20}, {"s": np.abs(f(3)) + 0.05, "z": np.zeros(3, np.int8)}, axis=0),
    "MatMulInteger": one("MatMulInteger", {"a": u(5, 7), "z": np.array(9, np.uint8)}, {"b": b(7, 9), "zb": b(9)}, order=("a", "b", "z", "zb")),
    "ConvInteger": one("ConvInteger", {"a": u(1, 6, 7, 9)}, {"w": u(5, 6, 3, 3), "z": np.array(4, np.uint8), "zw": np.array(120, np.uint8)}, order=("a", "w", "z", "zw"), pads=[1, 1, 1, 1]),
    "QLinearMatMul": one("QLinearMatMul", {"a": u(5, 7)}, {"as": scalar(0.1), "az": np.array(130, np.uint8), "b": b(7, 9), "bs": np.abs(f(9)), "bz": b(9), "ys": scalar(3.0), "yz": np.array(99, np.uint8)}, order=("a", "as", "az", "b", "bs", "bz", "ys", "yz")),
    "QLinearConv": one("QLinearConv", {"a": u(1, 6, 7, 9)}, {"as": scalar(0.1), "az": np.array(130, np.uint8), "w": b(8, 3, 3, 3), "ws": np.abs(f(8)), "wz": np.zeros(8, np.int8), "ys": scalar(5.0), "yz": np.array(99, np.uint8), "c": i(*range(-4, 4)).astype(np.int32) * 300}, order=("a", "as", "az", "w", "ws", "wz", "ys", "yz", "c"), group=2, pads=[1, 1, 1, 1]),
    "Einsum": one("Einsum", {"a": f(2, 3, 5), "b": f(2, 5, 4)}, equation="bij,bjk->bik"),
    "Einsum implicit": one("Einsum", {"a": f(3, 5), "b": f(5, 4)}, equation="ij,jk"),
    "Einsum ellipsis": one("Einsum", {"a": f(2, 1, 3, 5), "b": f(1, 4, 5, 2)}, equation="...ij,...jk->...ik"),
    "Einsum ellipsis implicit": one("Einsum", {"a": f(2, 3, 5), "b": f(5, 4)}, equation="...ij,jk"),
    "Einsum diagonal": one("Einsum", {"a": f(3, 5, 5)}, equation="bii->bi"),
    "MatMul of a vector": one("MatMul", {"a": f(7), "b": f(3, 7, 4)}),
    "MatMul by a vector": one("MatMul", {"a": f(3, 4, 7), "b": f(7)}),
    "MatMul of vectors": one("MatMul", {"a": f(7), "b": f(7)}),
    "TopK": top_k(np.round(f(3, 17, 2)), ("y", "p"), axis=1),
    "TopK places": top_k(np.round(f(3, 17, 2)), ("v", "y"), axis=1),
    "TopK least": top_k(np.round(f(3, 17)), ("v", "y"), largest=0),
    "CumProd reverse": one("CumProd", {"a": f(3, 7)}, {"x": np.array(1, np.int64)}, reverse=1, exclusive=1, opset=26),
    "Hardmax": one("Hardmax", {"a": np.round(f(3, 9, 4))}, axis=1),
    "Hardmax 11": one("Hardmax", {"a": np.round(f(3, 9, 4))}, axis=1, opset=11),
    "LpPool": one("LpPool", {"a": x4}, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=3),
    "GlobalLpPool": one("GlobalLpPool", {"a": x4}),
    "MaxPool dilated": one("MaxPool", {"a": x4}, kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 1, 2, 0]),
    "AveragePool dilated": one("AveragePool", {"a": x4}, kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 1, 2, 0], opset=19),
    "ConvTranspose dilated": one("ConvTranspose", {"a": f(1, 2, 4, 5)}, {"w": f(2, 3, 3, 2)}, strides=[2, 1], dilations=[2, 3]),
    "Mod like C by infinity": one("Mod", {"a": f(4)}, {"b": np.array([np.inf, -np.inf, np.inf, 1], np.float32)}, fmod=1),
    "Div of bytes": one("Div", {"a": np.array([7, 200, 255], np.uint8), "b": np.array([2, 3, 129], np.uint8)}),
    "Mod int32": one("Mod", {"a": np.array([-7, 7, -8], np.int32), "b": np.array([2, -2, 3], np.int32)}),
    "Pow of integers": one("Pow", {"a": i(3, -2, 5), "b": i(4, 3, 0)}),
    "Softmax of several axes": one("Softmax", {"a": f(3, 4, 5)}, axis=1, opset=11),
    "Pad cut": one("Pad", {"a": f(3, 4)}, {"p": i(-1, 1, 1, -2)}),
    "Pad by data": one("Pad", {"a": f(3, 4), "v": scalar(2.5)}, {"p": i(0, 1, 2, 1)}, order=("a", "p", "v")),
    "Pad around": one("Pad", {"a": f(3, 4)}, {"p": i(0, 3, 1, 2)}, mode="wrap", opset=19),
    "SpaceToDepth bytes": one("SpaceToDepth", {"a": f(1, 3, 6, 4)}, blocksize=2),
    "CastLike": one("CastLike", {"a": f(3, 4) * 5, "b": i(1)}),
    "Shrink": one("Shrink", {"a": f(3, 4)}, lambd=0.5, bias=0.25),
    "MeanVarianceNormalization": one("MeanVarianceNormalization", {"a": x4}),
    "EyeLike": one("EyeLike", {"a": f(3, 4)}, k=1),
    **{f"ScatterElements {r}": one("ScatterElements", {"a": f(4, 5), "n": np.array([[0, -1, 2], [3, 3, 0]]), "u": f(2, 3)}, axis=0, opset=18, reduction=r) for r in ("add", "mul", "max", "min")},
    **{f"ScatterND {r}": one("ScatterND", {"a": f(4, 5), "n": np.array([[1], [-3], [0]]), "u": f(3, 5)}, opset=18, reduction=r) for r in ("add", "mul", "max", "min")},
    "Resize not larger": one("Resize", {"a": f(1, 2, 4, 5)}, {"n": i(9, 8)}, order=("a", "", "", "n"), mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_larger", opset=18),
    "Resize not smaller": one("Resize", {"a": f(1, 2, 4, 5)}, {"n": i(9, 8)}, order=("a", "", "", "n"), mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_smaller", opset=18),
    **{f"Resize nearest whole {r}": one("Resize", {"a": f(1, 2, 4, 5)}, {"s": np.array([1, 1, 2, 3], np.float32)}, order=("a", "", "s"), mode="nearest", nearest_mode=r)
       for r in ("floor", "ceil", "round_prefer_ceil")},
    "ReduceSum of no axes": one("ReduceSum", {"a": f(3, 4)}, {"axes": np.zeros(0, np.int64)}, noop_with_empty_axes=1),
    "ReduceSum of all axes": one("ReduceSum", {"a": f(3, 4)}, {"axes": np.zeros(0, np.int64)}),
    "Attention": one("Attention", {"q": f(2, 3, 4, 8), "k": f(2, 3, 6, 8), "v": f(2, 3, 6, 8), "m": f(4, 6)}, opset=23),
    "Einsum turned": one("Einsum", {"a": f(3, 5)}, equation="ij->ji"),
    "LRN": one("LRN", {"a": x4}, size=3, alpha=0.1, beta=0.5, bias=2.0),
    **{f"Reduce{r}": one(f"Reduce{r}", {"a": np.abs(f(3, 4, 5)) + 0.1}, axes=[0, 2]) for r in ("L1", "L2", "SumSquare", "LogSum", "LogSumExp")},
    "ReduceLogSumExp flat": one("ReduceLogSumExp", {"a": f(3, 4)}, axes=[1], keepdims=0),
    "ArgMax": one("ArgMax", {"a": np.round(f(3, 7, 4))}, axis=1),
    "ArgMin last": one("ArgMin", {"a": np.round(f(3, 7))}, axis=-1, keepdims=0, select_last_index=1),
    "InstanceNormalization": one("InstanceNormalization", {"a": x4}, {"s": f(6), "b": f(6)}),
    "GroupNormalization": one("GroupNormalization", {"a": x4}, {"s": f(6), "b": f(6)}, opset=21, num_groups=3),
    "LpNormalization": one("LpNormalization", {"a": f(3, 7)}, axis=1, p=2),
    "LpNormalization 1": one("LpNormalization", {"a": f(3, 7)}, axis=0, p=1),
    "DepthToSpace": one("DepthToSpace", {"a": f(1, 8, 2, 3)}, blocksize=2),
    "DepthToSpace columns": one("DepthToSpace", {"a": f(1, 8, 2, 3)}, blocksize=2, mode="CRD"),
    "SpaceToDepth": one("SpaceToDepth", {"a": f(2, 2, 4, 6)}, blocksize=2),
    "Trilu": one("Trilu", {"a": f(2, 4, 5)}, {"k": np.array(1, np.int64)}),
    "Trilu lower": one("Trilu", {"a": f(4, 4)}, upper=0),
    "CumSum": one("CumSum", {"a": f(3, 7)}, {"x": np.array(1, np.int64)}),
    "CumSum reverse": one("CumSum", {"a": f(3, 7)}, {"x": np.array(0, np.int64)}, reverse=1, exclusive=1),
    "GatherElements": one("GatherElements", {"a": f(4, 5), "n": np.array([[0, -1, 2], [3, 1, 0]])}, axis=0),
    "GatherND": one("GatherND", {"a": f(3, 4, 5), "n": np.array([[0, 1], [2, -1]])}),
    "GatherND batch": one("GatherND", {"a": f(2, 4, 5), "n": np.array([[1], [3]])}, batch_dims=1),
    "ScatterElements": one("ScatterElements", {"a": f(4, 5), "n": np.array([[0, -1, 2], [3, 1, 0]]), "u": f(2, 3)}, axis=0, opset=16),
    "ScatterND": one("ScatterND", {"a": f(4, 5), "n": np.array([[1], [-1]]), "u": f(2, 5)}, opset=16),
    "ScatterND deep": one("ScatterND", {"a": f(4, 5), "n": np.array([[[1, 2], [0, 0]], [[3, -1], [2, 2]]]), "u": f(2, 2)}, opset=16),
    "OneHot": one("OneHot", {"n": i(1, -1, 3, 9)}, {"d": np.array(4, np.int64), "v": np.array([0.5, 2.0], np.float32)}),
    "OneHot axis": one("OneHot", {"n": np.array([[1, 0], [2, 2]])}, {"d": np.array(3, np.int64), "v": np.array([0, 1], np.float32)}, axis=1),
    **{f"Resize nearest {c} {r}": one("Resize", {"a": f(1, 2, 4, 5)}, {"s": np.array([1, 1, 1.5, 2.2], np.float32)}, order=("a", "", "s"), mode="nearest", coordinate_transformation_mode=c, nearest_mode=r)
       for c in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel") for r in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")},
    **{f"Resize nearest twice {c}": one("Resize", {"a": f(1, 2, 4, 5)}, {"s": np.array([1, 1, 2, 3], np.float32)}, order=("a", "", "s"), mode="nearest", coordinate_transformation_mode=c, nearest_mode="floor" if c == "asymmetric" else "round_prefer_floor")
       for c in ("half_pixel", "asymmetric")},
    **{f"Resize {m} {c}": one("Resize", {"a": f(1, 2, 4, 5)}, {"n": i(1, 2, 7, 3)}, order=("a", "", "", "n"), mode=m, coordinate_transformation_mode=c)
       for m in ("linear", "cubic") for c in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")},
    "Upsample": one("Upsample", {"a": f(1, 2, 3, 4)}, {"s": np.array([1, 1, 2, 2], np.float32)}, opset=9),
    "MatMul": one("MatMul", {"a": f(2, 3, 5, 7), "b": f(3, 7, 4)}),
    "Gemm": one("Gemm", {"a": f(5, 7)}, {"w": f(9, 7), "c": f(9)}, transB=1, alpha=0.5, beta=2.0),
    "MaxPool": one("MaxPool", {"a": x4}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "MaxPool ceil": one("MaxPool", {"a": x4}, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "AveragePool": one("AveragePool", {"a": x4}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "AveragePool padded": one("AveragePool", {"a": x4}, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    "GlobalAveragePool": one("GlobalAveragePool", {"a": x4}),
    "GlobalMaxPool": one("GlobalMaxPool", {"a": x4}),
    **{f"Reduce{r}": one(f"Reduce{r}", {"a": f(3, 4, 5)}, axes=[0, 2]) for r in ("Max", "Min", "Prod", "Mean")},
    "ReduceSum": one("ReduceSum", {"a": f(3, 4, 5)}, {"axes": i(1)}, keepdims=0),
    "ReduceMean all": one("ReduceMean", {"a": f(3, 4)}),
    "ReduceMean 18": one("ReduceMean", {"a": f(3, 4, 5)}, {"axes": i(-1)}, opset=18),
    "Softmax": one("Softmax", {"a": f(3, 17)}),
    "Softmax axis": one("Softmax", {"a": f(3, 17, 2)}, axis=1),
    "Softmax 11": one("Softmax", {"a": f(3, 17)}, opset=11),
    "LogSoftmax": one("LogSoftmax", {"a": f(3, 17)}),
    "LayerNormalization": one("LayerNormalization", {"a": f(2, 3, 24)}, {"s": f(24), "b": f(24)}, axis=-1),
    "RMSNormalization": one("RMSNormalization", {"a": f(2, 3, 24)}, {"s": f(24)}, opset=23),
    "Transpose": one("Transpose", {"a": f(3, 4, 5)}, perm=[2, 0, 1]),
    "Reshape": one("Reshape", {"a": f(3, 4, 5)}, {"s": i(0, -1)}),
    "Flatten": one("Flatten", {"a": f(3, 4, 5)}, axis=2),
    "Squeeze": one("Squeeze", {"a": f(3, 1, 5)}, {"axes": i(1)}),
    "Squeeze 11": one("Squeeze", {"a": f(3, 1, 5)}, opset=11, axes=[1]),
    "Unsqueeze": one("Unsqueeze", {"a": f(3, 5)}, {"axes": i(0, -1)}),
    "Concat": one("Concat", {"a": f(2, 3), "b": f(2, 5)}, axis=1),
    "Slice": one("Slice", {"a": f(6, 9)}, {"s": i(1, -1), "e": i(5, -8), "x": i(0, 1), "t": i(2, -2)}),
    "Gather": one("Gather", {"a": f(6, 5), "n": i(0, -1, 3)}, axis=0),
    "Gather axis": one("Gather", {"a": f(6, 5), "n": i(1, 4)}, axis=1),
    "Expand": one("Expand", {"a": f(3, 1)}, {"s": i(2, 3, 4)}),
    "Tile": one("Tile", {"a": f(2, 3)}, {"t": i(2, 3)}),
    "Pad": one("Pad", {"a": f(3, 4)}, {"p": i(0, 1, 2, 1), "v": scalar(1.5)}),
    "Pad reflect": one("Pad", {"a": f(3, 4)}, {"p": i(1, 1, 1, 2)}, mode="reflect"),
    "Pad edge": one("Pad", {"a": f(3, 4)}, {"p": i(1, 0, 0, 2)}, mode="edge"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_agrees_with_onnx_runtime(name: str) -> None:
    proto, inputs = CASES[name]
    expected = build.run_peer(proto, inputs)[0]
    graph = load_onnx(proto)
    compiled = compile_graph(fuse(simplify(graph)), Target.host(2))
    for found in (interpret(graph, inputs)["y"], compiled.run(inputs)["y"]):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_every_operator_has_a_case() -> None:
    tried = {n.op_type for proto, _ in CASES.values() for n in proto.graph.node}
    assert OPERATORS.keys() - INTERNAL <= tried


def test_split_becomes_slices() -> None:
    a = f(6, 4)
    node = onnx.helper.make_node("Split", ["a", "sizes"], ["p", "q"], axis=0)
    proto = build.model([node], {"a": a}, ["p", "q"], {"sizes": i(2, 4)})
    graph = load_onnx(proto)
    found = compile_graph(fuse(graph), Target.host(1)).run({"a": a})
    np.testing.assert_array_equal(found["p"], a[:2])
    np.testing.assert_array_equal(found["q"], a[2:])


@pytest.mark.parametrize(
    ("op", "index", "more"),
    [
        ("Gather", [[7, -9], [0, 3]], {}),
        ("GatherElements", [[7, -9], [0, 3]], {"axis": 0}),
        ("GatherND", [[7], [-9]], {}),
    ],
)
def test_an_index_outside_reads_the_nearest_place_and_nothing_else(
    op: str, index: list[list[int]], more: dict[str, Any]
) -> None:
    x, n = f(4, 2), np.array(index)
    graph = load_onnx(build.single(op, {"a": x, "n": n}, **more))
    compiled = compile_graph(fuse(simplify(graph)), Target.host(1))
    found = compiled.run({"a": x, "n": n})["y"]
    inside = np.where(n < 0, n + 4, n).clip(0, 3)
    if op == "GatherElements":
        expected = np.take_along_axis(x, inside, 0)
    else:
        expected = x[inside if op == "Gather" else inside[:, 0]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("op", "index", "more"),
    [
        ("Gather", [1, 4], {}),
        ("GatherElements", [[0, 1], [-5, 0]], {"axis": 0}),
        ("GatherND", [[1, 0], [0, 2]], {}),
    ],
)
def test_a_constant_index_outside_is_refused(op: str, index: Any, more: dict[str, Any]) -> None:
    proto = build.single(op, {"a": f(4, 2)}, {"n": np.array(index)}, **more)
    outside, size = {"Gather": (4, 4), "GatherElements": (-5, 4), "GatherND": (2, 2)}[op]
    with pytest.raises(GraphError, match=rf"index {outside} at \[.*\] lies outside of a dimension of {size} elements"):  # fmt: skip
        load_onnx(proto)


def run_both(proto: onnx.ModelProto, inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    graph = load_onnx(proto)
    compiled = compile_graph(fuse(simplify(graph)), Target.host(1))
    return [interpret(graph, inputs)["y"], compiled.run(inputs)["y"]]


def test_a_log_sum_exp_of_infinities_is_infinite() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [-np.inf, 2], [np.nan, 0]], np.float32)
    proto = build.single("ReduceLogSumExp", {"a": x}, axes=[1], keepdims=0)
    for found in run_both(proto, {"a": x}):
        np.testing.assert_array_equal(found, np.array([-np.inf, np.inf, 2, np.nan], np.float32))


def test_before_opset_21_a_group_norm_has_one_scale_a_group() -> None:
    x, scale, bias = f(2, 6, 5), f(3), f(3)
    constants = {"s": scale, "b": bias}
    proto = build.single("GroupNormalization", {"a": x}, constants, opset=18, num_groups=3)
    parts = x.reshape(2, 3, -1).astype(np.float64)
    mean, variance = parts.mean(-1, keepdims=True), parts.var(-1, keepdims=True)
    expected = (parts - mean) / np.sqrt(variance + 1e-5) * scale[:, None] + bias[:, None]
    for found in run_both(proto, {"a": x}):
        np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_counts_a_nan_as_the_greatest_and_takes_equal_ones_in_order(largest: int) -> None:
    x = np.array([[1, np.nan, 2, 1, np.nan, 2]], np.float32)
    nodes = [onnx.helper.make_node("TopK", ["a", "k"], ["v", "y"], largest=largest)]
    proto = build.model(nodes, {"a": x}, ["v", "y"], {"k": i(6)})
    expected = [[1, 4, 2, 5, 0, 3]] if largest else [[0, 3, 2, 5, 1, 4]]
    for found in run_both(proto, {"a": x}):
        np.testing.assert_array_equal(found, expected)


def test_the_places_of_maxima_agree_with_onnx_runtime() -> None:
    for order in (0, 1):
        node = onnx.helper.make_node(
            "MaxPool", ["a"], ["m", "y"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], storage_order=order
        )  # fmt: skip
        x = np.round(f(2, 3, 7, 6))
        proto = build.model([node], {"a": x}, ["m", "y"])
        expected = build.run_peer(proto, {"a": x})[1]
        for found in run_both(proto, {"a": x}):
            np.testing.assert_array_equal(found, expected)

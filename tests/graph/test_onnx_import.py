"""Reading models: shapes, constants, and clear refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tests.graph import build

from tilewright.errors import GraphError, UnsupportedOperatorError
from tilewright.graph import interpret, load_onnx

A = np.ones((2, 3), np.float32)


def test_one_error_names_every_unsupported_node() -> None:
    nodes = [
        helper.make_node("NonZero", ["a"], ["b"], name="first"),
        helper.make_node("Relu", ["a"], ["c"]),
        helper.make_node("FusedThing", ["c"], ["d"], name="second", domain="com.example"),
    ]
    proto = build.model(nodes, {"a": A}, ["d"])
    proto.opset_import.append(helper.make_opsetid("com.example", 3))
    with pytest.raises(UnsupportedOperatorError) as error:
        load_onnx(proto)
    text = str(error.value)
    assert "2 nodes use operators that are not implemented" in text
    assert "NonZero (domain ai.onnx, version 17) at node first" in text
    assert "FusedThing (domain com.example, version 3) at node second" in text


def test_shape_arithmetic_is_computed_on_the_way() -> None:
    nodes = [
        helper.make_node("Shape", ["a"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "minus"], ["t"], axis=0),
        helper.make_node("Reshape", ["a", "t"], ["y"]),
    ]
    constants = {"zero": np.array([0], np.int64), "minus": np.array([-1], np.int64)}
    graph = load_onnx(build.model(nodes, {"a": np.ones((2, 3, 4), np.float32)}, ["y"], constants))
    assert [n.op for n in graph.nodes] == ["Reshape"]
    assert graph.values["y"].shape == (2, 12)


def test_an_open_shape_must_be_given() -> None:
    proto = build.model(
        [helper.make_node("Relu", ["a"], ["y"])], {"a": A}, ["y"], dims={"a": ("n", "width")}
    )
    with pytest.raises(
        GraphError, match=r"input a has the open shape \[n, width\]; give it, e\.g\. a="
    ):
        load_onnx(proto)
    assert load_onnx(proto, {"a": (4, 5)}).values["y"].shape == (4, 5)


def test_an_open_first_dimension_is_a_batch_of_one() -> None:
    proto = build.model(
        [helper.make_node("Relu", ["a"], ["y"])], {"a": A}, ["y"], dims={"a": ("n", 3)}
    )
    assert load_onnx(proto).values["y"].shape == (1, 3)


def test_a_shape_that_contradicts_the_model_is_refused() -> None:
    proto = build.model([helper.make_node("Relu", ["a"], ["y"])], {"a": A}, ["y"])
    with pytest.raises(
        GraphError, match=r"input a has shape \[2, 3\] in the model, which \[2, 4\] does not fit"
    ):
        load_onnx(proto, {"a": (2, 4)})
    with pytest.raises(GraphError, match=r"no input named 'b'; the inputs are a"):
        load_onnx(proto, {"b": (2, 3)})


def test_a_missing_or_foreign_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file"):
        load_onnx(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("hello, this is no model")
    with pytest.raises(GraphError, match="not an ONNX model"):
        load_onnx(tmp_path / "text.onnx")


def test_a_data_dependent_shape_is_refused() -> None:
    node = helper.make_node("Reshape", ["a", "s"], ["y"])
    proto = build.model([node], {"a": A, "s": np.array([3, 2], np.int64)}, ["y"])
    with pytest.raises(GraphError, match="input 1 must be a constant"):
        load_onnx(proto)


def test_a_constant_condition_takes_its_branch() -> None:
    result = [helper.make_empty_tensor_value_info("r")]
    scale = helper.make_tensor("two", 1, [1], [2.0])
    double = helper.make_graph([helper.make_node("Mul", ["a", "two"], ["r"])], "t", [], result, [scale])  # fmt: skip
    negate = helper.make_graph([helper.make_node("Neg", ["a"], ["r"])], "e", [], result)
    branches = {"then_branch": double, "else_branch": negate}
    choice = helper.make_node("If", ["c"], ["y"], name="choice", **branches)
    for taken, expected in ((True, 2 * A), (False, -A)):
        proto = build.model([choice], {"a": A}, ["y"], {"c": np.array(taken)})
        np.testing.assert_array_equal(interpret(load_onnx(proto), {"a": A})["y"], expected)
    with pytest.raises(GraphError, match=r"If choice depends on data \(c\)"):
        load_onnx(build.model([choice], {"a": A, "c": np.array(True)}, ["y"]))


def test_an_input_without_elements_is_refused() -> None:
    empty = np.ones((2, 0), np.float32)
    proto = build.model([helper.make_node("Relu", ["a"], ["y"])], {"a": empty}, ["y"])
    with pytest.raises(GraphError, match=r"input a has the shape \[2, 0\], which holds no elements"):  # fmt: skip
        load_onnx(proto)

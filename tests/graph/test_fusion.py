"""Which nodes share a kernel, and that fused graphs compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from tests.graph import build

from tilewright.codegen.target import Target
from tilewright.graph import FusedGraph, compile_graph, fuse, load_onnx, simplify
from tilewright.graph.memory import plan_memory

rng = np.random.default_rng(0)
node = helper.make_node


def f(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def check(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, NDArray[Any]],
    outputs: list[str],
    **constants: Any,
) -> FusedGraph:
    """Fuse, compile, compare with ONNX Runtime."""
    proto = build.model(nodes, inputs, outputs, constants)
    fused = fuse(simplify(load_onnx(proto)))
    found = compile_graph(fused, Target.host(2)).run(inputs)
    for name, expected in zip(outputs, build.run_peer(proto, inputs)):
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=2e-6)
    return fused


def names(fused: FusedGraph) -> list[str]:
    return ["+".join(n.op for n in g.nodes) for g in fused.groups]


def test_bias_activation_and_residual_join_the_convolution() -> None:
    nodes = [
        node("Conv", ["a", "w"], ["c"]),
        node("Add", ["c", "r"], ["d"]),
        node("Relu", ["d"], ["y"]),
    ]
    fused = check(nodes, {"a": f(1, 3, 6, 6), "r": f(1, 4, 4, 4)}, ["y"], w=f(4, 3, 3, 3))
    assert names(fused) == ["Conv+Add+Relu"]


def test_a_diamond_of_elementwise_operators_is_one_kernel() -> None:
    nodes = [
        node("MatMul", ["a", "w"], ["c"]),
        node("Add", ["c", "three"], ["d"]),
        node("Clip", ["d", "low", "high"], ["e"]),
        node("Mul", ["c", "e"], ["y"]),
    ]
    fused = check(
        nodes,
        {"a": f(5, 7)},
        ["y"],
        w=f(7, 9),
        three=np.float32(3),
        low=np.float32(0),
        high=np.float32(6),
    )
    assert names(fused) == ["MatMul+Add+Clip+Mul"]


def test_a_value_that_others_read_leaves_its_kernel() -> None:
    nodes = [
        node("MatMul", ["a", "w"], ["c"]),
        node("Relu", ["c"], ["d"]),
        node("MatMul", ["c", "d"], ["y"]),
    ]
    fused = check(nodes, {"a": f(5, 5)}, ["y"], w=f(5, 5))
    assert names(fused) == ["MatMul", "Relu", "MatMul"]


def test_an_operand_made_from_the_group_itself_is_not_a_cycle() -> None:
    nodes = [
        node("Relu", ["a"], ["b"]),
        node("GlobalAveragePool", ["b"], ["g"]),
        node("Mul", ["b", "g"], ["y"]),
    ]
    fused = check(nodes, {"a": f(1, 4, 5, 5)}, ["y"])
    assert names(fused) == ["Relu", "GlobalAveragePool", "Mul"]


def test_a_pointwise_convolution_runs_on_joined_dimensions() -> None:
    nodes = [node("Conv", ["a", "w"], ["c"]), node("Mul", ["c", "s"], ["y"])]
    fused = check(nodes, {"a": f(1, 6, 5, 7), "s": f(1, 8, 1, 1)}, ["y"], w=f(8, 6, 1, 1))
    assert fused.groups[0].workload.outputs[0].shape == (1, 8, 35)


def test_elementwise_kernels_run_on_joined_dimensions() -> None:
    fused = check([node("Add", ["a", "b"], ["y"])], {"a": f(2, 3, 4), "b": f(2, 3, 4)}, ["y"])
    assert fused.groups[0].workload.outputs[0].shape == (24,)


def test_views_are_no_kernels() -> None:
    nodes = [
        node("Relu", ["a"], ["b"]),
        node("Reshape", ["b", "s"], ["c"]),
        node("Exp", ["c"], ["y"]),
    ]
    fused = check(nodes, {"a": f(2, 6)}, ["y"], s=np.array([3, 4], np.int64))
    assert names(fused) == ["Relu", "Exp"]
    assert fused.root("c") == "b"


def test_an_output_may_be_a_view_an_input_or_a_constant() -> None:
    nodes = [
        node("Reshape", ["a", "s"], ["y"]),
        node("Identity", ["a"], ["z"]),
        node("Identity", ["c"], ["w"]),
    ]
    check(nodes, {"a": f(2, 6)}, ["y", "z", "w"], s=np.array([3, 4], np.int64), c=f(2))


def test_the_same_work_is_one_task_with_a_count() -> None:
    nodes = [node("MatMul", ["a", "v"], ["b"]), node("MatMul", ["b", "w"], ["y"])]
    fused = check(nodes, {"a": f(5, 5)}, ["y"], v=f(5, 5), w=f(5, 5))
    assert [count for _, count in fused.weights()] == [2]


def test_memory_is_reused_and_live_values_do_not_overlap() -> None:
    nodes = [node("MatMul", [f"x{n}" if n else "a", "w"], [f"x{n + 1}"]) for n in range(6)]
    fused = check(nodes, {"a": f(16, 16)}, ["x6"], w=f(16, 16))
    plan = plan_memory(fused)
    assert plan.n_bytes <= 3 * (16 * 16 * 4 + 64)
    assert plan.reuse > 2


def test_a_mask_that_lacks_a_dimension_in_the_middle_keeps_the_dimensions_apart() -> None:
    nodes = [node("Add", ["a", "b"], ["s"]), node("Relu", ["s"], ["y"])]
    check(nodes, {"a": f(2, 1, 4, 6), "b": f(4, 6)}, ["y"])


def test_an_expanded_operand_keeps_the_dimensions_apart() -> None:
    nodes = [node("Expand", ["a", "s"], ["e"]), node("Mul", ["e", "e"], ["y"])]
    check(nodes, {"a": f(2, 3, 1, 6, 8)}, ["y"], s=np.array([2, 3, 3, 6, 8], np.int64))


def test_a_scale_for_each_place_of_an_axis_stays_on_its_axis() -> None:
    nodes = [node("QuantizeLinear", ["a", "s", "z"], ["y"], axis=1)]
    scale, zero = np.array([0.1, 0.2, 0.4, 0.8], np.float32), np.zeros(4, np.int8)
    check(nodes, {"a": f(3, 4, 4)}, ["y"], s=scale, z=zero)

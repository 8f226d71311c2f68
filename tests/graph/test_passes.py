"""Each pass alone: what it changes, and that the outputs stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from tests.graph import build

from tilewright.graph import Graph, interpret, load_onnx
from tilewright.graph.passes import (
    decompose_batch_norm,
    eliminate_common,
    eliminate_dead,
    fold_constants,
    fold_into_weights,
    simplify,
    simplify_algebra,
)

rng = np.random.default_rng(0)
node = helper.make_node


def f(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def read(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, NDArray[Any]],
    outputs: list[str],
    **constants: Any,
) -> Graph:
    return load_onnx(build.model(nodes, inputs, outputs, constants))


def same(before: Graph, after: Graph, inputs: dict[str, NDArray[Any]]) -> None:
    a, b = interpret(before, inputs), interpret(after, inputs)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=2e-5, atol=1e-6)


def test_dead_nodes_and_constants_go() -> None:
    x = {"a": f(3)}
    graph = read(
        [node("Relu", ["a"], ["y"]), node("Exp", ["a"], ["z"]), node("Add", ["z", "c"], ["w"])],
        x,
        ["y"],
        c=f(3),
    )
    after = eliminate_dead(graph)
    assert ops(after) == ["Relu"] and not after.constants
    same(graph, after, x)


def test_equal_nodes_become_one() -> None:
    x = {"a": f(3)}
    graph = read(
        [node("Exp", ["a"], ["p"]), node("Exp", ["a"], ["q"]), node("Add", ["p", "q"], ["y"])],
        x,
        ["y"],
    )
    after = eliminate_common(graph)
    assert ops(after) == ["Exp", "Add"]
    same(graph, after, x)


def test_nodes_of_constants_are_computed() -> None:
    x = {"a": f(3)}
    graph = read([node("Add", ["a", "c"], ["y"])], x, ["y"], c=f(3))
    more = graph.with_nodes([*graph.nodes]).rename({})
    assert ops(fold_constants(more)) == ["Add"]
    nodes = [node("Mul", ["c", "d"], ["e"]), node("Add", ["a", "e"], ["y"])]
    assert ops(read(nodes, x, ["y"], c=f(3), d=f(3))) == ["Add"]


def test_what_does_nothing_is_removed() -> None:
    x = {"a": f(2, 3)}
    nodes = [
        node("Identity", ["a"], ["b"]),
        node("Add", ["b", "zero"], ["c"]),
        node("Mul", ["one", "c"], ["d"]),
        node("Relu", ["d"], ["e"]),
        node("Relu", ["e"], ["g"]),
        node("Div", ["g", "four"], ["y"]),
    ]
    graph = read(
        nodes, x, ["y"], zero=np.float32(0), one=np.ones((1, 3), np.float32), four=np.float32(4)
    )
    after = simplify(graph)
    assert ops(after) == ["Relu", "Mul"]
    same(graph, after, x)


def test_a_broadcasting_zero_is_not_removed() -> None:
    x = {"a": f(3)}
    graph = read([node("Add", ["a", "zero"], ["y"])], x, ["y"], zero=np.zeros((2, 3), np.float32))
    assert ops(simplify(graph)) == ["Add"]


def test_views_and_transposes_join() -> None:
    x = {"a": f(2, 3, 4)}
    nodes = [
        node("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
        node("Transpose", ["b"], ["c"], perm=[1, 0, 2]),
        node("Reshape", ["c", "s"], ["d"]),
        node("Unsqueeze", ["d", "axes"], ["e"]),
        node("Relu", ["e"], ["y"]),
    ]
    graph = read(nodes, x, ["y"], s=np.array([6, 4], np.int64), axes=np.array([0], np.int64))
    after = simplify_algebra(graph)
    assert ops(eliminate_dead(after)) == ["Reshape", "Relu"]
    same(graph, after, x)


def test_a_transpose_of_ones_is_a_view() -> None:
    x = {"a": f(1, 3, 1, 5)}
    graph = read([node("Transpose", ["a"], ["y"], perm=[0, 2, 1, 3])], x, ["y"])
    assert ops(simplify(graph)) == ["Reshape"]
    same(graph, simplify(graph), x)


def test_batch_norm_goes_into_the_convolution() -> None:
    x = {"a": f(1, 3, 6, 6)}
    nodes = [
        node("Conv", ["a", "w", "cb"], ["c"]),
        node("BatchNormalization", ["c", "s", "b", "m", "v"], ["d"]),
        node("Mul", ["d", "scale"], ["e"]),
        node("Relu", ["e"], ["y"]),
    ]
    constants = {
        "w": f(4, 3, 3, 3),
        "cb": f(4),
        "s": f(4),
        "b": f(4),
        "m": f(4),
        "v": np.abs(f(4)) + 0.3,
        "scale": f(1, 4, 1, 1),
    }
    graph = read(nodes, x, ["y"], **constants)
    after = simplify(graph)
    assert ops(after) == ["Conv", "Relu"]
    same(graph, after, x)


def test_a_convolution_with_other_readers_keeps_its_weights() -> None:
    x = {"a": f(1, 3, 6, 6)}
    nodes = [
        node("Conv", ["a", "w"], ["c"]),
        node("Mul", ["c", "k"], ["d"]),
        node("Add", ["c", "d"], ["y"]),
    ]
    graph = read(nodes, x, ["y"], w=f(4, 3, 3, 3), k=f(1, 4, 1, 1))
    after = fold_into_weights(graph)
    assert ops(after) == ["Conv", "Mul", "Add"]


def test_batch_norm_alone_becomes_product_and_sum() -> None:
    x = {"a": f(2, 4, 5)}
    constants = {"s": f(4), "b": f(4), "m": f(4), "v": np.abs(f(4)) + 0.3}
    graph = read(
        [node("BatchNormalization", ["a", "s", "b", "m", "v"], ["y"])], x, ["y"], **constants
    )
    after = decompose_batch_norm(graph)
    assert ops(after) == ["Mul", "Add"]
    same(graph, after, x)


def test_outputs_keep_their_names() -> None:
    x = {"a": f(3)}
    graph = read(
        [node("Identity", ["a"], ["y"]), node("Add", ["y", "zero"], ["z"])],
        x,
        ["y", "z"],
        zero=np.float32(0),
    )
    after = simplify(graph)
    assert after.outputs == ("y", "z")
    same(graph, after, x)

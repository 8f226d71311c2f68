"""Integer operators against ONNX Runtime on random cases: equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper
from tests.graph import build

from tilewright.codegen.target import Target
from tilewright.errors import GraphError
from tilewright.graph import compile_graph, fuse, interpret, load_onnx, simplify
from tilewright.graph.passes import signed_weights
from tilewright.schedule.rules.dotplan import may_use_dots

HOST = Target.host(1)
Arrays = dict[str, NDArray[Any]]
Case = tuple[Arrays, Arrays, tuple[str, ...], dict[str, Any]]


class Draw:
    """Random arrays of a case."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def bytes(self, dtype: str, *shape: int) -> NDArray[Any]:
        least = np.iinfo(dtype).min
        return np.asarray(self.rng.integers(0, 256, shape) + least).astype(dtype)

    def scale(self, size: float, *shape: int) -> NDArray[np.float32]:
        return np.asarray(self.rng.uniform(0.2, 1.0, shape) * size).astype(np.float32)

    def pick(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def sizes(self, n: int, most: int) -> list[int]:
        return [int(v) for v in self.rng.integers(1, most + 1, n)]

    def types(self) -> tuple[str, str]:
        """Those that ONNX Runtime multiplies."""
        return self.pick(("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"))  # type: ignore[no-any-return]


def matmul_integer(d: Draw) -> Case:
    a, b = d.types()
    m, n, k = d.sizes(3, 40)
    batch = d.pick((), (3,))
    constants = {"b": d.bytes(b, k, n)}
    order = ["a", "b"]
    inputs = {"a": d.bytes(a, *batch, m, k)}
    if d.pick(True, False):
        inputs["za"] = d.bytes(a)
        constants["zb"] = d.bytes(b, *d.pick((), (n,)))
        order += ["za", "zb"]
    elif d.pick(True, False):
        constants["zb"] = d.bytes(b)
        order += ["", "zb"]
    return inputs, constants, tuple(order), {}


def qlinear_matmul(d: Draw) -> Case:
    a, b = d.types()
    m, n, k = d.sizes(3, 40)
    per = d.pick((), (n,))
    constants = {
        "as": d.scale(0.02), "az": d.bytes(a), "bs": d.scale(0.02, *per), "bz": d.bytes(b, *per),
        "ys": d.scale(1.0), "yz": d.bytes(a),
    }  # fmt: skip
    inputs = {"a": d.bytes(a, m, k)}
    (constants if d.pick(True, False) else inputs)["b"] = d.bytes(b, k, n)
    return inputs, constants, ("a", "as", "az", "b", "bs", "bz", "ys", "yz"), {}


def window(d: Draw) -> dict[str, Any]:
    return {
        "strides": d.sizes(2, 2), "pads": [int(v) for v in d.rng.integers(0, 2, 4)],
        "dilations": d.pick([1, 1], [1, 2]),
    }  # fmt: skip


def conv_integer(d: Draw) -> Case:
    c, o = d.sizes(2, 9)
    h, w = (s + 5 for s in d.sizes(2, 8))
    constants = {"w": d.bytes("uint8", o, c, 3, 3), "wz": d.bytes("uint8"), "az": d.bytes("uint8")}
    return {"a": d.bytes("uint8", 1, c, h, w)}, constants, ("a", "w", "az", "wz"), window(d)


def qlinear_conv(d: Draw) -> Case:
    a, b = d.types()
    groups = d.pick(1, 1, 2)
    c, o = (v * groups for v in d.sizes(2, 9))
    h, w = (s + 5 for s in d.sizes(2, 8))
    per = d.pick((), (o,)) if b == "int8" else ()
    zero = d.bytes(b) if not per else np.zeros(per, b)  # ONNX Runtime wants equal ones
    constants = {
        "as": d.scale(0.02), "az": d.bytes(a), "w": d.bytes(b, o, c // groups, 3, 3), "ws": d.scale(0.02, *per),
        "wz": zero, "ys": d.scale(2.0), "yz": d.bytes(a), "c": d.rng.integers(-9999, 9999, o).astype(np.int32),
    }  # fmt: skip
    order = ("a", "as", "az", "w", "ws", "wz", "ys", "yz", *d.pick((), ("c",)))
    used = {k: v for k, v in constants.items() if k in order}
    return {"a": d.bytes(a, 1, c, h, w)}, used, order, {"group": groups, **window(d)}


CASES: dict[str, Callable[[Draw], Case]] = {
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
}


def check(op: str, seed: int) -> None:
    inputs, constants, order, attributes = CASES[op](Draw(seed))
    proto = build.single(op, inputs, constants, order=order, **attributes)
    expected = build.run_peer(proto, inputs)[0]
    graph = load_onnx(proto)
    compiled = compile_graph(fuse(simplify(graph)), HOST, draft=seed % 3 > 0)
    for found in (interpret(graph, inputs)["y"], compiled.run(inputs)["y"]):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"{op}, seed {seed}")


@pytest.mark.parametrize("op", CASES)
@given(st.integers(0, 1 << 30))
@settings(max_examples=12, deadline=None)
def test_random_integer_products_equal_those_of_onnx_runtime(op: str, seed: int) -> None:
    check(op, seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", CASES)
@given(st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_many_random_integer_products_equal_those_of_onnx_runtime(op: str, seed: int) -> None:
    check(op, seed)


@pytest.mark.parametrize(
    "x",
    [
        np.linspace(-3, 5, 77, dtype=np.float32).reshape(7, 11),
        np.linspace(2, 5, 12, dtype=np.float32).reshape(3, 4),
        -np.linspace(2, 5, 12, dtype=np.float32),
        np.zeros((3, 3), np.float32),
        np.random.default_rng(0).standard_normal((33, 65)).astype(np.float32),
    ],
)
def test_data_are_quantised_as_onnx_runtime_does(x: NDArray[np.float32]) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    proto = build.model([node], {"x": x}, ["y", "s", "z"])
    expected = dict(zip("ysz", build.run_peer(proto, {"x": x})))
    graph = load_onnx(proto)
    compiled = compile_graph(fuse(simplify(graph)), HOST)
    for found in (interpret(graph, {"x": x}), compiled.run({"x": x})):
        for name, array in expected.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            np.testing.assert_array_equal(found[name], array)


def test_a_dynamically_quantised_layer_is_a_product_of_bytes_and_its_epilogue() -> None:
    d = Draw(0)
    x = d.rng.standard_normal((5, 33)).astype(np.float32)
    constants = {"w": d.bytes("uint8", 33, 18), "wz": np.array(128, np.uint8), "ws": d.scale(0.1), "c": d.scale(1.0, 18)}  # fmt: skip
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Mul", ["s", "ws"], ["both"]),
        helper.make_node("Mul", ["f", "both"], ["p"]),
        helper.make_node("Add", ["p", "c"], ["y"]),
    ]
    proto = build.model(nodes, {"x": x}, ["y"], constants)
    fused = fuse(simplify(load_onnx(proto)))
    products = [g for g in fused.groups if g.workload.name.startswith("matmulinteger")]
    assert [g.workload.name for g in products] == ["matmulinteger[5x33,33x18]+cast+mul+add"]
    assert may_use_dots(products[0].workload)
    types = {str(p.dtype) for p in products[0].workload.inputs if len(p.shape) == 2}
    assert types == {"uint8", "int8"}
    found = compile_graph(fused, HOST).run({"x": x})["y"]
    np.testing.assert_allclose(found, build.run_peer(proto, {"x": x})[0], rtol=1e-6, atol=1e-6)


def test_unsigned_constant_weights_become_signed() -> None:
    d = Draw(1)
    inputs = {"a": d.bytes("uint8", 3, 5)}
    proto = build.single("MatMulInteger", inputs, {"b": d.bytes("uint8", 5, 4)})
    graph = load_onnx(proto)
    new = signed_weights(graph)
    assert new.nodes[0].inputs == ("a", "b.signed", "", "y.signed")
    assert new.constants["y.signed"] == -128 and new.constants["b.signed"].dtype == np.int8
    np.testing.assert_array_equal(interpret(new, inputs)["y"], interpret(graph, inputs)["y"])
    assert signed_weights(new) is new


def test_other_types_are_refused() -> None:
    a = np.zeros((2, 3), np.float32)
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    proto = build.model([node], {"a": a, "b": a.T.copy()}, ["y"])
    with pytest.raises(GraphError, match="float32 is not implemented; use 8 bits"):
        load_onnx(proto)

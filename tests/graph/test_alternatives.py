"""Other forms of a group: Winograd's convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper
from tests.graph import build

from tilewright.codegen.target import Target
from tilewright.errors import UnsupportedOperatorError
from tilewright.graph import FusedGraph, compile_graph, extract_tasks, fuse, load_onnx, simplify
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload

rng = np.random.default_rng(0)
node = helper.make_node


def f(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


X, W = f(1, 16, 13, 9), f(32, 16, 3, 3)


def proto(w: NDArray[Any] = W, x: NDArray[Any] = X, **attributes: Any) -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], **{"pads": [1, 1, 1, 1], **attributes}),
        node("Relu", ["c"], ["y"]),
    ]
    return build.model(nodes, {"x": x}, ["y"], {"w": w, "b": f(w.shape[0])})


def fused(model: onnx.ModelProto, *, alternatives: bool = True) -> FusedGraph:
    return fuse(simplify(load_onnx(model)), alternatives=alternatives)


def test_a_small_window_over_many_channels_has_two_other_forms() -> None:
    (forms, count), *rest = extract_tasks(fused(proto()), Target.host(1))
    assert count == 1 and not rest
    assert [t.workload.name for t in forms] == [
        "conv[1x16x13x9,32x16x3x3]+relu",
        "winogradconv[1x16x13x9,4x4x16x32]+relu",
        "winogradconv[1x16x13x9,6x6x16x32]+relu",
    ]


@pytest.mark.parametrize(
    "model",
    [
        proto(strides=[2, 2]),
        proto(dilations=[2, 2]),
        proto(f(32, 4, 3, 3), group=4),
        proto(f(32, 16, 5, 5)),
        proto(f(8, 16, 3, 3)),
        proto(x=f(1, 16, 3, 9)),
    ],
)
def test_other_convolutions_have_one_form(model: onnx.ModelProto) -> None:
    (forms, _) = extract_tasks(fused(model), Target.host(1))[0]
    assert len(forms) == 1


def test_forms_are_not_looked_for_when_rounding_must_not_change() -> None:
    assert [
        len(t) for t, _ in extract_tasks(fused(proto(), alternatives=False), Target.host(1))
    ] == [1]


@pytest.mark.parametrize("form", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_fastest_known_form_is_compiled(form: int, threads: int) -> None:
    model, target = proto(), Target.host(threads)
    graph = fused(model)
    keys = [t.workload.key for t in extract_tasks(graph, target)[0][0]]
    seconds = {k: 2.0 for k in keys} | {keys[form]: 1.0}
    traces = {}
    for task in extract_tasks(graph, target)[0][0]:
        space = Space(task)
        traces[task.workload.key] = space.trace(space.sample_rows(9, np.random.default_rng(1))[-1])
    chosen = graph.choose(lambda w: seconds[w.key])
    assert chosen.workloads()[0].key == keys[form]
    compiled = compile_graph(chosen, target, lambda w: traces[w.key])
    assert compiled.summary().startswith("1 kernels: 1 tuned")
    expected = build.run_peer(model, {"x": X})[0]
    np.testing.assert_allclose(compiled.run({"x": X})["y"], expected, rtol=1e-3, atol=1e-3)


def test_the_plain_form_is_compiled_when_nothing_is_known() -> None:
    graph = fused(proto())
    assert graph.choose(lambda w: None).workloads() == graph.workloads()


def test_a_form_alone_in_the_log_is_taken() -> None:
    graph = fused(proto())
    other = graph.groups[0].alternatives[1].workload.key
    chosen = graph.choose(lambda w: 1.0 if w.key == other else None)
    assert chosen.workloads()[0].key == other


def test_no_model_can_name_the_form_itself() -> None:
    model = build.model([node("WinogradConv", ["x", "w"], ["y"])], {"x": X}, ["y"], {"w": W})
    with pytest.raises(UnsupportedOperatorError, match="WinogradConv"):
        load_onnx(model)


def test_the_spaces_of_all_forms_hold_their_rule() -> None:
    graph, target = fused(proto()), Target.host(2)
    for task in extract_tasks(graph, target)[0][0][1:]:
        assert any(s.name.startswith("winograd[") for s in Space(task).sketches)


def test_the_rule_refuses_what_has_no_transformed_tiles() -> None:
    matmul = Workload.of(build_matmul())
    assert (
        "no product of transformed tiles" in Space(Task(matmul, Target.host(1))).refused["winograd"]
    )


def build_matmul() -> Any:
    from tilewright.tensor import ops, te

    return ops.matmul(te.placeholder((5, 6), name="a"), te.placeholder((6, 7), name="b"))

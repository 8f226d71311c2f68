"""Real models that nobody here wrote agree with ONNX Runtime at every stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from tests.graph import build
from tests.graph.minilm import export_minilm, package_folder, sentence

from tilewright.codegen.target import Target
from tilewright.graph import (
    Graph,
    compile_graph,
    extract_tasks,
    fuse,
    interpret,
    load_onnx,
    simplify,
)
from tilewright.schedule.space import Space
from tilewright.schedule.trace import Trace
from tilewright.tensor import Workload

Case = tuple[onnx.ModelProto, dict[str, NDArray[Any]], Graph]
TOLERANCE = 1e-4


def classifier() -> Case:
    folder = package_folder("rapidocr_onnxruntime")
    proto = onnx.load(str(folder / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"))
    shape = (1, 3, 48, 192)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return proto, {"x": x}, load_onnx(proto, {"x": shape})


def transformer() -> Case:
    proto = export_minilm(24, layers=2)
    return proto, sentence(24), load_onnx(proto)


CASES = {"classifier": classifier, "transformer": transformer}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def agree(
    found: dict[str, NDArray[Any]], proto: onnx.ModelProto, inputs: dict[str, NDArray[Any]]
) -> None:
    for name, expected in zip(found, build.run_peer(proto, inputs)):
        scale = np.abs(expected).max()
        assert np.abs(found[name] - expected).max() <= TOLERANCE * scale, name


def test_reading_and_simplifying_keep_the_outputs(case: Case) -> None:
    proto, inputs, graph = case
    agree(interpret(graph, inputs), proto, inputs)
    simple = simplify(graph)
    assert len(simple.nodes) <= len(graph.nodes)
    agree(interpret(simple, inputs), proto, inputs)


def test_default_schedules_compute_the_model(case: Case) -> None:
    proto, inputs, graph = case
    compiled = compile_graph(fuse(simplify(graph)), Target.host(2))
    agree(compiled.run(inputs), proto, inputs)


@pytest.mark.parametrize("seed", [0, 1])
def test_schedules_from_anywhere_in_the_space_compute_the_model(case: Case, seed: int) -> None:
    proto, inputs, graph = case
    fused = fuse(simplify(graph))
    target = Target.host(2)
    rng = np.random.default_rng(seed)
    traces: dict[str, Trace] = {}
    for (task, *_), _ in extract_tasks(fused, target):
        space = Space(task)
        rows = space.sample_rows(16, rng)
        traces[task.workload.key] = space.trace(rows[int(rng.integers(len(rows)))])

    def lookup(workload: Workload) -> Trace:
        return traces[workload.key]

    compiled = compile_graph(fused, target, lookup)
    assert "default" not in compiled.summary()
    agree(compiled.run(inputs), proto, inputs)


@pytest.mark.slow
def test_the_whole_sentence_transformer_agrees() -> None:
    proto = export_minilm(128)
    inputs = sentence(128)
    compiled = compile_graph(fuse(simplify(load_onnx(proto))), Target.host(2))
    agree(compiled.run(inputs), proto, inputs)

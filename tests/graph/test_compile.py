"""Compiled models: calls, refusals, files, records that no longer apply."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.graph import build

from tilewright.codegen.target import Target
from tilewright.errors import GraphError
from tilewright.graph import CompiledModel, compile_graph, extract_tasks, fuse, load_onnx, simplify
from tilewright.schedule.space import Space
from tilewright.schedule.trace import Step, Trace
from tilewright.tensor import Workload

rng = np.random.default_rng(0)
A = rng.standard_normal((9, 17)).astype(np.float32)
W = rng.standard_normal((17, 21)).astype(np.float32)
EXPECTED = np.maximum(A @ W, 0)


def fused() -> object:
    nodes = [helper.make_node("MatMul", ["a", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    return fuse(simplify(load_onnx(build.model(nodes, {"a": A}, ["y"], {"w": W}))))


@pytest.fixture
def compiled() -> CompiledModel:
    return compile_graph(fused(), Target.host(2))  # type: ignore[arg-type]


def test_a_model_runs_again_and_again(compiled: CompiledModel) -> None:
    for scale in (1.0, 2.0, -1.0):
        found = compiled.run({"a": A * np.float32(scale)})["y"]
        np.testing.assert_allclose(found, np.maximum(A * scale @ W, 0), rtol=1e-5, atol=1e-5)


def test_outputs_are_fresh_arrays(compiled: CompiledModel) -> None:
    first = compiled.run({"a": A})["y"]
    kept = first.copy()
    compiled.run({"a": -A})
    np.testing.assert_array_equal(first, kept)


def test_wrong_inputs_are_refused(compiled: CompiledModel) -> None:
    with pytest.raises(GraphError, match=r"run: the call lacks a; the inputs are a"):
        compiled.run({})
    with pytest.raises(GraphError, match=r"run: the call has no input b; the inputs are a"):
        compiled.run({"a": A, "b": A})
    with pytest.raises(GraphError, match=r"run: input a is float32\[9, 17\], got float64\[9, 17\]"):
        compiled.run({"a": A.astype(np.float64)})


def test_a_saved_model_loads_and_computes_the_same(compiled: CompiledModel, tmp_path: Path) -> None:
    compiled.save(tmp_path / "model.tw")
    again = CompiledModel.load(tmp_path / "model.tw", n_threads=1)
    np.testing.assert_array_equal(again.run({"a": A})["y"], compiled.run({"a": A})["y"])
    assert again.summary() == compiled.summary()


def test_loading_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tw").write_text("no model")
    with pytest.raises(GraphError, match="not a compiled model"):
        CompiledModel.load(tmp_path / "x.tw")
    with pytest.raises(GraphError, match="no such file"):
        CompiledModel.load(tmp_path / "y.tw")


def test_more_threads_than_compiled_for_are_refused(
    compiled: CompiledModel, tmp_path: Path
) -> None:
    compiled.save(tmp_path / "model.tw")
    with pytest.raises(GraphError, match="compiled for 2 threads, asked to use 3"):
        CompiledModel.load(tmp_path / "model.tw", n_threads=3)


def test_a_known_schedule_is_replayed() -> None:
    graph = fused()
    target = Target.host(1)
    task = extract_tasks(graph, target)[0][0][0]  # type: ignore[arg-type]
    space = Space(task)
    row = space.sample_rows(20, np.random.default_rng(0))[-1]
    compiled = compile_graph(graph, target, lambda w: space.trace(row))  # type: ignore[arg-type]
    assert compiled.summary().startswith("1 kernels: 1 tuned")
    np.testing.assert_allclose(compiled.run({"a": A})["y"], EXPECTED, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("draft", [False, True])
def test_a_stale_record_is_reported_and_another_schedule_used(draft: bool) -> None:
    def stale(_: Workload) -> Trace:
        return Trace((Step("split", ("no such loop", (4,))),))

    compiled = compile_graph(fused(), Target.host(1), stale, draft=draft)  # type: ignore[arg-type]
    origin = compiled.report()["origin"][0]
    kind = "draft" if draft else "default"
    assert origin.startswith(f"{kind} (the record no longer applies: replay: step 0")
    np.testing.assert_allclose(compiled.run({"a": A})["y"], EXPECTED, rtol=1e-5, atol=1e-5)


def test_a_profile_has_a_row_for_each_call(compiled: CompiledModel) -> None:
    frame = compiled.profile(repeats=2)
    assert len(frame) == len(compiled.plan.calls) and (frame["us"] > 0).all()


def test_kernels_without_a_record_are_drafted() -> None:
    compiled = compile_graph(fused(), Target.host(2))  # type: ignore[arg-type]
    assert compiled.summary().startswith("1 kernels: 1 draft;")
    plain = compile_graph(fused(), Target.host(2), draft=False)  # type: ignore[arg-type]
    assert plain.summary().startswith("1 kernels: 1 default;")
    for model in (compiled, plain):
        np.testing.assert_allclose(model.run({"a": A})["y"], EXPECTED, rtol=1e-5, atol=1e-5)


def test_a_call_on_the_buffers_copies_nothing_and_keeps_the_inputs() -> None:
    compiled = compile_graph(fused(), Target.host(1))  # type: ignore[arg-type]
    buffers = compiled.buffers
    buffers["a"][...] = A
    for _ in range(2):
        buffers["y"][...] = np.nan
        compiled.execute()
        np.testing.assert_allclose(buffers["y"], EXPECTED, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(buffers["a"], A)
    assert all(v.ctypes.data % 64 == 0 for v in buffers.values())


def _change(head: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        head = head[key]
    head[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("calls", 0, 0), 7), (("calls", 0, 0), -1), (("calls", 0, 1), []), (("calls", 0, 1, 0), ["arena", 1 << 40]),
        (("calls", 0, 1, 0), ["arena", -64]), (("calls", 0, 1, 0), ["file", "/etc/passwd"]), (("inputs", 0, 1), [1 << 20, 1 << 20]),
        (("arena_bytes",), 0), (("kernels", 0, "params"), None), (("outputs", 0, 3), ["constant", "no such"]),
        (("target",), {}), (("calls",), 3), (("inputs", 0, 2), "__class__"),
    ],
)  # fmt: skip
def test_a_model_file_that_points_outside_of_its_memory_is_refused(
    compiled: CompiledModel, tmp_path: Path, path: tuple[Any, ...], value: Any
) -> None:
    compiled.save(tmp_path / "model.tw")
    with zipfile.ZipFile(tmp_path / "model.tw") as z:
        entries = {name: z.read(name) for name in z.namelist()}
    head = json.loads(entries["model.json"])
    _change(head, path, value)
    entries["model.json"] = json.dumps(head).encode()
    with zipfile.ZipFile(tmp_path / "bad.tw", "w") as z:
        for name, data in entries.items():
            z.writestr(name, data)
    with pytest.raises(GraphError, match="not a compiled model"):
        CompiledModel.load(tmp_path / "bad.tw")

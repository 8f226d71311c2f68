"""The suite of odd shapes: its specifications are read, sized right, and varied enough."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.suite import Spec, inputs, model, suite
from benchmarks.worker import difference

import tilewright as tw
from tilewright.graph import load_onnx

ODD: list[Spec] = json.loads(
    (Path(__file__).resolve().parents[2] / "benchmarks/shapes/odd.json").read_text()
)


def test_it_has_as_many_operators_as_the_suite_under_names_of_their_own() -> None:
    names = [s["name"] for s in ODD]
    assert len(set(names)) == len(names) >= 44
    assert not set(names) & {s["name"] for s in suite()}


def test_it_covers_every_kind_but_attention_and_batches_from_1_to_64() -> None:
    assert {s["kind"] for s in ODD} >= {s["kind"] for s in suite()} - {"attention"}
    assert {s["kind"] for s in ODD} >= {"pool", "gather", "add"}
    batches = {s["x"][0] for s in ODD if s["kind"] == "conv"}
    assert min(batches) == 1 and max(batches) == 64
    convs = [s for s in ODD if s["kind"] == "conv"]
    assert {len(s["s"]) for s in convs} == {1, 2, 3}
    assert any(s["d"][0] > 1 for s in convs) and any(1 < s["g"] < s["w"][0] for s in convs)


@pytest.mark.parametrize("spec", ODD, ids=lambda s: s["name"])
def test_every_model_is_read_and_has_the_stated_work(spec: Spec) -> None:
    graph = load_onnx(model(spec))
    assert graph.outputs == ("y",)
    shape = graph.values["y"].shape
    if "o" in spec:
        assert list(shape) == spec["o"]
    if spec["kind"] == "conv":
        assert spec["flops"] == 2 * math.prod(shape) * math.prod(spec["w"][1:])
        assert spec["bytes"] == 4 * sum(math.prod(spec[k]) for k in "xwo")
    assert spec["metric"] in ("gflops", "gbs") and spec["bytes"] > 0


def agrees(spec: Spec) -> bool:
    compiled = tw.compile(model(spec), target=tw.Target.host(2))
    for name, array in inputs(spec)[0].items():
        compiled.buffers[name][...] = array
    compiled.execute()
    gap = difference(spec, np.asarray(compiled.buffers["y"]))
    return gap is not None and gap < 1e-5


@pytest.mark.parametrize("kind", ["gather", "add", "sum"])
def test_one_of_each_new_kind_agrees_with_onnx_runtime(kind: str) -> None:
    assert agrees(min((s for s in ODD if s["kind"] == kind), key=lambda s: s["bytes"]))


@pytest.mark.slow
@pytest.mark.parametrize("spec", ODD, ids=lambda s: s["name"])
def test_every_operator_agrees_with_onnx_runtime(spec: Spec) -> None:
    assert agrees(spec)

"""The operator suite: its models, the workers' protocol, the table. Nothing here looks at a time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.suite import Spec, inputs, matmul, model, suite

from tilewright.graph import load_onnx

ROOT = Path(__file__).resolve().parents[2]
SMALL: list[Spec] = [
    matmul(5, 9, 7, const=True, epilogue="bias_gelu"),
    {
        "name": "softmax_3x17", "kind": "softmax", "shape": [3, 17], "flops": 0, "bytes": 408, "metric": "gbs",
    },
]  # fmt: skip


def test_names_are_unique_and_inputs_repeat() -> None:
    names = [s["name"] for s in suite()]
    assert len(set(names)) == len(names) == 44
    spec = suite()[0]
    for a, b in zip(inputs(spec), inputs(spec)):
        assert list(a) == list(b)
        assert all((a[k] == b[k]).all() for k in a)


@pytest.mark.parametrize("spec", [s for s in suite() if s["bytes"] < 20e6], ids=lambda s: s["name"])
def test_every_model_is_read_and_has_the_stated_work(spec: Spec) -> None:
    graph = load_onnx(model(spec))
    assert graph.outputs == ("y",)
    shape = graph.values["y"].shape
    if "o" in spec:
        assert list(shape) == spec["o"]
    if spec["kind"] == "conv":
        assert spec["flops"] == 2 * math.prod(shape) * math.prod(spec["w"][1:])


def test_a_worker_answers_each_request(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = [
        {"cmd": "prep", "spec": SMALL[0]},
        {"cmd": "burst", "seconds": 0.0, "min": 3, "max": 5},
        {"cmd": "prep", "spec": {**SMALL[0], "kind": "nonsense"}},
        {"cmd": "prep", "spec": SMALL[1]},
    ]
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", "tilewright", "1"],
        input="".join(json.dumps(r) + "\n" for r in requests), text=True, capture_output=True, cwd=ROOT, timeout=120,
    )  # fmt: skip
    first, burst, bad, last = (json.loads(line) for line in found.stdout.splitlines())
    assert first["ok"] and first["err"] < 1e-5 and "1 draft" in first["note"]
    assert len(burst["t"]) == 3 and all(t > 0 for t in burst["t"])
    assert not bad["ok"] and "nonsense" in bad["why"]
    assert last["ok"] and last["err"] < 1e-5


def test_the_table_has_a_row_for_each_operator_and_thread_count(tmp_path: Path) -> None:
    shapes, out, log = tmp_path / "shapes.json", tmp_path / "rows.json", tmp_path / "log.jsonl"
    shapes.write_text(json.dumps(SMALL))
    found = subprocess.run(
        [
            sys.executable, "-m", "benchmarks.ops", "--shapes", shapes, "--trials", "5", "--records", log, "--json", out,
            "--threads", "1,2", "--peers", "numpy,onnxruntime", "--rounds", "1", "--seconds", "0.005",
        ],
        text=True, capture_output=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    rows = json.loads(out.read_text())
    assert [(r["op"], r["threads"]) for r in rows] == [
        (s["name"], n) for n in (1, 2) for s in SMALL
    ]
    for r in rows:
        assert r["ours_s"] > 0 and np.isfinite([r["peak_share"], r["bandwidth_share"]]).all()
        assert r["error"] < 1e-5 and "onnxruntime" in r["peers"]
    assert "numpy" in rows[1]["peers"] and "no fast form" in rows[0]["failed"]["numpy"]
    assert log.exists() and "geometric mean" in found.stdout

"""``tilewright compile`` with logs that fit, fit nearly, or do not fit any more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tests.graph import build

from tilewright.cli import invoke
from tilewright.codegen.target import Target
from tilewright.compiling import compile, fused_graph
from tilewright.records import LogIndex, Record, RecordStore
from tilewright.schedule.sketch import drafts
from tilewright.schedule.task import Task

rng = np.random.default_rng(0)
A = rng.standard_normal((9, 17)).astype(np.float32)
W = rng.standard_normal((17, 21)).astype(np.float32)
TARGET = Target.host(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [helper.make_node("MatMul", ["a", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    path.write_bytes(build.model(nodes, {"a": A}, ["y"], {"w": W}).SerializeToString())
    return path


@pytest.fixture(scope="module")
def record(model: Path) -> Record:
    (workload,) = fused_graph(model).workloads()
    trace = drafts(Task(workload, TARGET))[0]
    return Record(
        workload.key, workload.anchor_key, workload.name, TARGET.fingerprint, "row", "OK", 1e-6,
        trace_text=json.dumps(trace.to_json()),
    )  # fmt: skip


def run(model: Path, tmp_path: Path, *records: Record, flags: tuple[str, ...] = ()) -> int:
    log = tmp_path / "log.jsonl"
    log.touch()
    RecordStore(log).append(*records)
    out = str(tmp_path / "model.tw")
    return invoke(
        ["compile", str(model), "--records", str(log), "--threads", "1", "-o", out, *flags]
    )


def test_a_tuned_kernel_is_verified(
    model: Path, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(model, tmp_path, record, flags=("--require-tuned", "--verify")) == 0
    captured = capsys.readouterr()
    assert "1 kernels: 1 tuned;" in captured.out and captured.err == ""
    assert "every kernel agrees with the reference" in captured.out


def test_require_tuned_names_the_kernels_without_a_record(
    model: Path, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(record, target="another machine")
    assert run(model, tmp_path, other, flags=("--require-tuned",)) == 1
    err = capsys.readouterr().err
    assert "no record on" in err and record.name in err
    assert not (tmp_path / "model.tw").exists()


@pytest.mark.parametrize("trace", ['[["gone","i"]]', '[["split",1.5]]', "null"])
def test_a_stale_record_is_reported_and_require_tuned_refuses_it(
    model: Path, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str], trace: str
) -> None:
    stale = replace(record, trace_text=trace)
    assert run(model, tmp_path, stale) == 0
    captured = capsys.readouterr()
    assert "1 draft, 1 with a record that no longer applies" in captured.out
    assert f"{record.name}: draft (the record no longer applies: " in captured.err
    assert run(model, tmp_path, flags=("--require-tuned",)) == 1
    assert "1 kernels are not as tuned" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["epilogue", "shape"])
def test_a_record_of_a_similar_kernel_is_transferred_and_named(
    model: Path, record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    other = replace(record, workload="w" * 32, name=record.name.replace("9x", "10x"))
    if kind == "shape":
        other = replace(other, anchor="a" * 32)
    assert run(model, tmp_path, other, flags=("--verify",)) == 0
    captured = capsys.readouterr()
    assert "1 transferred" in captured.out
    assert f"{record.name}: transferred (from {other.name})" in captured.err
    assert run(model, tmp_path, flags=("--no-transfer",)) == 0
    assert "1 draft" in capsys.readouterr().out


def test_an_index_serves_as_the_log(model: Path, record: Record, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    RecordStore(log).append(record)
    with LogIndex(log) as index:
        compiled = compile(model, records=index, target=TARGET)
    assert compiled.report()["origin"].tolist() == ["tuned"]
    again = compile(model, records=log, target=TARGET)
    np.testing.assert_array_equal(again.run({"a": A})["y"], compiled.run({"a": A})["y"])

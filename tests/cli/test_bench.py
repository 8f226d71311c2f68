"""``tilewright bench`` on small operators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.cli import invoke

OP = ["bench", "--op", "matmul:16x16x16", "--threads", "1", "--runs", "2"]


def test_default_and_peers_run_and_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert invoke([*OP, "--json", str(file)]) == 0
    figures = json.loads(file.read_text())
    rows = {r["name"]: r for r in figures["results"]}
    assert list(rows) == ["default", "draft", "onnxruntime", "numpy"]
    assert figures["threads"] == 1
    assert figures["reference"] == "numpy"
    assert all(len(r["seconds"]) == 2 and r["median_s"] > 0 for r in rows.values())
    assert rows["default"]["difference"] < 1e-5 and rows["draft"]["difference"] < 1e-5
    assert "speed against default" in capsys.readouterr().out


def test_a_log_without_the_operator_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "empty.jsonl"
    log.touch()
    assert invoke([*OP, "--records", str(log)]) == 1
    assert "has no correct record of matmul[16x16x16,f32]" in capsys.readouterr().err


def test_outputs_that_disagree_are_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilewright import opspec

    spec = opspec.parse("matmul:16x16x16")
    wrong = opspec.OpSpec(spec.workload, lambda a, b: a @ b + 1, spec.onnx_node)
    monkeypatch.setattr(opspec, "parse", lambda text: wrong)
    assert invoke(OP) == 1
    assert "the outputs of default, draft, onnxruntime differ from numpy" in capsys.readouterr().err

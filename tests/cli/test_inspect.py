"""``tilewright inspect``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.cli import invoke

SMALL = ["inspect", "--op", "matmul:16x32x16", "--threads", "1"]


def test_it_prints_the_innermost_loops_of_a_draft(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(SMALL) == 0
    out = capsys.readouterr().out
    assert "matmul[16x32x16,f32] on " in out and ": draft" in out
    assert "multiply-adds" in out and "spills in" in out
    assert ".type" not in out


def test_assembly_is_printed_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*SMALL, "--assembly"]) == 0
    assert "tw_kernel:" in capsys.readouterr().out


def test_a_log_that_is_missing_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*SMALL, "--records", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl" in capsys.readouterr().err

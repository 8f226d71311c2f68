"""``tilewright space``."""

from __future__ import annotations

import pytest

from tilewright.cli import invoke

SMALL = ["space", "--op", "matmul:16x16x16", "--threads", "1"]


def test_it_prints_sketches_size_and_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*SMALL, "--sample", "3"]) == 0
    out = capsys.readouterr().out
    assert "matmul[16x16x16,f32] on " in out
    assert "rows before constraints" in out
    assert "draft model" in out


def test_the_same_seed_prints_the_same_sample(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert invoke([*SMALL, "--seed", "3"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_program_prints_a_program_and_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*SMALL, "--program"]) == 0
    out = capsys.readouterr().out
    assert "def kernel(A: float32[16, 16], B: float32[16, 16], C: float32[16, 16]):" in out


def test_default_shows_the_one_default_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*SMALL, "--default"]) == 0
    assert "draft model" in capsys.readouterr().out

"""``tilewright doctor``."""

from __future__ import annotations

import re

import pytest

from tilewright.cli import invoke
from tilewright.codegen.target import Target
from tilewright.probing import probe


def test_it_names_the_target_its_speed_and_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert Target.host(1).fingerprint in out
    assert float(re.search(r"FMA peak, 1 thread\s+│ ([\d.]+) GFLOP/s", out)[1]) > 0.1  # type: ignore[index]
    for name in ("llvmlite", "xgboost", "pool local", "pool ray"):
        assert name in out


def test_the_probe_is_within_what_a_core_can_do() -> None:
    found = probe(Target.host().vector_bits)
    assert 0.1 < found.peak_gflops < 2000
    assert 0.01 < found.copy_gbs < 2000

"""``tilewright tune``: names on the command line become objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.tuner.doubles import FormulaPool, task

from tilewright import tuning
from tilewright.cli import invoke
from tilewright.cli.choices import MODELS, SEARCHERS, model_named, searcher_named
from tilewright.costmodel import CostModel
from tilewright.records import RecordStore
from tilewright.tuner import Bayesian, Searcher, Study, WarmStart


def test_every_name_is_an_object_with_the_seed() -> None:
    assert len({type(searcher_named(n)) for n in SEARCHERS}) == len(SEARCHERS)
    assert len({type(model_named(n)) for n in MODELS}) == len(MODELS)
    for made in (*(searcher_named(n, 5) for n in SEARCHERS), *(model_named(n, 5) for n in MODELS)):
        assert isinstance(made, Searcher | CostModel)
        assert made.seed == 5  # type: ignore[union-attr]


def test_names_on_the_command_line_reach_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: dict[str, Any] = {}

    def tune(subject: Any, **options: Any) -> Study:
        passed.update(options)
        return Study([(task(), 1.0)], RecordStore(options["records"]), FormulaPool()).run(8)

    monkeypatch.setattr(tuning, "tune", tune)
    Study([(task(), 1.0)], RecordStore(tmp_path / "old"), FormulaPool()).run(8)
    code = invoke(
        [
            "tune", "--op", "matmul:32x16x8", "--searcher", "bayesian", "--model", "forest", "--seed", "4",
            "--warm-start", str(tmp_path / "old"), "--records", str(tmp_path / "log"),
        ]
    )  # fmt: skip
    assert code == 0
    search = passed["search"]
    assert isinstance(search, WarmStart) and len(search.records) >= 8
    assert isinstance(search.search, Bayesian) and search.search.seed == 4
    assert type(passed["model"]).__name__ == "Forest" and passed["model"].seed == 4


def test_unknown_names_are_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["tune", "--op", "matmul:32x16x8", "--searcher", "luck"]) == 2
    assert "evolutionary" in capsys.readouterr().err

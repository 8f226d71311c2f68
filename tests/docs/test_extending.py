"""The page on extending: its examples run, are short, and do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.costmodel import CostModel
from tilewright.records import RecordStore, Stage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is defined when all blocks have run."""
    found: dict[str, Any] = {"__name__": "extending"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), found)
        found["logs"] = {p.stem: RecordStore(p.resolve()) for p in Path().glob("*.jsonl")}
    return found


def test_every_example_is_under_40_lines() -> None:
    assert len(BLOCKS) == 4
    assert all(block.count("\n") < 40 for block in BLOCKS)


@pytest.mark.parametrize(("log", "trials"), [("hill", 8), ("nearest", 16), ("rule", 8)])
def test_every_example_tunes(names: dict[str, Any], log: str, trials: int) -> None:
    records = [r for r in names["logs"][log] if r.stage is Stage.TRIAL]
    assert len(records) == trials and any(r.ok for r in records)


def test_the_model_survives_its_file(names: dict[str, Any], tmp_path: Path) -> None:
    nearest = names["Nearest"]
    x = np.random.default_rng(0).random((30, 4)).astype(np.float32)
    model = nearest().fit(x, np.linspace(0, 1, 30), np.zeros(30))
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(nearest.load(tmp_path / "m.json").predict(x), model.predict(x))
    assert isinstance(model, CostModel) and model.informed


def test_the_rule_makes_the_sketches_that_it_says(names: dict[str, Any]) -> None:
    space = names["space"]
    assert [s.name for s in space.sketches[1:]] == [
        "my_rule[order=row]",
        "my_rule[order=reduction]",
    ]
    tried = {r.row_id.partition("|")[0] for r in names["logs"]["rule"]}
    assert tried & {s.name for s in space.sketches[1:]}

"""Shipped weights: written as data, read when they fit, used before anything is measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.tuner.doubles import FormulaPool, task

from tilewright.costmodel import (
    AnalyticModel,
    RandomModel,
    XGBRanker,
    default_model,
    load_weights,
    pretrained,
    save_weights,
)
from tilewright.errors import RecordError
from tilewright.records import RecordStore
from tilewright.schedule.space import Space
from tilewright.tuner import Study


def fitted() -> tuple[XGBRanker, np.ndarray]:
    """A ranker that has seen the draft model's opinion of one space."""
    space = Space(task())
    rows = space.sample_rows(200, np.random.default_rng(0))
    seconds, x = space.analytic(rows), space.features(rows)
    return XGBRanker(n_rounds=10).fit(x, seconds.min() / seconds, np.zeros(200, dtype=int)), x


def test_weights_survive_the_files_without_pickle(tmp_path: Path) -> None:
    model, x = fitted()
    save_weights(model, tmp_path / "w", {"measured": "by a formula", "metrics": {}})
    again = load_weights(tmp_path / "w")
    assert again is not None and again.informed and again.n_fitted_ == 200
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    facts = json.loads((tmp_path / "w" / "cpu.json").read_text())
    assert facts["measured"] == "by a formula" and (tmp_path / "w" / "cpu.ubj").exists()


def test_no_weights_or_weights_of_other_features_are_no_prior(tmp_path: Path) -> None:
    assert load_weights(tmp_path) is None
    model, _ = fitted()
    model.feature_schema = "old-7"
    save_weights(model, tmp_path, {})
    assert load_weights(tmp_path) is None


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    save_weights(fitted()[0], tmp_path, {})
    (tmp_path / "cpu.ubj").write_bytes(b"nonsense")
    with pytest.raises(RecordError, match=r"cpu\.ubj is not the file that cpu\.json describes"):
        load_weights(tmp_path)


def test_only_a_fitted_ranker_of_its_own_is_written(tmp_path: Path) -> None:
    model, x = fitted()
    with pytest.raises(RecordError, match="needs a fitted ranker without a prior"):
        save_weights(XGBRanker(), tmp_path, {})
    second = XGBRanker(prior=model).fit(x, np.linspace(0, 1, 200), np.zeros(200, dtype=int))
    with pytest.raises(RecordError, match="needs a fitted ranker without a prior"):
        save_weights(second, tmp_path, {})


def test_the_default_model_starts_from_what_is_shipped() -> None:
    model = default_model(3)
    assert model.seed == 3 and model.informed
    shipped = pretrained()
    assert isinstance(model.prior, AnalyticModel) if shipped is None else model.prior is shipped


def test_an_informed_model_makes_the_first_proposals_of_a_study(tmp_path: Path) -> None:
    asked = []

    class Listening(RandomModel):
        def predict(self, x: np.ndarray) -> np.ndarray:
            asked.append(self.n_fitted_)
            return super().predict(x)

    prior = Listening()
    s = Study(
        [(task(), 1.0)], RecordStore(tmp_path / "log"), FormulaPool(), model=XGBRanker(prior=prior)
    )
    s.run(4)
    assert asked and s.model.n_fitted_ == 0

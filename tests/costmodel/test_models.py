"""What every cost model must do, and what the good one must do besides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.costmodel import CostModel, RandomModel, XGBRanker, pairwise_accuracy, peak_at_k
from tilewright.errors import RecordError

Data = tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]


def data(n: int = 400, *, tasks: int = 2, seed: int = 0) -> Data:
    """Candidates of tasks whose speeds differ by far more than candidates of one task do."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, size=(n, 12)).astype(np.float32)
    groups = np.arange(n) % tasks
    seconds = np.exp(np.abs(x[:, 0] - 2) + 0.5 * x[:, 1] * (x[:, 2] > 2)) * 1000.0**groups
    y = np.zeros(n)
    for g in range(tasks):
        mine = groups == g
        y[mine] = seconds[mine].min() / seconds[mine]
    return x, y, groups


class ModelContract:
    """Each subclass says how to make its model."""

    make: Callable[..., CostModel]

    def test_a_new_model_knows_nothing(self) -> None:
        model = type(self).make()
        assert model.n_fitted_ == 0
        assert model.predict(data(5)[0]).shape == (5,)

    def test_fit_returns_the_model_and_counts_its_rows(self) -> None:
        model = type(self).make()
        assert model.fit(*data(60)) is model
        assert model.n_fitted_ == 60

    def test_predictions_are_finite_and_independent_of_the_other_rows(self) -> None:
        model = type(self).make().fit(*data(100))
        x = data(50, seed=1)[0]
        whole = model.predict(x)
        assert whole.shape == (50,) and whole.dtype == np.float64 and np.isfinite(whole).all()
        np.testing.assert_array_equal(whole[10:20], model.predict(x[10:20]))

    def test_equal_seeds_give_equal_models(self) -> None:
        x = data(50, seed=1)[0]
        one, two = (type(self).make(seed=3).fit(*data(100)).predict(x) for _ in range(2))
        np.testing.assert_array_equal(one, two)

    def test_a_saved_model_predicts_the_same(self, tmp_path: Path) -> None:
        model = type(self).make(seed=3).fit(*data(100))
        model.save(tmp_path / "model.json")
        again = type(model).load(tmp_path / "model.json")
        x = data(50, seed=1)[0]
        np.testing.assert_array_equal(model.predict(x), again.predict(x))
        assert again.feature_schema == model.feature_schema and again.n_fitted_ == 100

    def test_the_file_is_data_not_code(self, tmp_path: Path) -> None:
        type(self).make().fit(*data(60)).save(tmp_path / "model.json")
        assert (tmp_path / "model.json").read_bytes().startswith(b"{")

    @pytest.mark.parametrize("label", [0.0, 1.0])
    def test_equal_labels_are_no_error(self, label: float) -> None:
        x, y, groups = data(40)
        model = type(self).make().fit(x, np.full_like(y, label), groups)
        assert np.isfinite(model.predict(x)).all()

    def test_a_single_row_and_unsorted_sparse_groups_are_no_error(self) -> None:
        x, y, _ = data(30)
        type(self).make().fit(x[:1], y[:1], np.array([7]))
        type(self).make().fit(x, y, np.array([9, 2, 5] * 10))

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"model": "Other"}'])
    def test_loading_something_else_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(RecordError, match="not a saved model"):
            type(type(self).make()).load(tmp_path / "model.json")

    def test_loading_a_model_of_other_features_is_refused(self, tmp_path: Path) -> None:
        type(self).make(feature_schema="old-7").fit(*data(60)).save(tmp_path / "model.json")
        with pytest.raises(RecordError, match="trained on features 'old-7'"):
            type(type(self).make()).load(tmp_path / "model.json")


class TestRandomModel(ModelContract):
    make = RandomModel

    def test_it_ranks_no_better_than_chance(self) -> None:
        x, y, groups = data(400)
        assert abs(pairwise_accuracy(RandomModel().predict(x), y, groups) - 0.5) < 0.1


class TestXGBRanker(ModelContract):
    make = XGBRanker

    def test_it_ranks_candidates_that_it_has_not_seen(self) -> None:
        model = XGBRanker().fit(*data(600))
        x, y, groups = data(400, seed=1)
        assert pairwise_accuracy(model.predict(x), y, groups) > 0.85
        assert peak_at_k(model.predict(x), y, groups, 5) > 0.8

    def test_it_learns_to_put_failures_last(self) -> None:
        x, y, groups = data(400)
        failed = x[:, 5] > 3
        model = XGBRanker().fit(x, np.where(failed, 0.0, y), groups)
        score = model.predict(x)
        assert score[failed].mean() < score[~failed].mean()

    def test_it_tells_the_best_candidates_apart(self) -> None:
        x, _, groups = data(600, tasks=1)
        y = 1 - 0.02 * (x[:, 0] / 4)  # all within two percent
        model = XGBRanker().fit(x, y, groups)
        assert pairwise_accuracy(model.predict(x), y, groups) > 0.9

    def test_the_order_of_the_rows_of_tasks_does_not_matter(self) -> None:
        x, y, groups = data(200)
        together = np.argsort(groups, kind="stable")
        a = XGBRanker().fit(x, y, groups)
        b = XGBRanker().fit(x[together], y[together], groups[together])
        np.testing.assert_array_equal(a.predict(x), b.predict(x))

    def test_rows_of_another_width_are_refused(self) -> None:
        model = XGBRanker().fit(*data(60))
        with pytest.raises(ValueError, match="[Ff]eature"):
            model.predict(np.zeros((3, 5), dtype=np.float32))

    def test_an_unfitted_model_is_not_saved(self, tmp_path: Path) -> None:
        with pytest.raises(RecordError, match="has not been fitted"):
            XGBRanker().save(tmp_path / "model.json")


def test_importing_the_models_does_not_import_xgboost() -> None:
    import subprocess
    import sys

    code = "import sys, tilewright.costmodel; print(sorted({'xgboost', 'sklearn', 'pandas'} & set(sys.modules)))"
    out: Any = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"

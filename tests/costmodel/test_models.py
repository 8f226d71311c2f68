"""What every cost model must do, and what the good one must do besides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tuner.doubles import task

from tilewright.costmodel import (
    AnalyticModel,
    CostModel,
    Ensemble,
    FailureAware,
    Forest,
    GaussianProcess,
    RandomModel,
    Ridge,
    XGBRanker,
    pairwise_accuracy,
    peak_at_k,
)
from tilewright.errors import RecordError
from tilewright.schedule.space import Space

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

    def test_uncertainty_is_finite_and_never_negative(self) -> None:
        model = type(self).make()
        x = data(50, seed=1)[0]
        for _ in range(2):
            found = model.uncertainty(x)
            assert found.shape == (50,) and np.isfinite(found).all() and (found >= 0).all()
            model.fit(*data(100))

    def test_no_rows_get_no_scores(self) -> None:
        model = type(self).make().fit(*data(60))
        assert model.predict(data(5)[0][:0]).shape == (0,)
        assert model.uncertainty(data(5)[0][:0]).shape == (0,)

    def test_a_fitted_model_is_informed(self) -> None:
        assert type(self).make().fit(*data(60)).informed

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
        np.testing.assert_allclose(model.uncertainty(x), again.uncertainty(x))
        assert again.feature_schema == model.feature_schema and again.n_fitted_ == 100
        assert again.informed == model.informed

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


class TestAnalyticModel(ModelContract):
    make = AnalyticModel

    def test_it_ranks_by_the_predicted_seconds_without_any_measurement(self) -> None:
        space = Space(task())
        rows = space.sample_rows(50, np.random.default_rng(0))
        score = AnalyticModel().predict(space.features(rows))
        assert pairwise_accuracy(score, -space.analytic(rows), np.zeros(50)) > 0.99
        assert AnalyticModel().informed


class LearningContract(ModelContract):
    """Models that learn: what they have seen helps with what they have not."""

    least = 0.75

    def test_it_ranks_candidates_that_it_has_not_seen(self) -> None:
        model = type(self).make().fit(*data(600))
        x, y, groups = data(400, seed=1)
        assert pairwise_accuracy(model.predict(x), y, groups) > self.least

    def test_failures_come_last(self) -> None:
        x, y, groups = data(400)
        failed = x[:, 5] > 3
        score = type(self).make().fit(x, np.where(failed, 0.0, y), groups).predict(x)
        assert score[failed].mean() < score[~failed].mean()

    def test_an_unfitted_model_is_not_informed(self) -> None:
        assert not type(self).make().informed


class TestRidge(LearningContract):
    make = Ridge
    least = 0.6  # the distance from an optimum is not linear


class TestForest(LearningContract):
    make = Forest
    least = 0.85

    def test_the_trees_answer_as_scikit_learn_does(self) -> None:
        from sklearn.ensemble import RandomForestRegressor

        x, y, groups = data(200)
        theirs = RandomForestRegressor(8, min_samples_leaf=2, max_features=1 / 3, random_state=5)
        theirs.fit(x, np.log(np.maximum(y, 0.02)))
        ours = Forest(n_trees=8, seed=5).fit(x, y, groups)
        np.testing.assert_allclose(ours.predict(x), theirs.predict(x), rtol=1e-12)

    def test_the_uncertainty_is_the_spread_of_the_trees(self) -> None:
        model = Forest().fit(*data(300))
        x = data(40, seed=1)[0]
        assert model.trees_ is not None
        np.testing.assert_allclose(model.uncertainty(x), np.std(model.trees_(x), axis=0))
        assert (model.uncertainty(x) > 0).all()


class TestGaussianProcess(LearningContract):
    make = GaussianProcess

    def test_it_is_surer_near_what_it_has_seen(self) -> None:
        x, y, groups = data(100)
        model = GaussianProcess().fit(x, y, groups)
        far = x + 10
        assert model.uncertainty(x).max() < model.uncertainty(far).min()

    def test_the_posterior_is_that_of_scikit_learn(self) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern

        x, y, groups = data(80)
        model = GaussianProcess().fit(x, y, groups)
        length, signal, mean = model.kernel_
        noise = np.linalg.inv(model.solver_)[0, 0] ** 2 - signal
        theirs = GaussianProcessRegressor(
            ConstantKernel(signal) * Matern(length, nu=2.5), alpha=noise, optimizer=None
        )
        assert model.scaling_ is not None
        theirs.fit(model.rows_, np.log(np.maximum(y, 0.02)) - mean)
        new = data(30, seed=1)[0]
        expected, deviation = theirs.predict(model.scaling_(new), return_std=True)
        np.testing.assert_allclose(model.predict(new), expected + mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.uncertainty(new), deviation, rtol=1e-5, atol=1e-7)

    def test_it_keeps_the_best_of_many_rows(self) -> None:
        x, y, groups = data(300)
        model = GaussianProcess(limit=40).fit(x, y, groups)
        assert len(model.rows_) == 40 and model.n_fitted_ == 300
        best = np.argsort(-y)[:20]
        assert model.scaling_ is not None
        kept = {r.tobytes() for r in model.rows_}
        assert all(r.tobytes() in kept for r in model.scaling_(x[best]))


class TestEnsemble(LearningContract):
    make = Ensemble
    least = 0.8

    def test_the_uncertainty_is_the_spread_of_members_that_differ(self) -> None:
        model = Ensemble(n_members=4).fit(*data(200))
        x = data(40, seed=1)[0]
        scores = np.stack([m.predict(x) for m in model.members_])
        scores -= scores.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(model.uncertainty(x), scores.std(axis=0))
        assert (model.uncertainty(x) > 0).mean() > 0.9

    def test_members_of_any_kind_can_be_asked(self, tmp_path: Path) -> None:
        model = Ensemble(n_members=3, make=lambda seed: Ridge(seed=seed)).fit(*data(100))
        model.save(tmp_path / "m.json")
        x = data(20, seed=1)[0]
        np.testing.assert_array_equal(
            Ensemble.load(tmp_path / "m.json").predict(x), model.predict(x)
        )


class TestFailureAware(LearningContract):
    make = FailureAware
    least = 0.85

    def test_it_learns_where_candidates_fail(self) -> None:
        x, y, groups = data(400)
        model = FailureAware().fit(x, np.where(x[:, 5] > 3, 0.0, y), groups)
        new = data(200, seed=1)[0]
        valid = model.validity_.probability(new)
        assert valid[new[:, 5] > 3.05].max() < 0.5 < valid[new[:, 5] < 2.95].min()

    def test_failures_do_not_blur_the_order_of_the_others(self) -> None:
        x, y, groups = data(400)
        failed = x[:, 5] > 3
        model = FailureAware().fit(x, np.where(failed, 0.0, y), groups)
        clean = XGBRanker().fit(x[~failed], y[~failed], groups[~failed])
        np.testing.assert_array_equal(model.speed_.predict(x), clean.predict(x))

    def test_without_failures_the_probability_is_laplaces(self) -> None:
        x, y, groups = data(98)
        model = FailureAware().fit(x, y, groups)
        np.testing.assert_allclose(model.validity_.probability(x), 0.99)


class TestXGBRankerWithPrior(LearningContract):
    """Transfer: the prior's scores are the base margin."""

    @staticmethod
    def make(**options: Any) -> CostModel:
        return XGBRanker(prior=Ridge(), **options)

    def test_a_new_ranker_has_the_opinion_of_its_prior(self) -> None:
        prior = Forest().fit(*data(400))
        model = XGBRanker(prior=prior)
        x = data(50, seed=1)[0]
        assert model.informed and model.n_fitted_ == 0
        np.testing.assert_array_equal(model.predict(x), prior.predict(x))

    def test_scores_are_those_of_xgboost_with_the_base_margin(self) -> None:
        x, y, groups = data(200)
        model = XGBRanker(prior=Ridge().fit(x, y, groups)).fit(x, y, groups)
        new = data(50, seed=1)[0]
        assert model.prior is not None
        margin = model.prior.predict(new)
        theirs = model.booster_.inplace_predict(new, predict_type="margin", base_margin=margin)
        np.testing.assert_allclose(model.predict(new), theirs, atol=1e-5)

    def test_a_good_prior_helps_when_little_was_measured(self) -> None:
        prior = XGBRanker().fit(*data(600))
        x, y, groups = data(300, seed=1)
        few = data(12, seed=2)
        alone = pairwise_accuracy(XGBRanker().fit(*few).predict(x), y, groups)
        helped = pairwise_accuracy(XGBRanker(prior=prior).fit(*few).predict(x), y, groups)
        assert helped > alone + 0.1

    def test_measurements_overrule_a_wrong_prior(self) -> None:
        x, y, groups = data(600)
        wrong = XGBRanker().fit(x, 1.0 - y, groups)
        new, truth, tasks = data(300, seed=1)
        model = XGBRanker(prior=wrong).fit(x, y, groups)
        assert pairwise_accuracy(wrong.predict(new), truth, tasks) < 0.3
        assert pairwise_accuracy(model.predict(new), truth, tasks) > 0.7


class TestXGBRanker(LearningContract):
    make = XGBRanker
    least = 0.85

    def test_its_favourites_are_fast(self) -> None:
        model = XGBRanker().fit(*data(600))
        x, y, groups = data(400, seed=1)
        assert peak_at_k(model.predict(x), y, groups, 5) > 0.8

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

    code = "import sys, tilewright.costmodel; print(sorted({'xgboost', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    out: Any = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"

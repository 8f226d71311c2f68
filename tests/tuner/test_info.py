"""Tables about studies, and drawings of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tuner.doubles import FormulaPool, task

from tilewright.costmodel import AnalyticModel, RandomModel, pairwise_accuracy
from tilewright.records import RecordStore
from tilewright.tuner import (
    RandomSearch,
    Study,
    allocation_info,
    curve_info,
    plot_allocation,
    plot_curve,
    plot_ranking,
    plot_trials,
    ranking_info,
    trials_info,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    tasks = [(task(48, 32, 24), 1.0), (task(32, 16, 8), 3.0)]
    store = RecordStore(tmp_path_factory.mktemp("log") / "log.jsonl")
    return Study(tasks, store, FormulaPool(failures=True), search=RandomSearch()).run(100)


def test_each_trial_is_a_share_of_the_best_of_its_task(study: Study) -> None:
    info = trials_info(study)
    assert len(info) == 100 and info["trial"].is_monotonic_increasing
    assert (info["share"] <= 1).all() and (info.groupby("task")["share"].max() == 1).all()
    failed = info["status"] != "OK"
    assert failed.any() and (info.loc[failed, "share"] == 0).all()
    for _, own in info.groupby("task"):
        assert own["best_share"].is_monotonic_increasing and own["best_share"].iloc[-1] == 1


def test_the_allocation_sums_up_to_the_model(study: Study) -> None:
    info = allocation_info(study)
    assert info["trials"].sum() == 100
    assert info["best_s"].sum() == pytest.approx(study.model_seconds())
    assert (info["bound_s"] <= info["best_s"]).all() and (info["best_s"] <= info["default_s"]).all()


def test_the_curve_is_that_of_the_run(study: Study) -> None:
    info = curve_info(study)
    assert info["model_s"].is_monotonic_decreasing and info["trial"].iloc[-1] == 100


def test_a_ranking_is_of_trials_that_the_model_has_not_seen(study: Study) -> None:
    fitted: list[int] = []

    class Counting(AnalyticModel):
        def fit(self, x: Any, y: Any, groups: Any) -> AnalyticModel:
            fitted.append(len(x))
            return super().fit(x, y, groups)

    info = ranking_info(study, Counting, share=0.7)
    lessons = sum(len(s.features) for s in study.states)
    assert fitted == [lessons - len(info)] and 0.65 < fitted[0] / lessons < 0.75
    groups = info["task"].astype("category").cat.codes.to_numpy()
    blind = ranking_info(study, RandomModel)
    known = pairwise_accuracy(info["score"].to_numpy(), info["share"].to_numpy(), groups)
    assert known != 0.5 and len(blind) > 0 and np.isfinite(blind["score"]).all()


def test_a_study_without_trials_has_empty_tables(tmp_path: Path) -> None:
    empty = Study([(task(8, 8, 8), 1.0)], RecordStore(tmp_path / "log"), FormulaPool())
    assert ranking_info(empty).empty and trials_info(empty).empty and curve_info(empty).empty


@pytest.mark.parametrize("plot", [plot_curve, plot_trials, plot_allocation, plot_ranking])
def test_each_plot_draws_on_given_axes(study: Study, plot: Callable[..., Any]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    assert plot(study, ax=ax) is ax
    assert ax.has_data() and ax.get_xlabel()
    figure.canvas.draw()
    plt.close(figure)

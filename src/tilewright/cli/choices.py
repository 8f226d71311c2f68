"""Searchers and cost models by name: for command lines only; elsewhere objects are passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.costmodel import CostModel
    from tilewright.tuner import Searcher

__all__ = ["MODELS", "SEARCHERS", "model_named", "searcher_named"]

SEARCHERS = ("evolutionary", "exhaustive", "descent", "annealing", "bayesian", "random")
MODELS = (
    "xgboost", "ensemble", "forest", "gaussian", "ridge", "failures", "analytic", "random",
)  # fmt: skip


def searcher_named(name: str, seed: int = 0) -> Searcher:
    """A searcher with its usual parameters."""
    from tilewright import tuner

    kinds: dict[str, type[Searcher]] = {
        "evolutionary": tuner.Evolutionary, "exhaustive": tuner.Exhaustive, "descent": tuner.CoordinateDescent,
        "annealing": tuner.Annealing, "bayesian": tuner.Bayesian, "random": tuner.RandomSearch,
    }  # fmt: skip
    return kinds[name](seed=seed)


def model_named(name: str, seed: int = 0) -> CostModel:
    """A cost model with its usual parameters; XGBoost starts from the shipped weights, if any fit."""
    from tilewright import costmodel

    if name == "xgboost":
        return costmodel.default_model(seed)
    if name == "failures":
        return costmodel.FailureAware(costmodel.default_model(seed), seed=seed)
    kinds = {
        "ensemble": costmodel.Ensemble, "forest": costmodel.Forest, "gaussian": costmodel.GaussianProcess,
        "ridge": costmodel.Ridge, "analytic": costmodel.AnalyticModel,
        "random": costmodel.RandomModel,
    }  # fmt: skip
    model: CostModel = kinds[name](seed=seed)
    return model

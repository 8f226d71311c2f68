"""Learning from failures: the probability that a candidate can be measured at all."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.xgb import XGBRanker
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["FailureAware", "Validity"]


class Validity:
    """P(valid) by boosted trees; the observed share (Laplace's rule) where all ended alike."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.booster_: Any = None
        self.share_ = 0.5

    def fit(self, x: NDArray[np.float32], valid: NDArray[np.bool_]) -> Validity:
        """Learn from rows and whether they could be measured."""
        import xgboost as xgb

        n = int(valid.sum())
        self.share_ = (n + 1) / (len(valid) + 2)
        self.booster_ = None
        if 0 < n < len(valid):
            parameters = {
                "objective": "binary:logistic", "tree_method": "hist", "max_depth": 4, "eta": 0.3, "max_bin": 32,
                "nthread": 1, "seed": self.seed, "verbosity": 0, "base_score": self.share_,
            }  # fmt: skip
            data = xgb.DMatrix(x, label=valid.astype(np.float32), nthread=1)
            self.booster_ = xgb.train(parameters, data, num_boost_round=20)
        return self

    def probability(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """P(valid) of each row, strictly between 0 and 1."""
        if self.booster_ is None or not len(x):
            return np.full(len(x), self.share_)
        found = np.asarray(self.booster_.inplace_predict(x), dtype=np.float64)
        return np.clip(found, 1e-6, 1 - 1e-6)


class FailureAware(StoredModel):
    """A model of speed that sees valid rows only, times the probability that a row is valid.

    Scores are logarithms, so that the product is a sum: score(x) + log P(valid | x).

    Parameters
    ----------
    model : CostModel, optional
        `XGBRanker` by default.
    """

    def __init__(
        self,
        model: CostModel | None = None,
        *,
        seed: int = 0,
        feature_schema: str = FEATURE_SCHEMA,
    ) -> None:
        self.model = model
        self.seed = seed
        self.feature_schema = feature_schema
        self.speed_: CostModel = XGBRanker(seed=seed) if model is None else model
        self.validity_ = Validity(seed=seed)

    @property
    def informed(self) -> bool:
        """Whether the model of speed is."""
        return self.speed_.informed

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> FailureAware:
        valid = np.asarray(y) > 0
        self.validity_.fit(x, valid)
        some = valid if valid.any() else np.ones(len(x), dtype=bool)
        self.speed_.fit(x[some], np.asarray(y)[some], groups[some])
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.speed_.predict(x) + np.log(self.validity_.probability(x))

    def uncertainty(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """That of the model of speed."""
        return self.speed_.uncertainty(x)

    def state(self) -> Data:
        from tilewright.costmodel.kinds import to_data

        booster = self.validity_.booster_
        return {
            "seed": self.seed, "speed": to_data(self.speed_), "share": self.validity_.share_,
            "booster": json.loads(bytes(booster.save_raw("json"))) if booster else None,
        }  # fmt: skip

    @classmethod
    def from_state(cls, data: Data) -> Self:
        import xgboost as xgb

        from tilewright.costmodel.kinds import from_data

        model = cls(from_data(data["speed"]), seed=data["seed"])
        model.validity_.share_ = data["share"]
        if data["booster"] is not None:
            raw = bytearray(json.dumps(data["booster"]).encode())
            model.validity_.booster_ = xgb.Booster(model_file=raw)
        return model

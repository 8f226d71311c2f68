"""Gradient-boosted trees that rank candidates (Chen & Guestrin, XGBoost, 2016)."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import CostModel
from tilewright.errors import RecordError
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["XGBRanker"]


class XGBRanker(StoredModel):
    """Trees trained on pairs of candidates of the same task; the default model.

    Parameters
    ----------
    n_rounds, max_depth, learning_rate, max_bin, subsample, colsample_bytree, min_child_weight
        As XGBoost names them; few bins keep a fit at a fraction of a second.
    seed : int
    n_threads : int
        One, so that training takes no core from a measurement.
    prior : CostModel, optional
        What was learned elsewhere. Its scores are where boosting starts (the base margin), so that
        the trees learn what the prior gets wrong, and a ranker without measurements has its opinion.
    """

    def __init__(
        self,
        *,
        n_rounds: int = 60,
        max_depth: int = 6,
        learning_rate: float = 0.2,
        max_bin: int = 64,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        min_child_weight: float = 1.0,
        seed: int = 0,
        n_threads: int = 1,
        prior: CostModel | None = None,
        feature_schema: str = FEATURE_SCHEMA,
    ) -> None:
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.max_bin = max_bin
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.min_child_weight = min_child_weight
        self.seed = seed
        self.n_threads = n_threads
        self.prior = prior
        self.feature_schema = feature_schema
        self.booster_: Any = None

    @property
    def informed(self) -> bool:
        """Whether it was fitted, or its prior is informed."""
        return self.n_fitted_ > 0 or (self.prior is not None and self.prior.informed)

    def _parameters(self) -> dict[str, Any]:
        return {
            "objective": "rank:pairwise", "tree_method": "hist", "max_depth": self.max_depth,
            "eta": self.learning_rate, "max_bin": self.max_bin, "nthread": self.n_threads, "seed": self.seed,
            "subsample": self.subsample, "colsample_bytree": self.colsample_bytree,
            "min_child_weight": self.min_child_weight, "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 8, "verbosity": 0,
        }  # fmt: skip

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> XGBRanker:
        import xgboost as xgb

        order = np.argsort(groups, kind="stable")
        ids = np.unique(groups[order], return_inverse=True)[1]
        grades = np.asarray(y, np.float64)[order]
        data = xgb.DMatrix(x[order], label=grades, qid=ids, nthread=self.n_threads)
        if self.prior is not None:
            data.set_base_margin(self.prior.predict(x[order]))
        self.booster_ = xgb.train(self._parameters(), data, num_boost_round=self.n_rounds)
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        start = np.zeros(len(x)) if self.prior is None else self.prior.predict(x)
        if self.booster_ is None or not len(x):
            return start
        # added here, as handing XGBoost a base margin costs milliseconds a call
        return start + np.asarray(self.booster_.inplace_predict(x), dtype=np.float64)

    def state(self) -> Data:
        if self.booster_ is None:
            raise RecordError("XGBRanker.save: the model has not been fitted")
        from tilewright.costmodel.kinds import to_data

        return {
            "booster": json.loads(bytes(self.booster_.save_raw("json"))),
            "n_rounds": self.n_rounds,
            "prior": None if self.prior is None else to_data(self.prior),
        }

    @classmethod
    def from_state(cls, data: Data) -> Self:
        import xgboost as xgb

        from tilewright.costmodel.kinds import from_data

        prior = data.get("prior")
        model = cls(n_rounds=data["n_rounds"], prior=None if prior is None else from_data(prior))
        model.booster_ = xgb.Booster(model_file=bytearray(json.dumps(data["booster"]).encode()))
        return model

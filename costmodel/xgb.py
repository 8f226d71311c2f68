"""Gradient-boosted trees that rank candidates (Chen & Guestrin, XGBoost, 2016)."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import read_model, write_model
from tilewright.costmodel.model import CostModel
from tilewright.errors import RecordError
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["XGBRanker"]


class XGBRanker(CostModel):
    """Trees trained on pairs of candidates of the same task; the default model.

    Parameters
    ----------
    n_rounds, max_depth, learning_rate, max_bin
        As XGBoost names them; few bins keep a fit at a fraction of a second.
    seed : int
    n_threads : int
        One, so that training takes no core from a measurement.
    """

    def __init__(
        self,
        *,
        n_rounds: int = 60,
        max_depth: int = 6,
        learning_rate: float = 0.2,
        max_bin: int = 64,
        seed: int = 0,
        n_threads: int = 1,
        feature_schema: str = FEATURE_SCHEMA,
    ) -> None:
        self.n_rounds = n_rounds
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.max_bin = max_bin
        self.seed = seed
        self.n_threads = n_threads
        self.feature_schema = feature_schema
        self.booster_: Any = None

    def _parameters(self) -> dict[str, Any]:
        return {
            "objective": "rank:pairwise", "tree_method": "hist", "max_depth": self.max_depth,
            "eta": self.learning_rate, "max_bin": self.max_bin, "nthread": self.n_threads, "seed": self.seed,
            "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 8, "verbosity": 0,
        }  # fmt: skip

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> XGBRanker:
        import xgboost as xgb

        order = np.argsort(groups, kind="stable")
        ids = np.unique(groups[order], return_inverse=True)[1]
        grades = np.asarray(y, np.float64)[order]
        data = xgb.DMatrix(x[order], label=grades, qid=ids, nthread=self.n_threads)
        self.booster_ = xgb.train(self._parameters(), data, num_boost_round=self.n_rounds)
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        if self.booster_ is None:
            return np.zeros(len(x))
        return np.asarray(self.booster_.inplace_predict(x), dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        if self.booster_ is None:
            raise RecordError("XGBRanker.save: the model has not been fitted")
        booster = json.loads(bytes(self.booster_.save_raw("json")))
        content = {"booster": booster, "n_rounds": self.n_rounds}
        write_model(path, "XGBRanker", self.feature_schema, self.n_fitted_, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> XGBRanker:
        """Read what `save` wrote.

        Raises
        ------
        RecordError
            If the file is no such model, or was trained on other features.
        """
        import xgboost as xgb

        data = read_model(path, "XGBRanker")
        model = cls(n_rounds=data["n_rounds"], feature_schema=data["feature_schema"])
        model.booster_ = xgb.Booster(model_file=bytearray(json.dumps(data["booster"]).encode()))
        model.n_fitted_ = int(data["n_fitted"])
        return model

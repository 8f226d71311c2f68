"""Several models on several draws of the data: how far they differ is what is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.analytic_model import AnalyticModel
from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.xgb import XGBRanker
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["Ensemble"]


def small_ranker(seed: int) -> XGBRanker:
    """A member that fits in tens of milliseconds."""
    return XGBRanker(
        n_rounds=40, max_depth=4, learning_rate=0.1, max_bin=32, seed=seed, prior=AnalyticModel()
    )


class Ensemble(StoredModel):
    """Members that are fitted to bootstrap samples (bagging, Breiman 1996).

    Parameters
    ----------
    n_members : int
    make : callable
        From a seed to a new model; a small `XGBRanker` by default.
    """

    def __init__(
        self,
        *,
        n_members: int = 5,
        make: Callable[[int], CostModel] = small_ranker,
        seed: int = 0,
        feature_schema: str = FEATURE_SCHEMA,
    ) -> None:
        self.n_members = n_members
        self.make = make
        self.seed = seed
        self.feature_schema = feature_schema
        self.members_: list[CostModel] = []

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> Ensemble:
        self.members_ = []
        for k in range(self.n_members):
            draw = np.random.default_rng([self.seed & 0xFFFFFFFF, k]).integers(0, len(x), len(x))
            draw = np.sort(draw)
            member = self.make(1000 * self.seed + k)
            self.members_.append(member.fit(x[draw], np.asarray(y)[draw], groups[draw]))
        self.n_fitted_ = len(x)
        return self

    def _all(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.stack([m.predict(x) for m in self.members_] or [np.zeros(len(x))])

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(self._all(x).mean(axis=0), dtype=np.float64)

    def uncertainty(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Standard deviation over the members, up to a shift that all rows share."""
        scores = self._all(x)
        shared = scores.mean(axis=1, keepdims=True) if len(x) else 0.0
        return np.asarray((scores - shared).std(axis=0), dtype=np.float64)

    def state(self) -> Data:
        from tilewright.costmodel.kinds import to_data

        return {"seed": self.seed, "members": [to_data(m) for m in self.members_]}

    @classmethod
    def from_state(cls, data: Data) -> Self:
        from tilewright.costmodel.kinds import from_data

        members = [from_data(m) for m in data["members"]]
        model = cls(n_members=len(members), seed=data["seed"])
        model.members_ = list(members)
        return model

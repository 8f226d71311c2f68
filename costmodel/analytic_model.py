"""The draft model as a cost model: nothing is learned."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.schedule.features import FEATURE_NAMES, FEATURE_SCHEMA

__all__ = ["AnalyticModel"]

SECONDS = FEATURE_NAMES.index("seconds")  # the logarithm of the predicted nanoseconds


class AnalyticModel(StoredModel):
    """Scores by the seconds that ports and caches must at least take (`schedule.analytic`)."""

    def __init__(self, *, seed: int = 0, feature_schema: str = FEATURE_SCHEMA) -> None:
        self.seed = seed
        self.feature_schema = feature_schema

    @property
    def informed(self) -> bool:
        """Always: it needs no measurement."""
        return True

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> AnalyticModel:
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return -x[:, SECONDS].astype(np.float64)

    def state(self) -> Data:
        return {"seed": self.seed}

    @classmethod
    def from_state(cls, data: Data) -> Self:
        return cls(seed=data["seed"])

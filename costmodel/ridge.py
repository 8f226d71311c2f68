"""A linear baseline."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.model import log_speed
from tilewright.costmodel.scaling import Scaling
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["Ridge"]


class Ridge(StoredModel):
    """Least squares with a penalty on log throughput, by scikit-learn.

    Parameters
    ----------
    alpha : float
        Weight of the penalty on standardised features.
    """

    def __init__(
        self, *, alpha: float = 1.0, seed: int = 0, feature_schema: str = FEATURE_SCHEMA
    ) -> None:
        self.alpha = alpha
        self.seed = seed
        self.feature_schema = feature_schema
        self.scaling_: Scaling | None = None
        self.weights_: NDArray[np.float64] = np.empty(0)

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> Ridge:
        from sklearn.linear_model import Ridge as Regressor

        self.scaling_ = Scaling.of(x)
        found = Regressor(alpha=self.alpha).fit(self.scaling_(x), log_speed(y))
        self.weights_ = np.append(found.coef_, found.intercept_)
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        if self.scaling_ is None:
            return np.zeros(len(x))
        # a sum for each row, not a matrix product, whose rounding depends on the number of rows
        scores = (self.scaling_(x) * self.weights_[:-1]).sum(axis=1) + self.weights_[-1]
        return np.asarray(scores, dtype=np.float64)

    def state(self) -> Data:
        return {
            "alpha": self.alpha, "seed": self.seed, "weights": self.weights_.tolist(),
            "scaling": self.scaling_.to_data() if self.scaling_ else None,
        }  # fmt: skip

    @classmethod
    def from_state(cls, data: Data) -> Self:
        model = cls(alpha=data["alpha"], seed=data["seed"])
        model.weights_ = np.array(data["weights"], dtype=np.float64)
        model.scaling_ = Scaling.from_data(data["scaling"]) if data["scaling"] else None
        return model

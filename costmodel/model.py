"""The contract of cost models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CostModel", "log_speed"]

SLOWEST = 0.02  # what regression takes for a failure: fifty times slower than the best


class CostModel(ABC):
    """Ranks candidates by their features.

    Attributes
    ----------
    feature_schema : str
        Identifies the meaning of the feature columns.
    n_fitted_ : int
        Rows of the last `fit`; 0 before it.
    """

    feature_schema: str
    n_fitted_: int = 0

    @property
    def informed(self) -> bool:
        """Whether scores mean something; a search drafts by the analytic model until they do."""
        return self.n_fitted_ > 0

    @abstractmethod
    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> CostModel:
        """Learn from measured candidates.

        Parameters
        ----------
        x : (n, n_features) float32
        y : (n,)
            Throughput relative to the best of the same task, in (0, 1]; 0 for a failure.
        groups : (n,) int
            The task of each row; only rows of one task are compared.
        """

    @abstractmethod
    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Scores, shape (n,); higher is faster. Comparable within one task only.

        Differences are meant as logarithms: of throughputs, or of the odds that one candidate beats
        the other.
        """

    def uncertainty(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Standard deviation of the scores, shape (n,); 0 where a model has no notion of it."""
        return np.zeros(len(x))

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as data."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | os.PathLike[str]) -> CostModel:
        """Read what `save` wrote."""


def log_speed(y: NDArray[Any]) -> NDArray[np.float64]:
    """Labels for regression: logarithms of relative throughputs."""
    return np.log(np.maximum(np.asarray(y, dtype=np.float64), SLOWEST))

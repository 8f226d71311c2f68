"""The contract of cost models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CostModel"]


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
        """Scores, shape (n,); higher is faster. Comparable within one task only."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as data."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | os.PathLike[str]) -> CostModel:
        """Read what `save` wrote."""

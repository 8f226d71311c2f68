"""Standardised features, for models that compare columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scaling"]

FAR = 5.0  # standard deviations beyond which a feature of another task is cut


@dataclass(frozen=True)
class Scaling:
    """Column means and standard deviations of a training set."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, x: NDArray[Any]) -> Scaling:
        """Measure a matrix; constant columns keep their scale."""
        deviation = x.std(axis=0, dtype=np.float64)
        return cls(x.mean(axis=0, dtype=np.float64), np.where(deviation > 1e-9, deviation, 1.0))

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Standardise rows."""
        return np.clip((x - self.mean) / self.deviation, -FAR, FAR)

    def to_data(self) -> list[list[float]]:
        """As JSON values."""
        return [self.mean.tolist(), self.deviation.tolist()]

    @classmethod
    def from_data(cls, data: list[list[float]]) -> Scaling:
        """The inverse of `to_data`."""
        return cls(np.array(data[0]), np.array(data[1]))

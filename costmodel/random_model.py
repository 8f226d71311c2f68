"""The baseline: no model at all."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import Data, StoredModel
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["RandomModel"]


class RandomModel(StoredModel):
    """Scores drawn at random; the same features get the same score."""

    def __init__(self, *, seed: int = 0, feature_schema: str = FEATURE_SCHEMA) -> None:
        self.seed = seed
        self.feature_schema = feature_schema

    @property
    def informed(self) -> bool:
        """As much as it ever will be: a search by this model gets no drafts either."""
        return True

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> RandomModel:
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        keys = np.ascontiguousarray(x, np.float32)
        seed = self.seed.to_bytes(8, "little", signed=True)
        digests = [hashlib.blake2b(row.tobytes(), digest_size=8, key=seed).digest() for row in keys]
        return np.array([int.from_bytes(d, "little") / 2.0**64 for d in digests], dtype=np.float64)

    def state(self) -> Data:
        return {"seed": self.seed}

    @classmethod
    def from_state(cls, data: Data) -> Self:
        return cls(seed=data["seed"])

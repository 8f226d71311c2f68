"""The baseline: no model at all."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.files import read_model, write_model
from tilewright.costmodel.model import CostModel
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["RandomModel"]


class RandomModel(CostModel):
    """Scores drawn at random; the same features get the same score."""

    def __init__(self, *, seed: int = 0, feature_schema: str = FEATURE_SCHEMA) -> None:
        self.seed = seed
        self.feature_schema = feature_schema

    def fit(self, x: NDArray[np.float32], y: NDArray[Any], groups: NDArray[Any]) -> RandomModel:
        self.n_fitted_ = len(x)
        return self

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        keys = np.ascontiguousarray(x, np.float32)
        seed = self.seed.to_bytes(8, "little", signed=True)
        digests = [hashlib.blake2b(row.tobytes(), digest_size=8, key=seed).digest() for row in keys]
        return np.array([int.from_bytes(d, "little") / 2.0**64 for d in digests], dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        write_model(path, "RandomModel", self.feature_schema, self.n_fitted_, {"seed": self.seed})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RandomModel:
        data = read_model(path, "RandomModel")
        model = cls(seed=data["seed"], feature_schema=data["feature_schema"])
        model.n_fitted_ = int(data["n_fitted"])
        return model

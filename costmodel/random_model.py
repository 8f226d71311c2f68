"""The baseline: no model at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        weights = np.random.default_rng(self.seed).standard_normal(x.shape[1])
        mixed = np.sin(np.asarray(x, np.float64) * 12.9898) @ weights * 43758.5453
        return np.asarray(mixed - np.floor(mixed))

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(json.dumps({"model": "RandomModel", "seed": self.seed, "feature_schema": self.feature_schema}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RandomModel:
        data = json.loads(Path(path).read_text())
        return cls(seed=data["seed"], feature_schema=data["feature_schema"])

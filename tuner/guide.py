"""What guides a search: the scores of a model, how sure it is, and what it looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.costmodel.model import CostModel
from tilewright.schedule.space import Rows, Space
from tilewright.tuner.searcher import Score

__all__ = ["Guide", "features_of", "uncertainty_of"]


class Guide:
    """A model's view of the rows of one space; calling it scores rows."""

    def __init__(self, space: Space, model: CostModel) -> None:
        self.space = space
        self.model = model

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return self.model.predict(self.space.features(rows))

    def uncertainty(self, rows: Rows) -> NDArray[np.float64]:
        """Standard deviation of the scores."""
        return self.model.uncertainty(self.space.features(rows))

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """What the model sees of the rows."""
        return self.space.features(rows)


def uncertainty_of(score: Score | None, rows: Rows) -> NDArray[np.float64]:
    """Standard deviation of the scores; 0 for a plain function."""
    return score.uncertainty(rows) if isinstance(score, Guide) else np.zeros(len(rows))


def features_of(score: Score | None, rows: Rows) -> NDArray[Any]:
    """What tells rows apart: features, or the rows themselves for a plain function."""
    return score.features(rows) if isinstance(score, Guide) else rows

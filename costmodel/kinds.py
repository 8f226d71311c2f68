"""The models that can be saved inside of others, by name."""

from __future__ import annotations

from tilewright.costmodel.analytic_model import AnalyticModel
from tilewright.costmodel.ensemble import Ensemble
from tilewright.costmodel.files import Data, StoredModel
from tilewright.costmodel.forest import Forest
from tilewright.costmodel.gaussian import GaussianProcess
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.random_model import RandomModel
from tilewright.costmodel.ridge import Ridge
from tilewright.costmodel.validity import FailureAware
from tilewright.costmodel.xgb import XGBRanker
from tilewright.errors import RecordError

__all__ = ["KINDS", "from_data", "to_data"]

KINDS: dict[str, type[StoredModel]] = {
    kind.__name__: kind
    for kind in (
        AnalyticModel, Ensemble, FailureAware, Forest, GaussianProcess, RandomModel, Ridge, XGBRanker,
    )
}  # fmt: skip


def to_data(model: CostModel) -> Data:
    """A model inside of another as data."""
    if not isinstance(model, StoredModel) or type(model).__name__ not in KINDS:
        raise RecordError(
            f"save: a {type(model).__name__} inside of a model cannot be saved; choose one of {', '.join(KINDS)}"
        )
    return model.to_data()


def from_data(data: Data) -> StoredModel:
    """The inverse of `to_data`."""
    kind = KINDS.get(data.get("model", ""))
    if kind is None:
        raise RecordError(f"load: no model {data.get('model')!r}; choose one of {', '.join(KINDS)}")
    return kind.from_data(data)

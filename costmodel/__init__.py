"""Models that rank candidates, and how to judge them."""

if __name__ != "tilewright.costmodel":
    raise ImportError("import this folder as tilewright.costmodel; it is no top-level package")

from tilewright.costmodel.metrics import kendall_tau, pairwise_accuracy, peak_at_k
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.random_model import RandomModel
from tilewright.costmodel.xgb import XGBRanker

__all__ = ["CostModel", "RandomModel", "XGBRanker", "kendall_tau", "pairwise_accuracy", "peak_at_k"]

"""Models that rank candidates, and how to judge them."""

if __name__ != "tilewright.costmodel":
    raise ImportError("import this folder as tilewright.costmodel; it is no top-level package")

from tilewright.costmodel.analytic_model import AnalyticModel
from tilewright.costmodel.ensemble import Ensemble
from tilewright.costmodel.files import StoredModel
from tilewright.costmodel.forest import Forest
from tilewright.costmodel.gaussian import GaussianProcess
from tilewright.costmodel.metrics import kendall_tau, pairwise_accuracy, peak_at_k, report
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.pretrained import default_model, load_weights, pretrained, save_weights
from tilewright.costmodel.random_model import RandomModel
from tilewright.costmodel.ridge import Ridge
from tilewright.costmodel.validity import FailureAware, Validity
from tilewright.costmodel.xgb import XGBRanker

__all__ = [
    "AnalyticModel", "CostModel", "Ensemble", "FailureAware", "Forest", "GaussianProcess", "RandomModel",
    "Ridge", "StoredModel", "Validity", "XGBRanker", "default_model", "kendall_tau", "load_weights", "pairwise_accuracy",
    "peak_at_k", "pretrained", "report", "save_weights",
]  # fmt: skip

"""Weights that ship with the package: a prior for new tasks."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from tilewright.costmodel.analytic_model import AnalyticModel
from tilewright.costmodel.xgb import XGBRanker
from tilewright.errors import RecordError
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["default_model", "load_weights", "pretrained", "save_weights"]

FOLDER = Path(__file__).resolve().parent / "weights"


def save_weights(model: XGBRanker, folder: Path, facts: dict[str, Any]) -> None:
    """Write a ranker's trees (XGBoost's UBJSON) and, beside them, what is known about them.

    Parameters
    ----------
    facts : dict
        How the data was measured, and metrics by split.
    """
    if model.booster_ is None or model.prior is not None:
        raise RecordError("save_weights: needs a fitted ranker without a prior of its own")
    raw = bytes(model.booster_.save_raw("ubj"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.ubj").write_bytes(raw)
    head = {
        "feature_schema": model.feature_schema,
        "n_fitted": model.n_fitted_,
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
    (folder / "cpu.json").write_text(json.dumps({**head, **facts}, indent=1) + "\n")


def load_weights(folder: Path) -> XGBRanker | None:
    """The ranker in a folder; None where there is none, or it knows other features.

    Raises
    ------
    RecordError
        If the files are damaged.
    """
    import xgboost as xgb

    about = folder / "cpu.json"
    if not about.exists():
        return None
    facts, raw = json.loads(about.read_text()), (folder / "cpu.ubj").read_bytes()
    if facts["feature_schema"] != FEATURE_SCHEMA:
        return None
    if hashlib.sha256(raw).hexdigest() != facts["sha256"]:
        raise RecordError(
            f"load_weights({folder}): cpu.ubj is not the file that cpu.json describes"
        )
    model = XGBRanker()
    model.booster_ = xgb.Booster(model_file=bytearray(raw))
    model.n_fitted_ = int(facts["n_fitted"])
    return model


@functools.cache
def pretrained() -> XGBRanker | None:
    """The shipped ranker, if there is one for this version's features."""
    return load_weights(FOLDER)


def default_model(seed: int = 0) -> XGBRanker:
    """What a study learns with: a ranker that starts from the shipped one, or from the draft model.

    Many shallow, slow trees on top of a prior: on logs of 47 tuned kernels they ordered what was not
    yet measured better than deeper or faster ones, with 8 trials as with 64, and better than the same
    trees with the prior's score as a further feature.
    """
    prior = pretrained() or AnalyticModel()
    return XGBRanker(n_rounds=60, max_depth=4, learning_rate=0.1, seed=seed, prior=prior)

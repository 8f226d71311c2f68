"""Saved models: JSON with a head that says what the model is and which features it knows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tilewright.errors import RecordError
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["read_model", "write_model"]


def write_model(
    path: str | os.PathLike[str], model: str, schema: str, n_fitted: int, content: dict[str, Any]
) -> None:
    """Write a model as JSON."""
    head = {"model": model, "feature_schema": schema, "n_fitted": n_fitted}
    Path(path).write_text(json.dumps({**head, **content}))


def read_model(path: str | os.PathLike[str], model: str) -> dict[str, Any]:
    """Read what `write_model` wrote.

    Raises
    ------
    RecordError
        If the file is no such model, or was trained on other features.
    """
    try:
        data = json.loads(Path(path).read_text())
        found, schema, _ = data["model"], data["feature_schema"], data["n_fitted"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{model}.load({os.fspath(path)!r}): not a saved model ({error!r})"
        ) from None
    if found != model:
        raise RecordError(
            f"{model}.load({os.fspath(path)!r}): not a saved model of this kind, but {found!r}"
        )
    if schema != FEATURE_SCHEMA:
        raise RecordError(
            f"{model}.load: trained on features {schema!r}, this version has {FEATURE_SCHEMA!r}; train it again"
        )
    assert isinstance(data, dict)
    return data

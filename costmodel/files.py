"""Saved models: JSON with a head that says what the model is and which features it knows."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

from tilewright.costmodel.model import CostModel
from tilewright.errors import RecordError
from tilewright.schedule.features import FEATURE_SCHEMA

__all__ = ["StoredModel"]

Data = dict[str, Any]


class StoredModel(CostModel):
    """A model whose state is plain data; models can hold models."""

    @abstractmethod
    def state(self) -> Data:
        """All that `from_state` needs, as JSON values."""

    @classmethod
    @abstractmethod
    def from_state(cls, data: Data) -> Self:
        """The inverse of `state`; the head is set by the caller."""

    def to_data(self) -> Data:
        """Head and state."""
        head = {
            "model": type(self).__name__,
            "feature_schema": self.feature_schema,
            "n_fitted": self.n_fitted_,
        }
        return {**head, **self.state()}

    @classmethod
    def from_data(cls, data: Data) -> Self:
        """The inverse of `to_data`."""
        model = cls.from_state(data)
        model.feature_schema = str(data["feature_schema"])
        model.n_fitted_ = int(data["n_fitted"])
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(json.dumps(self.to_data()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        RecordError
            If the file is no such model, or was trained on other features.
        """
        return cls.from_data(read_data(path, cls.__name__))


def read_data(path: str | os.PathLike[str], model: str) -> Data:
    """The content of a saved model, its head checked."""
    call = f"{model}.load({os.fspath(path)!r})"
    try:
        data = json.loads(Path(path).read_text())
        found, schema, _ = data["model"], data["feature_schema"], data["n_fitted"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{call}: not a saved model ({error!r})") from None
    if found != model:
        raise RecordError(f"{call}: not a saved model of this kind, but {found!r}")
    if schema != FEATURE_SCHEMA:
        raise RecordError(
            f"{model}.load: trained on features {schema!r}, this version has {FEATURE_SCHEMA!r}; train it again"
        )
    assert isinstance(data, dict)
    return data

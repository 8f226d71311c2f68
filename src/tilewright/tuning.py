"""Tune a model, a workload or tasks: ties the graph, the tuner, the pools and the log together."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.compiling import Model, default_target, fused_graph
from tilewright.errors import TilewrightError
from tilewright.schedule.task import Task
from tilewright.tensor import Workload

if TYPE_CHECKING:
    from tilewright.codegen.target import Target
    from tilewright.measure import Pool
    from tilewright.records import RecordStore
    from tilewright.tuner import Study

__all__ = ["Subject", "seconds_of", "tasks_of", "tune"]

Subject: TypeAlias = "Model | Workload | Task | Sequence[Workload | Task]"

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """Read a length of time.

    Examples
    --------
    >>> seconds_of("90"), seconds_of("1.5min")
    (90.0, 90.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    if not found or found[2] not in _UNITS or not float(found[1]):
        raise TilewrightError(f"{text!r} is no length of time; write 90s, 10min or 1.5h")
    return float(found[1]) * _UNITS[found[2]]

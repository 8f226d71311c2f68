"""What measured candidates teach a cost model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.tuner.state import TaskState

__all__ = ["Examples", "examples"]

Examples: TypeAlias = "tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]"


def examples(states: Sequence[TaskState]) -> Examples | None:
    """Features, throughputs relative to the best of the task, and task numbers, in order of proposal.

    None where nothing was measured. Tasks without a correct candidate teach nothing.
    """
    x, y, groups = [], [], []
    for k, s in enumerate(states):
        values = np.array(s.seen.values) if s.features else np.empty(0)
        if len(values) and math.isfinite(values.min()):
            x.append(np.stack(s.features))
            y.append(values.min() / values)
            groups.append(np.full(len(values), k))
    return (np.concatenate(x), np.concatenate(y), np.concatenate(groups)) if x else None

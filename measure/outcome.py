"""What is asked of a pool, and what comes back: every ending has a type."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace

__all__ = ["MeasureInput", "MeasureResult", "Status"]


class Status(enum.Enum):
    """How a trial ended."""

    OK = "ok"
    ILLEGAL = "illegal"  # a schedule step was refused
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    BUILD_CRASH = "build_crash"
    RUN_TIMEOUT = "run_timeout"
    RUN_CRASH = "run_crash"
    WRONG = "wrong"  # the output differs from the reference
    LOST = "lost"  # workers died around it too often

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class MeasureInput:
    """A candidate to build, check and time; `id` comes back with the result."""

    id: int
    task: Task
    trace: Trace


@dataclass(frozen=True)
class MeasureResult:
    """The outcome of one candidate.

    Attributes
    ----------
    seconds : tuple of float
        Wall time of one call, one entry a sample.
    reference_seconds : tuple of float
        Time of the reference kernel beside each sample.
    value : float
        Seconds of one call with the machine's drift divided out by the reference kernel; infinite
        unless the status is OK. This is what searches compare and models learn.
    message : str
        The reason, when the status is not OK.
    """

    id: int
    status: Status
    seconds: tuple[float, ...] = ()
    reference_seconds: tuple[float, ...] = ()
    value: float = math.inf
    message: str = ""
    build_s: float = 0.0
    run_s: float = 0.0

"""The exceptions of Tilewright.

Every message follows one pattern: the call, the law, the values, the remedy.
"""

__all__ = [
    "BuildError",
    "GraphError",
    "MeasureError",
    "RecordError",
    "ScheduleError",
    "TensorError",
    "TilewrightError",
    "UnsupportedOperatorError",
]


class TilewrightError(Exception):
    """Base class of every error that Tilewright raises on purpose."""


class TensorError(TilewrightError):
    """A tensor expression is malformed."""


class ScheduleError(TilewrightError):
    """A schedule step is illegal. The only error that a search may swallow."""


class BuildError(TilewrightError):
    """A program cannot be turned into machine code."""


class GraphError(TilewrightError):
    """A model cannot be read, rewritten or compiled."""


class UnsupportedOperatorError(GraphError):
    """A model holds operators that Tilewright does not implement; the message names all of them."""


class MeasureError(TilewrightError):
    """A measuring pool is unusable (not: a candidate failed, which is an outcome)."""


class RecordError(TilewrightError):
    """A record, log or trace cannot be read or applied."""

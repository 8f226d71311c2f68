"""Race several implementations of one computation: interleaved, so that drift hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import TilewrightError

__all__ = ["Contender", "Result", "difference", "race"]

MAX_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class Contender:
    """An implementation: a name, and a call that returns its outputs in the common order."""

    name: str
    call: Callable[[], Sequence[np.ndarray[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Result:
    """What one contender showed.

    Parameters
    ----------
    seconds : tuple of float
        One sample a round, seconds of one call.
    difference : float or None
        Largest relative difference from the reference's outputs; None for the reference itself.
    """

    name: str
    seconds: tuple[float, ...]
    difference: float | None

    @property
    def median_s(self) -> float:
        """Median of the samples in seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half of the interquartile range over the median."""
        if len(self.seconds) < 4:
            return float("nan")
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2 / self.median_s


def race(
    contenders: Sequence[Contender],
    *,
    rounds: int = 20,
    sample_s: float = 2e-3,
    reference: str | None = None,
) -> list[Result]:
    """Time the contenders in turn, `rounds` times.

    A sample is the mean of as many calls as take `sample_s`, after one call that warms the caches
    again. The order rotates from round to round.

    Parameters
    ----------
    contenders : sequence of Contender
    rounds : int
        Samples of each contender.
    sample_s : float
        Least length of a sample in seconds.
    reference : str, optional
        The contender whose outputs the others are compared with; the last one by default.
    """
    if not contenders:
        raise TilewrightError("race([]): no contenders; give one or more")
    names = [c.name for c in contenders]
    if reference is not None and reference not in names:
        raise TilewrightError(
            f"race(reference={reference!r}): no such contender; there are {names}"
        )
    outputs = {c.name: [np.array(a) for a in c.call()] for c in contenders}
    calls = {c.name: _calls(c, sample_s) for c in contenders}
    samples: dict[str, list[float]] = {name: [] for name in names}
    for r in range(rounds):
        turn = r % len(contenders)
        for c in (*contenders[turn:], *contenders[:turn]):
            c.call()
            samples[c.name].append(_time(c, calls[c.name]))
    base = reference or names[-1]
    return [
        Result(n, tuple(samples[n]), None if n == base else difference(outputs[n], outputs[base]))
        for n in names
    ]


def difference(
    found: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]]
) -> float:
    """Largest ``max|found - wanted| / max|wanted|`` of the outputs; infinite if shapes differ."""
    if len(found) != len(wanted):
        return float("inf")
    worst = 0.0
    for a, b in zip(found, wanted):
        if a.shape != b.shape:
            return float("inf")
        if not b.size:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        gap = float(np.max(np.abs(x - y)))
        worst = (
            max(worst, gap / max(float(np.max(np.abs(y))), 1e-30)) if gap == gap else float("inf")
        )
    return worst


def _time(contender: Contender, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        contender.call()
    return (time.perf_counter() - start) / calls


def _calls(contender: Contender, sample_s: float) -> int:
    calls = 1
    while calls < MAX_CALLS:
        seconds = _time(contender, calls) * calls
        if seconds >= sample_s:
            break
        calls = min(MAX_CALLS, max(calls + 1, int(calls * sample_s / max(seconds, 1e-7))))
    return calls

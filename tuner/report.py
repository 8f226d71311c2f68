"""What a study tells while it runs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, TextIO

__all__ = ["Event", "PlainProgress", "ProgressSink", "RichProgress"]


@dataclass(frozen=True)
class Event:
    """The state of a study after some trials.

    Attributes
    ----------
    done, total : int
        Trials.
    elapsed_s, left_s : float
        Time spent, and an estimate of what is left.
    model_s, default_s : float
        Predicted seconds of the whole model: with the best schedules so far, with the default ones.
    failures : dict
        Number of trials by status, other than OK.
    known, kernels : int
        Kernels of which a time is known (the sums cover these), and all.
    stopped : str
        Why the study ends before all trials are done; empty while it goes on.
    """

    done: int
    total: int
    elapsed_s: float
    left_s: float
    model_s: float
    default_s: float
    failures: dict[str, int] = field(default_factory=dict)
    known: int = 1
    kernels: int = 1
    stopped: str = ""


class ProgressSink(Protocol):
    """Receives events."""

    def update(self, event: Event) -> None:
        """Show the state."""

    def close(self) -> None:
        """End the display."""


def describe(e: Event) -> str:
    """One line about the state."""
    rate = e.done / e.elapsed_s if e.elapsed_s > 0 else 0.0
    gain = f"{e.default_s / e.model_s:.2f}x" if e.model_s > 0 else "-"
    failed = ", ".join(f"{n} {k.lower()}" for k, n in sorted(Counter(e.failures).items())) or "none"
    if e.known < e.kernels:
        state = f"first look at kernel {e.known} of {e.kernels}"
    else:
        state = f"sum of kernels {e.model_s * 1e3:.3f} ms ({gain} over default)"
    line = f"{e.done}/{e.total} trials, {rate:.1f}/s, {e.left_s:.0f} s left, {state}, failures: {failed}"
    return f"{line}; stopped: {e.stopped}" if e.stopped else line


class PlainProgress:
    """A line every few seconds; for logs and pipes."""

    def __init__(self, stream: TextIO | None = None, every_s: float = 5.0) -> None:
        self._stream = stream or sys.stderr
        self._every_s = every_s
        self._last = 0.0

    def update(self, event: Event) -> None:
        now = time.monotonic()
        if now - self._last >= self._every_s or event.done >= event.total or event.stopped:
            self._last = now
            print(describe(event), file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing to end."""


class RichProgress:
    """A live bar; for terminals and notebooks."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("[bold]tuning[/bold]"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def update(self, event: Event) -> None:
        text = describe(event)
        self._bar.update(self._task, completed=event.done, total=event.total, description=text)

    def close(self) -> None:
        self._bar.stop()

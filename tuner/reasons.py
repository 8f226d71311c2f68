"""Why a study ends: sentences for reports."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tuner.state import TaskState

__all__ = ["notes", "why_stopped"]


def notes(states: Sequence[TaskState]) -> list[str]:
    """One sentence for each task that gets no more trials."""
    found = [s.progress.why_not(s.task) for s in states]
    return [text for text in found if text]


def why_stopped(
    states: Sequence[TaskState], done: int, total: int, *, min_gain: float, model_s: float
) -> str:
    """Why there are fewer trials than were asked for, in one sentence; empty if there are not."""
    if done >= total:
        return ""
    gain = max((s.progress.gain_s for s in states), default=0.0)
    if gain > min_gain * model_s:
        return f"the time is used up after {done} of {total} trials"
    if gain > 0:
        return (
            f"the next trials are expected to save {gain / model_s:.2%} of the model's time, "
            f"which is less than {min_gain:.2%}"
        )
    found = notes(states)
    more = f"; and {len(found) - 1} more like this" if len(found) > 1 else ""
    return f"no task has anything to gain: {found[0]}{more}" if found else ""

"""The default schedule, candidate zero of every space: no search, no tiling."""

from __future__ import annotations

from tilewright.schedule.rules.common import inline_cheap, plain_nest
from tilewright.schedule.schedule import Schedule

__all__ = ["naive"]


def naive(s: Schedule) -> None:
    """Inline the cheap, then one nest a block: parallel outside, vectors inside."""
    inline_cheap(s)
    for block in s.blocks():
        plain_nest(s, block)

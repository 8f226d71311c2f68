"""Which rules make the space of a workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.schedule.rules.blocked import blocked
from tilewright.schedule.rules.dot import dot
from tilewright.schedule.rules.dotplan import may_use_dots
from tilewright.schedule.rules.elementwise import elementwise
from tilewright.schedule.rules.naive import naive
from tilewright.schedule.rules.rows import rows
from tilewright.schedule.rules.stream import stream
from tilewright.schedule.rules.tile import tile
from tilewright.schedule.rules.winograd import winograd
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.workload import Workload

__all__ = ["Rule", "default_rules"]

Rule: TypeAlias = Callable[[Schedule], None]


def default_rules(workload: Workload) -> tuple[Rule, ...]:
    """The rules tried on a workload; the first gives the default schedule, candidate zero."""
    if workload.anchor is None:
        return (naive, elementwise)
    dots = (dot,) if may_use_dots(workload) else ()
    return (naive, *dots, tile, blocked, winograd, stream, rows)

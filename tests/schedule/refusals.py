"""What all refusal tests of primitives do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload


def assert_refused(workload: Callable[[], Workload], steps: str, message: str) -> None:
    """The last of some steps, Python text on a schedule `s`, is refused with just this message."""
    s = Schedule(workload())
    with pytest.raises(ScheduleError) as error:
        exec(steps, {"s": s})
    assert str(error.value) == message

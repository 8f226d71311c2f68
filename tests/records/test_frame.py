from __future__ import annotations

import math

import pytest

from tilewright.records.frame import to_frame
from tilewright.records.record import Provenance, Record


def test_each_record_is_a_row_and_each_knob_a_column() -> None:
    one = Record(
        "w",
        "a",
        "n",
        "t",
        "r1",
        "OK",
        1.0,
        knobs=(("x", 4),),
        seconds=(1.0, 3.0),
        provenance=Provenance(time=86400.0),
    )
    two = Record("w", "a", "n", "t", "r2", "WRONG", math.inf, knobs=(("y", 2),))
    frame = to_frame([one, two])
    assert list(frame["row_id"]) == ["r1", "r2"]
    assert frame["knob.x"][0] == 4 and math.isnan(frame["knob.x"][1]) and frame["knob.y"][1] == 2
    assert frame["spread"][0] == pytest.approx(0.5) and math.isnan(frame["spread"][1])
    assert str(frame["time"][0]) == "1970-01-02 00:00:00+00:00"
    assert frame["value"][1] == math.inf


def test_an_empty_log_has_all_columns() -> None:
    frame = to_frame([])
    assert len(frame) == 0 and {"workload", "value", "status"} <= set(frame.columns)

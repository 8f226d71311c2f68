from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records.record import SCHEMA, Provenance, Record, Stage
from tilewright.schedule.trace import Step, Trace


def record(**changes: object) -> Record:
    base = Record(
        workload="w", anchor="a", name="matmul[8x8x8,f32]", target="t", row_id="tile|x=4", status="OK", value=2e-6,
        trace_text='[["split","i",[4]],["parallel","i.0"]]', sketch=1, row=(1, 0, 3), knobs=(("x", 4),),
        seconds=(2e-6, 2.1e-6), reference_seconds=(1e-6, 1e-6), build_s=0.1, run_s=0.2, trial=7,
        provenance=Provenance("host", 1.7e9, 3, "0.1.0", "20.1.0", "night"),
    )  # fmt: skip
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def test_a_line_reads_back_as_the_same_record() -> None:
    assert Record.from_line(record().to_line()) == record()


def test_a_failure_reads_back_with_an_infinite_value() -> None:
    failed = record(
        status="WRONG", value=math.inf, seconds=(), message="element 3 differs: 1 ≠ 2\nsecond line"
    )
    line = failed.to_line()
    assert "\n" not in line and json.loads(line)["value"] is None
    assert Record.from_line(line) == failed


positive = st.floats(min_value=1e-12, max_value=1e6)


@given(
    value=positive,
    seconds=st.lists(positive),
    message=st.text(),
    knob=st.one_of(st.integers(), st.booleans(), st.text()),
)
def test_any_content_survives_the_round_trip(
    value: float, seconds: list[float], message: str, knob: int | bool | str
) -> None:
    r = record(value=value, seconds=tuple(seconds), message=message, knobs=(("k", knob),))
    line = r.to_line()
    assert line.isascii() and "\n" not in line
    assert Record.from_line(line) == r


def test_keys_are_sorted_so_that_equal_records_are_equal_lines() -> None:
    keys = list(json.loads(record().to_line()))
    assert keys == sorted(keys) and "checksum" in keys


def test_the_checksum_is_the_same_in_every_release() -> None:
    assert record().checksum == "e0aab814b71e82e6"


def test_reformatting_a_line_keeps_it_valid() -> None:
    spaced = json.dumps(json.loads(record().to_line()), indent=1).replace("\n", " ")
    assert Record.from_line(spaced) == record()


def test_a_changed_value_is_noticed() -> None:
    line = record().to_line().replace('"value":2e-06', '"value":1e-06')
    with pytest.raises(
        RecordError, match=r"checksum \w{16} differs from the stated \w{16}; the line was changed"
    ):
        Record.from_line(line)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "no schema number"),
        ('{"input": "tvm"}', "no schema number"),
        ("# a comment", "not JSON"),
        ('{"schema": %d}' % (SCHEMA + 1), "newer than"),
    ],
)
def test_foreign_lines_are_refused_with_the_reason(line: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        Record.from_line(line)


def test_a_sound_checksum_over_a_wrong_type_is_refused() -> None:
    from tilewright.records.record import _checksum, _dump

    payload = json.loads(record().to_line())
    del payload["checksum"]
    payload["stage"] = "dessert"
    payload["checksum"] = _checksum(payload)
    with pytest.raises(RecordError, match="malformed field: ValueError"):
        Record.from_line(_dump(payload))


@pytest.mark.parametrize(
    ("status", "value"), [("OK", math.inf), ("OK", 0.0), ("OK", math.nan), ("WRONG", 1.0)]
)
def test_status_and_value_must_agree(status: str, value: float) -> None:
    with pytest.raises(RecordError, match=f"status {status} with a value of"):
        record(status=status, value=value)


def test_the_trace_replays_from_the_record_alone() -> None:
    assert record().trace == Trace((Step("split", ("i", (4,))), Step("parallel", ("i.0",))))


def test_a_record_without_a_legal_trace_says_why() -> None:
    failed = record(
        status="ILLEGAL",
        value=math.inf,
        trace_text="null",
        message="vectorize(k): a reduction axis",
    )
    with pytest.raises(RecordError, match=r"no legal trace: vectorize\(k\): a reduction axis"):
        failed.trace  # noqa: B018


def test_records_are_hashable() -> None:
    assert len({record(), record(), record(stage=Stage.FINAL)}) == 2

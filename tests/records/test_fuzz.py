"""Whatever a log holds, reading it never fails and never loses a sound record."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records import LogIndex, Record, RecordStore
from tilewright.records.record import _checksum

quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
GOOD = [
    Record("w", "a", "w", "t", f"row{n}", "OK", 1.0 + n, trace_text='[["split","i",[4]]]', trial=n)
    for n in range(4)
]
LINES = [r.to_line().encode() for r in GOOD]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
fields = st.sampled_from(sorted(json.loads(LINES[0])))


def resealed(field: str, value: object) -> bytes:
    """A sound checksum over a line of which one field is something else."""
    payload = json.loads(LINES[0]) | {field: value}
    payload.pop("checksum")
    try:
        payload["checksum"] = _checksum(payload)
    except ValueError:  # NaN and infinity cannot be sealed; a writer in C might still write them
        payload["checksum"] = "0" * 16
    return json.dumps(payload).encode()


bad_lines = st.one_of(
    st.binary(max_size=60),
    st.integers(0, 3).flatmap(lambda n: st.integers(0, len(LINES[n]) - 1).map(lambda k: LINES[n][:k])),
    json_values.map(lambda v: json.dumps(v).encode()),
    st.builds(resealed, fields, json_values),
    st.builds(lambda k, b: LINES[1][:k] + bytes([b]) + LINES[1][k + 1 :], st.integers(0, len(LINES[1]) - 1), st.integers(0, 255)),
    st.sampled_from([b"[" * 100_000, b'{"schema":1,"trace":' + b"[" * 100_000, b"9" * 5000, b'{"schema":' + b"9" * 5000 + b"}",
                     b'{"schema":true}', b'{"schema":1}', b'{"schema":0}', b'{"schema":-3}', b"\x00" * 50, b"\xef\xbb\xbf" + LINES[0]]),
).map(lambda b: b.replace(b"\n", b" "))  # fmt: skip


@quick
@given(
    data=st.lists(bad_lines, max_size=6),
    at=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    end=st.booleans(),
)
def test_sound_records_survive_among_anything(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], at: list[int], end: bool
) -> None:
    content = list(data)
    for line, place in zip(LINES, at):
        content.insert(place, line)
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b"\n".join(content) + b"\n" * end)
    store = RecordStore(path)
    found = set(store.records)
    assert (set(GOOD) if end else set(GOOD) - {_last(content)}) <= found
    assert all(p.reason for p in store.problems)
    with LogIndex(path) as index:
        assert len(index) == len(store)
        assert index.best("w", "t") == store.best("w", "t")
    for r in found:  # whatever was read can be written and used
        assert Record.from_line(r.to_line()) == r
        with contextlib.suppress(RecordError):  # the one error that `trace` documents
            r.trace  # noqa: B018
    store.append(Record("w", "a", "w", "t", "new", "OK", 0.5, trial=99))
    assert found < set(RecordStore(path).records)


def _last(content: list[bytes]) -> Record | None:
    return GOOD[LINES.index(content[-1])] if content[-1] in LINES else None


@quick
@given(line=st.one_of(st.text(), bad_lines.map(lambda b: b.decode("utf-8", "surrogateescape"))))
def test_a_line_is_a_record_or_a_record_error(line: str) -> None:
    try:
        found = Record.from_line(line)
    except RecordError as error:
        assert str(error).startswith("record line: ")
    else:
        assert isinstance(found, Record)


@pytest.mark.parametrize("cut", range(0, len(LINES[0]), 7))
def test_a_log_cut_anywhere_keeps_what_was_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(LINES[1] + b"\n" + LINES[0][:cut])
    assert RecordStore(path).records == (GOOD[1],)

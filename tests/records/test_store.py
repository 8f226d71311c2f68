from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.records.record import Record
from tilewright.records.store import RecordStore


def trial(n: int, value: float = 1.0, workload: str = "w") -> Record:
    return Record(workload, "a", workload, "t", f"row{n}", "OK", value, trace_text="[]", trial=n)


def test_an_absent_log_is_empty_and_opening_it_writes_nothing(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "deep" / "log.jsonl")
    assert len(store) == 0 and store.best("w", "t") is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_appended_is_read_by_the_writer_and_by_others(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.jsonl"
    store = RecordStore(path)
    store.append(trial(0), trial(1))
    store.append(trial(2))
    assert store.records == RecordStore(path).records == (trial(0), trial(1), trial(2))
    assert path.read_text() == "".join(trial(n).to_line() + "\n" for n in range(3))


def test_refresh_reads_what_others_appended(tmp_path: Path) -> None:
    one, other = RecordStore(tmp_path / "log"), RecordStore(tmp_path / "log")
    one.append(trial(0))
    assert (other.refresh(), other.refresh()) == (1, 0)
    other.append(trial(1))
    one.append(trial(2))  # appending also catches up
    assert [r.trial for r in one] == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 10, 200, -1])
def test_a_torn_last_line_costs_only_itself(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    RecordStore(path).append(trial(0))
    with open(path, "a") as file:
        file.write(trial(1).to_line()[:cut])
    store = RecordStore(path)
    assert [r.trial for r in store] == [0]
    assert [(p.line, p.reason) for p in store.problems] == [(2, "incomplete: it has no line end")]
    store.append(trial(2))
    again = RecordStore(path)
    assert [r.trial for r in again] == [r.trial for r in store] == [0, 2]
    assert [p.line for p in again.problems] == [2]


def test_a_whole_last_line_without_its_end_is_kept_when_the_next_is_appended(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    path.write_text(trial(0).to_line())
    store = RecordStore(path)
    store.append(trial(1))
    assert [r.trial for r in RecordStore(path)] == [0, 1]
    assert store.problems == ()


def test_a_line_that_another_writer_is_in_the_middle_of_is_read_once_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = trial(0).to_line()
    path.write_text(line[:50])
    store = RecordStore(path)
    assert len(store) == 0 and len(store.problems) == 1
    with open(path, "a") as file:
        file.write(line[50:] + "\n")
    assert store.refresh() == 1
    assert len(store.problems) == 0


def test_foreign_damaged_and_duplicate_lines_are_listed_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    good, other = trial(0).to_line(), trial(1).to_line()
    lines = [
        good.encode(), b"# a comment", b"", b'{"i": [["tvm"]], "r": [[0.1]]}', b"\xff\xfe", good.encode(),
        other.replace('"trial":1', '"trial":9').encode(), other.encode(),
    ]  # fmt: skip
    path.write_bytes(b"\n".join(lines) + b"\n")
    store = RecordStore(path)
    assert [r.trial for r in store] == [0, 1]
    reasons = {p.line: p.reason for p in store.problems}
    assert sorted(reasons) == [2, 4, 5, 6, 7]
    assert "not JSON" in reasons[2] and "no schema" in reasons[4] and "UTF-8" in reasons[5]
    assert reasons[6] == "duplicate of line 1" and "checksum" in reasons[7]


def test_a_replaced_log_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    store = RecordStore(path)
    store.append(trial(0), trial(1))
    (tmp_path / "new").write_text(trial(5).to_line() + "\n")
    os.replace(tmp_path / "new", path)
    store.refresh()
    assert [r.trial for r in store] == [5]
    path.write_text("")
    store.refresh()
    assert len(store) == 0


def test_best_is_looked_up_by_workload_and_target(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "log")
    fast = dataclasses.replace(trial(3, 0.1), target="other")
    store.append(trial(0, 2.0), trial(1, 1.0), trial(2, 0.5, workload="v"), fast)
    found = store.best("w", "t")
    assert found is not None and found.trial == 1
    assert store.best("w", "unknown") is None
    assert len(store.of_task("w", "t")) == 2


WRITER = """
import sys
from tilewright.records import Record, RecordStore
store = RecordStore(sys.argv[1])
for n in range(int(sys.argv[3])):
    store.append(Record("w", "a", "w" * 3000, "t", f"{sys.argv[2]}-{n}", "OK", 1.0, trial=n))
"""


def test_four_processes_append_at_once_and_nothing_is_lost_or_mixed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(w), "25"]) for w in range(4)
    ]
    assert [w.wait(timeout=60) for w in writers] == [0] * 4
    store = RecordStore(path)
    assert store.problems == ()
    assert sorted(r.row_id for r in store) == sorted(
        f"{w}-{n}" for w in range(4) for n in range(25)
    )
    for w in range(4):  # each writer's own order is kept
        assert [r.trial for r in store if r.row_id.startswith(f"{w}-")] == list(range(25))


def test_every_record_is_synced_when_no_risk_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    careful, quick = (
        RecordStore(tmp_path / "a", fsync_s=0),
        RecordStore(tmp_path / "b", fsync_s=1e9),
    )
    for n in range(3):
        careful.append(trial(n))
    assert len(synced) == 3
    quick._synced_at = float("inf")  # as if it had just synced
    quick.append(trial(0))
    assert len(synced) == 3
    quick.flush()
    quick.flush()
    assert len(synced) == 4

"""The sidecar index: it answers as the whole log does, and a stale one is never believed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.records import LogIndex, Record, RecordStore, Stage, index_path, open_lookups


def trial(n: int, value: float = 1.0, **changes: object) -> Record:
    fields = {"workload": "w", "anchor": "a", "name": "matmul[8x8x8,f32]", "target": "t"} | changes
    return Record(row_id=f"row{n}", status="OK", value=value, trace_text="[]", trial=n, **fields)  # type: ignore[arg-type]


def age(path: Path) -> None:
    """Give the log a time of change that lies back, as a log of yesterday has."""
    os.utime(path, (1e9, 1e9))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    RecordStore(path).append(
        trial(0, 3.0), trial(1, 2.0), trial(2, 1.0, workload="v", name="matmul[9x8x8,f32]")
    )
    age(path)
    return path


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that are read as records from now on."""
    read: list[str] = []
    original = Record.from_line

    def from_line(line: str) -> Record:
        read.append(line)
        return original(line)

    monkeypatch.setattr(Record, "from_line", from_line)
    return read


def best_row(index: LogIndex | RecordStore, workload: str = "w") -> str:
    found = index.best(workload, "t")
    assert found is not None
    return found.row_id


one_record = st.builds(
    lambda w, row, value, final, ok: Record(
        w, "a" + w[:1], f"matmul[{len(w)}x8x8,f32]", "t", row, "OK" if ok else "WRONG",
        value if ok else float("inf"), stage=Stage.FINAL if final else Stage.TRIAL,
    ),
    st.sampled_from(["w", "ww", "x"]), st.sampled_from("abc"), st.sampled_from([1.0, 2.0, 3.0]), st.booleans(), st.booleans(),
)  # fmt: skip


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(st.lists(one_record, max_size=6), max_size=4), junk=st.binary(max_size=8))
def test_an_index_answers_as_the_whole_log_does(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Record]], junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(junk + b"\n")
    for batch in batches:
        RecordStore(path, fsync_s=None).append(*batch)
        store = RecordStore(path)
        with LogIndex(path) as index:
            assert (len(index), index.n_problems) == (len(store), len(store.problems))
            for w in ("w", "ww", "x"):
                assert index.best(w, "t") == store.best(w, "t")
                assert index.of_task(w, "t") == store.of_task(w, "t")
            assert index.nearest("aw", "t") == store.nearest("aw", "t")
            name = "matmul[7x8x8,f32]"
            assert index.similar(name, "t") == store.similar(name, "t")


def test_an_unchanged_log_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LogIndex(path).close()
    read = count_reads(monkeypatch)
    monkeypatch.setattr("zlib.crc32", lambda *_: pytest.fail("it compared the log's checksum"))
    with LogIndex(path) as index:
        assert len(index) == 3 and best_row(index) == "row1"
    assert len(read) == 1  # the answer


def test_only_what_was_appended_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LogIndex(path) as index:
        RecordStore(path).append(trial(3, 0.5), trial(3, 0.5))
        read = count_reads(monkeypatch)
        assert index.refresh() == 1
        assert len(read) == 2 and best_row(index) == "row3" and index.n_problems == 1
        assert index.refresh() == 0


@pytest.mark.parametrize("same_time", [False, True])
def test_a_log_that_was_rewritten_in_place_is_indexed_anew(path: Path, same_time: bool) -> None:
    LogIndex(path).close()
    before = path.stat()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(trial(7, 9.0, workload="u").to_line() + "\n" + lines[0])
    if same_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with LogIndex(path) as index:
        assert len(index) == 2 and best_row(index) == "row0" and best_row(index, "u") == "row7"


def test_a_change_of_the_same_length_within_the_same_moment_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    RecordStore(path).append(trial(1, 1.0))
    LogIndex(path).close()
    before = path.stat()
    path.write_text(trial(2, 1.0).to_line() + "\n")
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with LogIndex(path) as index:
        assert best_row(index) == "row2"


def test_a_change_before_what_was_appended_is_noticed(path: Path) -> None:
    LogIndex(path).close()
    changed = path.read_text().replace(trial(1, 2.0).to_line(), trial(5, 2.0).to_line())
    path.write_text(changed + trial(6, 4.0).to_line() + "\n")
    with LogIndex(path) as index:
        assert best_row(index) == "row5" and len(index) == 4


def test_the_index_of_another_log_is_not_believed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    RecordStore(other).append(trial(9, 0.1), trial(8, 0.2), trial(7, 0.3))
    LogIndex(other).close()
    index_path(path).write_bytes(index_path(other).read_bytes())
    with LogIndex(path) as index:
        assert best_row(index) == "row1"


def test_a_lying_index_costs_time_and_gives_the_right_answer(path: Path) -> None:
    LogIndex(path).close()
    with sqlite3.connect(index_path(path)) as db:
        db.execute("UPDATE records SET offset = 5")
    db.close()
    with LogIndex(path) as index:
        assert best_row(index) == "row1"
    with LogIndex(path) as again:
        assert best_row(again) == "row1" and index_path(path).exists()


@pytest.mark.parametrize("keep", [0, 20, 200, 5000])
def test_a_damaged_index_is_made_anew(path: Path, keep: int) -> None:
    LogIndex(path).close()
    whole = index_path(path).read_bytes()
    index_path(path).write_bytes(whole[:keep] + b"\xff" * (len(whole) - keep) * (keep > 0))
    with LogIndex(path) as index:
        assert best_row(index) == "row1" and len(index) == 3


def test_a_file_of_that_name_which_is_no_index_is_left_alone(path: Path) -> None:
    index_path(path).write_text("the reader's own notes, which must not be lost, whatever we do")
    with LogIndex(path) as index:
        assert best_row(index) == "row1"
    assert index_path(path).read_text().startswith("the reader's own notes")


def test_where_no_index_can_be_written_it_is_held_in_memory(path: Path) -> None:
    index_path(path).mkdir()
    with LogIndex(path) as index:
        assert best_row(index) == "row1"


def test_a_torn_line_is_indexed_once_it_is_whole(path: Path) -> None:
    line = trial(4, 0.1).to_line() + "\n"
    with open(path, "a") as file:
        file.write(line[:40])
    with LogIndex(path) as index:
        assert best_row(index) == "row1"
        with open(path, "a") as file:
            file.write(line[40:])
        assert index.refresh() == 1 and best_row(index) == "row4"


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such log"):
        LogIndex(tmp_path / "absent")
    with pytest.raises(RecordError, match="no such log; `tune` writes one"):
        open_lookups(tmp_path / "absent")


def test_a_small_log_is_read_whole_unless_it_has_an_index(path: Path) -> None:
    assert isinstance(open_lookups(path), RecordStore) and not index_path(path).exists()
    LogIndex(path).close()
    with open_lookups(path) as found:
        assert isinstance(found, LogIndex)


WORKER = """
import sys
from tilewright.records import LogIndex, Record, RecordStore
path, me = sys.argv[1], sys.argv[2]
store = RecordStore(path, fsync_s=None)
for n in range(15):
    store.append(Record("w", "a", "w", "t", f"{me}-{n}", "OK", 1.0 + n, trial=n))
    with LogIndex(path) as index:
        assert any(r.row_id == f"{me}-{n}" for r in index.of_task("w", "t"))
"""


def test_processes_append_and_index_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), str(w)]) for w in range(3)
    ]
    assert [w.wait(timeout=60) for w in workers] == [0] * 3
    with LogIndex(path) as index:
        assert len(index) == 45 and index.n_problems == 0
        assert best_row(index) == min(f"{w}-0" for w in range(3))

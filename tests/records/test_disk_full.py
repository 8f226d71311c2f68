"""A disk that fills up while records are written loses nothing that was written before."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.errors import RecordError
from tilewright.records import Record, RecordStore

# The kernel itself refuses to write past the limit, in the middle of a line, as a full disk does.
CHILD = """
import resource, signal, sys
from tilewright.errors import RecordError
from tilewright.records import Record, RecordStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
store = RecordStore(sys.argv[1], fsync_s=0)
for n in range(100):
    try:
        store.append(Record("w", "a", "w", "t", f"row{n}", "OK", 1.0, trial=n))
    except RecordError as error:
        print(n, error)
        sys.exit(3)
"""


def trial(n: int) -> Record:
    return Record("w", "a", "w", "t", f"row{n}", "OK", 1.0, trial=n)


@pytest.mark.parametrize("limit", [1, 2500, 4001])
def test_a_full_disk_keeps_every_record_and_says_so(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(limit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    n = int(done.stdout.split()[0])
    assert (
        f"1 records could not be written: {os.strerror(errno.EFBIG)}; the {n} records in the log are untouched"
        in done.stdout
    )
    store = RecordStore(path)
    assert store.records == tuple(map(trial, range(n))) and store.problems == ()
    assert n == limit // len(trial(0).to_line() + "\n")
    store.append(trial(n))  # there is room again
    assert RecordStore(path).records == tuple(map(trial, range(n + 1)))


def test_a_batch_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RecordStore(tmp_path / "log")
    store.append(trial(0))
    before = store.path.read_bytes()
    original = os.write
    left = [2]

    def write(fd: int, data: bytes) -> int:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(
        RecordError, match=r"3 records could not be written: No space left on device.*make room"
    ):
        store.append(trial(1), trial(2), trial(3))
    monkeypatch.undo()
    assert store.path.read_bytes() == before
    store.append(trial(1))
    assert len(RecordStore(store.path)) == 2


def test_no_sync_is_asked_for_until_flush_when_the_system_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with RecordStore(tmp_path / "log", fsync_s=None) as store:
        store.append(trial(0))
        assert synced == []
    assert len(synced) == 1

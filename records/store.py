"""The append-only log of records, shared by any number of writers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from tilewright.errors import RecordError
from tilewright.records import query
from tilewright.records.record import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Problem", "RecordStore"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A line of a log that was skipped."""

    line: int
    reason: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class RecordStore:
    """A log of records, one a line.

    Appending writes the whole line at once to the end of the file, under a lock beside it, so several
    processes may share a log. Reading never fails on content: lines that are torn, foreign, damaged
    or duplicates are skipped and listed in `problems`.

    Parameters
    ----------
    path : path
        Created, with its folders, by the first `append`.
    fsync_s : float or None
        At most this many seconds of records are at risk when the machine loses power; 0 syncs every
        record, None leaves it to the operating system until `flush`. A killed process loses none.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync_s: float | None = 1.0) -> None:
        self.path = Path(path)
        self.fsync_s = fsync_s
        self._lock = FileLock(str(self.path) + ".lock")
        self._synced_at = 0.0
        self._unsynced = False
        self._forget()
        self.refresh()

    def _forget(self) -> None:
        self._records: list[Record] = []
        self._by_task: dict[tuple[str, str], list[Record]] = {}
        self._lines: dict[str, int] = {}  # checksum -> line number
        self._problems: list[Problem] = []
        self._tail: Problem | None = None
        self._offset = 0
        self._n_lines = 0
        self._inode: int | None = None

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records))

    def __repr__(self) -> str:
        return (
            f"RecordStore({str(self.path)!r}, {len(self)} records, {len(self.problems)} problems)"
        )

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    @property
    def records(self) -> tuple[Record, ...]:
        """All readable records, in file order."""
        return tuple(self._records)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The lines that were skipped, and why."""
        return (*self._problems, self._tail) if self._tail else tuple(self._problems)

    def of_task(self, workload: str, target: str) -> tuple[Record, ...]:
        """The records of a workload key on a target fingerprint."""
        return tuple(self._by_task.get((workload, target), ()))

    def best(self, workload: str, target: str) -> Record | None:
        """The record to compile with (see `records.query.best`), or None."""
        return query.best(self.of_task(workload, target), workload, target)

    def nearest(self, anchor: str, target: str) -> tuple[Record, ...]:
        """The best record of each workload with this anchor (see `records.query.nearest`)."""
        return query.nearest(self._records, anchor, target)

    def similar(self, name: str, target: str) -> tuple[Record, ...]:
        """The best records of the same kind of workload (see `records.query.similar`)."""
        kind = query.shape_of(name)[0]
        found = (
            self.best(w, t)
            for (w, t), rs in self._by_task.items()
            if t == target and query.shape_of(rs[0].name)[0] == kind
        )
        return query.similar((r for r in found if r is not None), name)

    def to_frame(self) -> pd.DataFrame:
        """All records as a table (see `records.frame.to_frame`)."""
        from tilewright.records.frame import to_frame

        return to_frame(self._records)

    def append(self, *records: Record) -> None:
        """Write records at the end of the log, all or none; they are on their way to disk when this returns.

        Raises
        ------
        RecordError
            If they cannot be written, for example because the disk is full. The log is as it was before.
        """
        if not records:
            return
        text = "".join(r.to_line() + "\n" for r in records)
        try:
            self._append(text.encode())
        except OSError as error:
            raise RecordError(
                f"append({self.path}): {len(records)} records could not be written: {error.strerror or error}; "
                f"the {len(self)} records in the log are untouched; make room, then run the same again"
            ) from error

    def _append(self, data: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self.refresh()
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                # Under the lock nobody is writing: a last line without its end was torn by a crash.
                _write_or_undo(fd, b"\n" * (self._tail is not None) + data)
                self._unsynced = True
                if self.fsync_s is not None and time.monotonic() - self._synced_at >= self.fsync_s:
                    self._sync(fd)
            finally:
                os.close(fd)
            self.refresh()

    def flush(self) -> None:
        """Force what was appended to the disk."""
        if self._unsynced:
            fd = os.open(self.path, os.O_RDONLY)
            try:
                self._sync(fd)
            finally:
                os.close(fd)

    def _sync(self, fd: int) -> None:
        os.fsync(fd)
        self._synced_at, self._unsynced = time.monotonic(), False

    def refresh(self) -> int:
        """Read what was appended since, by anyone.

        Returns
        -------
        int
            Number of new records.
        """
        try:
            file = open(self.path, "rb")
        except FileNotFoundError:
            self._forget()
            return 0
        with file:
            stat = os.fstat(file.fileno())
            if (
                self._inode is not None and stat.st_ino != self._inode
            ) or stat.st_size < self._offset:
                self._forget()  # the file was replaced or cut: read it anew
            self._inode = stat.st_ino
            file.seek(self._offset)
            data = file.read()
        before = len(self._records)
        whole = data.rfind(b"\n") + 1
        for raw in data[:whole].split(b"\n")[:-1]:
            self._n_lines += 1
            self._read(raw)
        self._offset += whole
        rest = data[whole:]
        self._tail = (
            Problem(self._n_lines + 1, "incomplete: it has no line end", _shorten(rest))
            if rest
            else None
        )
        return len(self._records) - before

    def _read(self, raw: bytes) -> None:
        if not raw.strip():
            return
        try:
            record = Record.from_line(raw.decode())
        except (RecordError, UnicodeDecodeError) as e:
            reason = str(e) if isinstance(e, RecordError) else "record line: not UTF-8 text"
            self._problems.append(Problem(self._n_lines, reason, _shorten(raw)))
            return
        checksum = record.checksum
        if checksum in self._lines:
            reason = f"duplicate of line {self._lines[checksum]}"
            self._problems.append(Problem(self._n_lines, reason, _shorten(raw)))
            return
        self._lines[checksum] = self._n_lines
        self._records.append(record)
        self._by_task.setdefault(record.task_key, []).append(record)


def write_new(path: Path, records: Iterable[Record]) -> int:
    """Write a log that must not exist yet, all or nothing; return the number of records."""
    if path.exists():
        raise RecordError(f"write({path}): the file exists; choose another name or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    n = 0
    try:
        with open(temporary, "wb") as file:
            for n, record in enumerate(records, 1):
                file.write((record.to_line() + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(
            temporary, path
        )  # unlike a rename, this refuses to replace a file that came up meanwhile
    except FileExistsError:
        raise RecordError(
            f"write({path}): the file exists; choose another name or remove it"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return n


def _write_or_undo(fd: int, data: bytes) -> None:
    """Append all of the data, or cut the file back to what it was."""
    size = os.fstat(fd).st_size
    try:
        _write_all(fd, data)
    except OSError:
        os.ftruncate(fd, size)
        raise


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _shorten(raw: bytes, n: int = 80) -> str:
    text = raw.decode(errors="replace")
    return text if len(text) <= n else text[: n - 3] + "..."

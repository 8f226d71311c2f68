"""A sidecar index of a log: lookups in a million records without reading them all."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tilewright.errors import RecordError
from tilewright.records import query
from tilewright.records.record import Record, Stage

__all__ = ["LogIndex", "index_path"]

FORMAT = 1
CHUNK = 1 << 22
RACY_S = 2.0  # a file changed so shortly before may change again without a new time stamp

_TABLES = """
CREATE TABLE log (format INT, inode INT, size INT, mtime INT, covered INT, crc INT, lines INT, problems INT);
CREATE TABLE tasks (id INTEGER PRIMARY KEY, workload TEXT, anchor TEXT, name TEXT, target TEXT, best INT,
    UNIQUE (workload, target));
CREATE INDEX of_target ON tasks (target, anchor);
CREATE TABLE records (id INTEGER PRIMARY KEY, task INT, offset INT, length INT, checksum BLOB UNIQUE,
    row_id TEXT, value REAL, final INT, time REAL, trial INT);
CREATE INDEX of_task ON records (task);
"""


class _Entry(NamedTuple):
    """What the index keeps of a correct record: enough to choose the winner."""

    id: int
    workload: str
    row_id: str
    value: float
    final: int
    time: float
    trial: int

    @property
    def ok(self) -> bool:
        return True

    @property
    def stage(self) -> Stage:
        return Stage.FINAL if self.final else Stage.TRIAL


class _State(NamedTuple):
    """How far the index has read, and what the log was then."""

    format: int
    inode: int
    size: int
    mtime: int
    covered: int
    crc: int
    lines: int
    problems: int


def index_path(log: str | os.PathLike[str]) -> Path:
    """Where the index of a log lies: beside it, with ``.index`` after the name."""
    path = Path(log)
    return path.with_name(path.name + ".index")


class LogIndex:
    """Lookups in a log by its index, an SQLite file which is made and brought up to date as needed.

    The index is believed when the log's inode, size and time of change are what it saw. Otherwise the
    checksum of all that it covers is compared: if it holds, only what was appended since is read; if
    not, the index is made anew. What a lookup returns is read from the log and checked, so the index is
    never more than a hint. Any number of processes may append to the log and use the index. Where it cannot be
    written, it is held in memory.

    Parameters
    ----------
    path : path
        The log; it must exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: BinaryIO | None = None
        if not self.path.is_file():
            raise RecordError(f"LogIndex({self.path}): no such log")
        self._db = self._open()
        self.refresh()

    def __repr__(self) -> str:
        return f"LogIndex({str(self.path)!r}, {len(self)} records, {self.n_problems} problems)"

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM records").fetchone()[0])

    def __enter__(self) -> LogIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the log and the index."""
        self._db.close()
        if self._file is not None:
            self._file.close()

    @property
    def n_problems(self) -> int:
        """How many lines were skipped; `RecordStore` says which and why."""
        state = self._state()
        assert state is not None
        return state.problems

    def best(self, workload: str, target: str) -> Record | None:
        """The record to compile with (see `records.query.best`), or None."""
        found = self._winners("t.workload = ? AND t.target = ?", workload, target)
        return found[0] if found else None

    def nearest(self, anchor: str, target: str) -> tuple[Record, ...]:
        """The best record of each workload with this anchor (see `records.query.nearest`)."""
        return query.in_order(self._winners("t.anchor = ? AND t.target = ?", anchor, target))

    def similar(self, name: str, target: str) -> tuple[Record, ...]:
        """The best records of the same kind of workload (see `records.query.similar`)."""
        kind = query.shape_of(name)[0] + "["
        where = "t.target = ? AND substr(t.name, 1, ?) = ?"
        return query.similar(self._winners(where, target, len(kind), kind), name)

    def tasks(self) -> list[tuple[str, str]]:
        """Workload key and target fingerprint of every task, in order of first appearance."""
        return self._db.execute("SELECT workload, target FROM tasks ORDER BY id").fetchall()

    def of_task(self, workload: str, target: str) -> tuple[Record, ...]:
        """The records of a workload key on a target fingerprint."""
        return tuple(
            self._select(
                "tasks t JOIN records r ON r.task = t.id WHERE t.workload = ? AND t.target = ? ORDER BY r.id",
                (workload, target),
            )
        )

    def _winners(self, where: str, *values: str | int) -> list[Record]:
        return self._select(f"tasks t JOIN records r ON t.best = r.id WHERE {where}", values)

    def _select(self, source: str, values: tuple[str | int, ...]) -> list[Record]:
        """Records by a query for their places; a damaged index is made anew, once."""
        asked = tuple(_text(v) if isinstance(v, str) else v for v in values)
        statement = f"SELECT r.offset, r.length, r.checksum FROM {source}"
        try:
            return [self._read(*row) for row in self._db.execute(statement, asked).fetchall()]
        except (RecordError, sqlite3.DatabaseError):
            self._start_anew()
            return [self._read(*row) for row in self._db.execute(statement, asked).fetchall()]

    def _read(self, offset: int, length: int, checksum: bytes) -> Record:
        assert self._file is not None
        raw = os.pread(self._file.fileno(), length, offset)
        try:
            record = Record.from_line(raw.decode())
        except (RecordError, UnicodeDecodeError) as error:
            raise RecordError(
                f"LogIndex({self.path}): the log was changed at byte {offset} while it was read ({error}); open it again"
            ) from None
        if bytes.fromhex(record.checksum) != checksum:
            raise RecordError(
                f"LogIndex({self.path}): another record is at byte {offset}; open it again"
            )
        return record

    # ---------------------------------------------------------- keeping up

    def refresh(self) -> int:
        """Read what was appended since, by anyone; make the index anew if the log was changed.

        Returns
        -------
        int
            Number of new records.
        """
        if self._file is not None:
            self._file.close()
        self._file = open(self.path, "rb")
        try:
            if self._current(self._state()):
                return 0
        except (sqlite3.DatabaseError, TypeError):
            self._start_anew()
            return len(self)
        try:
            return self._catch_up()
        except sqlite3.DatabaseError:  # read-only, locked for long, damaged, or the disk is full
            self._db.close()
            self._db = _connect(":memory:")
            return self._catch_up()

    def _start_anew(self) -> None:
        """Index the log as it is now in memory: the file was damaged, or the log changed under us."""
        self._db.close()
        self._db = _connect(":memory:")
        assert self._file is not None
        self._file.close()
        self._file = open(self.path, "rb")
        self._catch_up()
        if _is_sqlite(index_path(self.path)):
            index_path(self.path).unlink(missing_ok=True)  # the next to open the log makes another

    def _open(self) -> sqlite3.Connection:
        path = index_path(self.path)
        try:
            return _connect(str(path))
        except sqlite3.OperationalError:
            return _connect(":memory:")
        except sqlite3.DatabaseError:
            if not _is_sqlite(path):  # it is not ours
                return _connect(":memory:")
            path.unlink(missing_ok=True)
            return _connect(str(path))

    def _state(self) -> _State | None:
        row = self._db.execute("SELECT * FROM log").fetchone()
        return None if row is None else _State(*row)

    def _current(self, state: _State | None) -> bool:
        assert self._file is not None
        stat = os.fstat(self._file.fileno())
        seen = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return state is not None and seen == (state.inode, state.size, state.mtime)

    def _catch_up(self) -> int:
        assert self._file is not None
        with self._db:
            self._db.execute(
                "BEGIN IMMEDIATE"
            )  # one process at a time; the others find the work done
            state = self._state()
            if self._current(state):
                return 0
            stat = os.fstat(self._file.fileno())
            if state is None or not _covers(self._file, state, stat.st_size):
                for table in ("log", "tasks", "records"):
                    self._db.execute(f"DELETE FROM {table}")
                state = _State(FORMAT, 0, 0, 0, 0, 0, 0, 0)
            n, state = self._add(state, stat.st_size)
            racy = time.time() - stat.st_mtime < RACY_S
            mtime = 0 if racy else stat.st_mtime_ns
            state = state._replace(inode=stat.st_ino, size=stat.st_size, mtime=mtime)
            self._db.execute("DELETE FROM log")
            self._db.execute(f"INSERT INTO log VALUES ({','.join('?' * len(state))})", state)
            return n

    def _add(self, state: _State, size: int) -> tuple[int, _State]:
        """Index the whole lines after what is covered."""
        assert self._file is not None
        n, lines, problems, crc, offset = 0, state.lines, state.problems, state.crc, state.covered
        tasks: dict[tuple[str, str], int] = {
            (w, t): i for i, w, t in self._db.execute("SELECT id, workload, target FROM tasks")
        }
        touched: set[int] = set()
        for raw in _lines(self._file, offset, size):
            lines += 1
            crc = zlib.crc32(raw, crc)
            length = len(raw) - 1
            if raw.strip():
                try:
                    r = Record.from_line(raw.decode())
                    new = self._insert(r, tasks, touched, offset, length)
                except (RecordError, UnicodeDecodeError):
                    new = False
                n, problems = n + new, problems + (not new)
            offset += len(raw)
        self._choose(touched)
        return n, state._replace(covered=offset, crc=crc, lines=lines, problems=problems)

    def _insert(
        self,
        r: Record,
        tasks: dict[tuple[str, str], int],
        touched: set[int],
        offset: int,
        length: int,
    ) -> bool:
        task = tasks.get(r.task_key)
        if task is None:
            cursor = self._db.execute(
                "INSERT INTO tasks (workload, anchor, name, target) VALUES (?, ?, ?, ?)",
                tuple(map(_text, (r.workload, r.anchor, r.name, r.target))),
            )
            task = tasks[r.task_key] = int(cursor.lastrowid or 0)
        value = r.value if r.ok else None
        row = (task, offset, length, bytes.fromhex(r.checksum), _text(r.row_id), value,
               r.stage is Stage.FINAL, float(r.time), r.trial)  # fmt: skip
        added = self._db.execute(
            "INSERT OR IGNORE INTO records (task, offset, length, checksum, row_id, value, final, time, trial) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        ).rowcount
        if added:
            touched.add(task)
        return bool(added)

    def _choose(self, tasks: set[int]) -> None:
        for task in tasks:
            entries = self._db.execute(
                "SELECT r.id, t.workload, r.row_id, r.value, r.final, r.time, r.trial FROM records r "
                "JOIN tasks t ON r.task = t.id WHERE r.task = ? AND r.value IS NOT NULL",
                (task,),
            )
            best = query.winner(_Entry(*e) for e in entries)
            number = best.id if best else None
            self._db.execute("UPDATE tasks SET best = ? WHERE id = ?", (number, task))


def _text(text: str) -> str:
    """Text that SQLite can hold: without halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode()


def _is_sqlite(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False


def _connect(name: str) -> sqlite3.Connection:
    db = sqlite3.connect(name, timeout=60, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == FORMAT:
            db.execute("SELECT count(*) FROM log, tasks, records WHERE 0").fetchone()
            return db
        with db:
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("an index of another format")
                for statement in _TABLES.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {FORMAT}")
        return db
    except BaseException:
        db.close()
        raise


def _covers(file: BinaryIO, state: _State, size: int) -> bool:
    """Whether the log still begins with what the index was made of."""
    if size < state.covered or state.format != FORMAT:
        return False
    crc, left = 0, state.covered
    file.seek(0)
    while left:
        data = file.read(min(CHUNK, left))
        if not data:
            return False
        crc, left = zlib.crc32(data, crc), left - len(data)
    return crc == state.crc


def _lines(file: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    """The lines with their ends between two offsets; a last one without an end is left for later."""
    file.seek(offset)
    left, rest = size - offset, b""
    while left > 0:
        data = file.read(min(CHUNK, left))
        if not data:
            break
        left -= len(data)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line + b"\n"

"""How a log is opened for lookups: whole, or by its index."""

from __future__ import annotations

import os
from typing import Protocol

from tilewright.errors import RecordError
from tilewright.records.index import LogIndex, index_path
from tilewright.records.record import Record
from tilewright.records.store import RecordStore

__all__ = ["Lookups", "open_lookups"]

INDEXED_BYTES = 4 << 20  # a log of this size takes longer to read than an index


class Lookups(Protocol):
    """What compilation asks of a log; `RecordStore` and `LogIndex` answer alike."""

    def best(self, workload: str, target: str) -> Record | None: ...
    def nearest(self, anchor: str, target: str) -> tuple[Record, ...]: ...
    def similar(self, name: str, target: str) -> tuple[Record, ...]: ...


def open_lookups(path: str | os.PathLike[str]) -> RecordStore | LogIndex:
    """Open a log for lookups: by its index where it has one or is large, else by reading it.

    Raises
    ------
    RecordError
        If there is no such log.
    """
    if not os.path.isfile(path):
        raise RecordError(f"open({os.fspath(path)!r}): no such log; `tune` writes one")
    if index_path(path).exists() or os.path.getsize(path) >= INDEXED_BYTES:
        return LogIndex(path)
    return RecordStore(path)

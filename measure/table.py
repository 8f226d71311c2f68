"""Tables of measured candidates: what search research needs instead of a quiet machine."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import RecordError
from tilewright.measure.outcome import MeasureResult, Status
from tilewright.schedule.trace import Trace

__all__ = ["Table", "digest"]

FORMAT = 1
STATUSES = tuple(Status)


def digest(trace: Trace) -> int:
    """64 bits that name a concrete trace, the same in every process."""
    text = json.dumps(trace.to_json(), sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


@dataclass(frozen=True)
class Table:
    """Measured candidates of one task.

    Attributes
    ----------
    task_key : str
        Workload key and target fingerprint.
    rows : (n, 1 + n_columns) int32
        As in the space that they were drawn from.
    digests : (n,) uint64
        Of their traces: what a replay looks up.
    statuses : (n,) uint8
        Positions in `Status`.
    values : (n,) float64
        Comparable seconds; infinite for failures.
    about : dict
        Where the table comes from, as JSON values: operator, target, and whether it is synthetic.
    """

    task_key: str
    rows: NDArray[np.int32]
    digests: NDArray[np.uint64]
    statuses: NDArray[np.uint8]
    values: NDArray[np.float64]
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, task_key: str, rows: NDArray[np.int32], traces: list[Trace], results: list[MeasureResult],
        about: dict[str, Any],
    ) -> Table:  # fmt: skip
        """Collect what a pool answered; lost candidates, of which nothing is known, are left out."""
        known = [k for k, r in enumerate(results) if r.status is not Status.LOST]
        return cls(
            task_key, rows[known], np.array([digest(traces[k]) for k in known], np.uint64),
            np.array([STATUSES.index(results[k].status) for k in known], np.uint8),
            np.array([results[k].value for k in known], np.float64), about,
        )  # fmt: skip

    @property
    def best_s(self) -> float:
        """The fastest candidate."""
        return float(self.values.min())

    def result(self, number: int, ticket: int) -> MeasureResult:
        """What measuring that row gave, as a new result."""
        status, value = STATUSES[self.statuses[number]], float(self.values[number])
        if status is not Status.OK:
            return MeasureResult(ticket, status, message=f"recorded: {status}")
        return MeasureResult(ticket, status, (value,), (), value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as one compressed file of plain arrays."""
        head = json.dumps({"format": FORMAT, "task_key": self.task_key, "about": self.about})
        with open(path, "wb") as file:
            np.savez_compressed(
                file, head=np.array(head), rows=self.rows, digests=self.digests, statuses=self.statuses,
                values=self.values,
            )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Table:
        """Read what `save` wrote.

        Raises
        ------
        RecordError
            If the file is no table, or of another format.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
                head = json.loads(str(found["head"]))
                rows, digests, statuses, values = (
                    found[n] for n in ("rows", "digests", "statuses", "values")
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise RecordError(f"Table.load({os.fspath(path)!r}): not a table ({error!r})") from None
        if head.get("format") != FORMAT:
            raise RecordError(
                f"Table.load({os.fspath(path)!r}): format {head.get('format')!r}, this version reads {FORMAT}; record it again"
            )
        return cls(head["task_key"], rows, digests, statuses, values, head["about"])

"""Records as a pandas table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tilewright.records.record import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "to_frame"]

COLUMNS = (
    "workload", "anchor", "name", "target", "study", "trial", "stage", "default", "status", "value",
    "spread", "n_samples", "sketch", "row_id", "message", "build_s", "run_s", "host", "time", "seed",
    "package", "llvm",
)  # fmt: skip


def to_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row a record, one column a field; each knob is a column ``knob.<name>``.

    Returns
    -------
    DataFrame
        ``value`` in seconds (infinite for failures), ``spread`` the standard deviation of the samples
        over their mean, ``time`` as a UTC timestamp.
    """
    import pandas as pd

    rows = [_row(r) for r in records]
    knobs = sorted({k for row in rows for k in row if k.startswith("knob.")})
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *knobs])
    frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
    return frame


def _row(r: Record) -> dict[str, object]:
    p = r.provenance
    spread = (
        statistics.pstdev(r.seconds) / statistics.fmean(r.seconds) if r.seconds else float("nan")
    )
    row: dict[str, object] = {
        "workload": r.workload, "anchor": r.anchor, "name": r.name, "target": r.target,
        "study": p.study, "trial": r.trial, "stage": r.stage.value, "default": r.default,
        "status": r.status, "value": r.value, "spread": spread, "n_samples": len(r.seconds),
        "sketch": r.sketch, "row_id": r.row_id, "message": r.message, "build_s": r.build_s,
        "run_s": r.run_s, "host": p.host, "time": p.time, "seed": p.seed, "package": p.package,
        "llvm": p.llvm,
    }  # fmt: skip
    return row | {f"knob.{k}": v for k, v in r.knobs}

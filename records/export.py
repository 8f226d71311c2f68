"""Logs as files that other programs read: CSV and Parquet."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.errors import RecordError
from tilewright.records.frame import to_frame
from tilewright.records.record import Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export", "write_frame"]


def export(records: Iterable[Record], path: str | os.PathLike[str]) -> int:
    """Write the table of `to_frame` to a new file; the ending of its name, .csv or .parquet, is the format.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    RecordError
        If the file exists, its ending is another one, or Parquet's library is not installed.
    """
    frame = to_frame(records)
    for column in frame.columns:
        if column.startswith("knob.") and frame[column].map(type).nunique() > 1:
            frame[column] = frame[column].map(lambda v: None if v != v else str(v))
    return write_frame(frame, path)


def write_frame(frame: pd.DataFrame, path: str | os.PathLike[str]) -> int:
    """Write a table to a new file (see `export`)."""
    out = Path(path)
    if out.suffix not in (".csv", ".parquet"):
        raise RecordError(
            f"export({out}): the name ends in {out.suffix!r}; choose .csv or .parquet"
        )
    if out.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise RecordError(
            f"export({out}): Parquet needs pyarrow, which is not installed; "
            "pip install 'tilewright[parquet]', or choose .csv"
        )
    if out.exists():
        raise RecordError(f"export({out}): the file exists; choose another name or remove it")
    if out.suffix == ".csv":
        frame.to_csv(out, index=False)
    else:
        frame.to_parquet(out, index=False, engine="pyarrow")
    return len(frame)

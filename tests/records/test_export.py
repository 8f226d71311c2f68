from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pandas as pd
import pytest

from tilewright.errors import RecordError
from tilewright.records import Record, export

RECORDS = [
    Record("w", "a", "w", "t", "x", "OK", 1.5e-3, knobs=(("k", 4), ("m", True)), seconds=(1e-3, 2e-3)),
    Record("w", "a", "w", "t", "y", "WRONG", math.inf, knobs=(("k", "all"),), message='says "no",\nthen stops'),
]  # fmt: skip


def test_a_csv_file_reads_back_as_the_table(tmp_path: Path) -> None:
    assert export(RECORDS, tmp_path / "out.csv") == 2
    frame = pd.read_csv(tmp_path / "out.csv")
    assert list(frame["row_id"]) == ["x", "y"] and list(frame["value"]) == [1.5e-3, math.inf]
    assert frame["message"][1] == RECORDS[1].message and list(frame["knob.k"]) == ["4", "all"]


def test_parquet_reads_back_or_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    if importlib.util.find_spec("pyarrow") is not None:
        assert export(RECORDS, path) == 2
        frame = pd.read_parquet(path)
        assert list(frame["value"]) == [1.5e-3, math.inf] and list(frame["knob.k"]) == ["4", "all"]
    else:
        with pytest.raises(
            RecordError,
            match=r"needs pyarrow, which is not installed; pip install 'tilewright\[parquet\]'",
        ):
            export(RECORDS, path)
        assert not path.exists()


def test_a_missing_library_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RecordError, match="Parquet needs pyarrow"):
        export(RECORDS, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_other_endings_and_existing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="ends in '.xls'; choose .csv or .parquet"):
        export(RECORDS, tmp_path / "out.xls")
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(RecordError, match="the file exists"):
        export(RECORDS, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"

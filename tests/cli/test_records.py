"""``tilewright records`` on small logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.cli import invoke
from tilewright.records import Provenance, Record, RecordStore


def record(row_id: str, value: float | None, *, trial: int, default: bool = False) -> Record:
    ok = value is not None
    return Record(
        workload="w" * 32,
        anchor="a" * 32,
        name="matmul[8x8x8,f32]",
        target="cpu-t1",
        row_id=row_id,
        status="OK" if ok else "WRONG",
        value=value if value is not None else float("inf"),
        trace_text='[["parallel","i"]]' if ok else "null",
        knobs=(("i.t1", 4),),
        message="" if ok else "C[0, 0] is 1.5, not 1",
        trial=trial,
        default=default,
        provenance=Provenance(host="here", study="s"),
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    RecordStore(path).append(
        record("zero", 0.004, trial=0, default=True),
        record("one", 0.001, trial=1),
        record("two", None, trial=2),
    )
    return path


def test_show_prints_a_line_a_task(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "show", str(log)]) == 0
    out = capsys.readouterr().out
    (line,) = [text for text in out.splitlines() if "matmul[8x8x8,f32]" in text]
    cells = [c.strip() for c in line.strip("│ \n").split("│")]
    assert cells == ["matmul[8x8x8,f32]", "cpu-t1", "3", "1", "4 ms", "1 ms", "4.00x"]


def test_show_all_prints_every_trial(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "show", str(log), "--all"]) == 0
    out = capsys.readouterr().out
    assert out.count("matmul[8x8x8,f32]") == 3
    assert "C[0, 0] is 1.5, not 1" in out


def test_show_trace_prints_the_best_schedule(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "show", str(log), "--trace"]) == 0
    assert "s.parallel('i')" in capsys.readouterr().out


def test_a_damaged_line_is_named_and_the_rest_is_shown(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with log.open("a") as file:
        file.write("not a record\n")
    assert invoke(["records", "show", str(log)]) == 0
    captured = capsys.readouterr()
    assert "skipped line 4" in captured.err
    assert "matmul[8x8x8,f32]" in captured.out


def test_validate_fails_on_a_damaged_line_only(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["records", "validate", str(log)]) == 0
    with log.open("a") as file:
        file.write("not a record\n")
    assert invoke(["records", "validate", str(log)]) == 1
    assert "skipped line 4" in capsys.readouterr().err


def test_merge_adds_what_is_missing(log: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.jsonl", tmp_path / "out.jsonl"
    RecordStore(other).append(record("one", 0.001, trial=1), record("three", 0.002, trial=3))
    assert invoke(["records", "merge", str(log), str(other), "-o", str(out)]) == 0
    assert sorted(r.row_id for r in RecordStore(out)) == ["one", "three", "two", "zero"]


def test_distill_keeps_the_winner_and_the_default(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "best.jsonl"
    assert invoke(["records", "distill", str(log), "-o", str(out)]) == 0
    assert sorted(r.row_id for r in RecordStore(out)) == ["one", "zero"]


def test_distill_never_replaces_a_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "distill", str(log), "-o", str(log)]) == 1
    assert "the file exists" in capsys.readouterr().err

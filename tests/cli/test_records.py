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


def test_dedup_writes_a_new_log(log: Path, tmp_path: Path) -> None:
    RecordStore(log).append(record("one", 0.003, trial=9))
    assert invoke(["records", "dedup", str(log), "-o", str(tmp_path / "out")]) == 0
    assert [r.trial for r in RecordStore(tmp_path / "out")] == [0, 1, 2]


def test_diff_prints_what_changed_and_can_fail(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = tmp_path / "slower.jsonl"
    RecordStore(slower).append(record("two", 0.002, trial=0))
    assert invoke(["records", "diff", str(log), str(slower)]) == 0
    out = capsys.readouterr().out
    (line,) = [text for text in out.splitlines() if "matmul[8x8x8,f32]" in text]
    cells = [c.strip() for c in line.strip("│ \n").split("│")]
    assert cells == ["matmul[8x8x8,f32]", "cpu-t1", "1 ms", "2 ms", "0.50x", "worse"]
    assert "0 better, 1 worse, 0 same, 0 new, 0 missing" in out
    assert invoke(["records", "diff", str(log), str(slower), "--fail-if-worse"]) == 1
    assert invoke(["records", "diff", str(slower), str(log), "--fail-if-worse"]) == 0
    assert (
        invoke(["records", "diff", str(log), str(slower), "--tolerance", "150", "--fail-if-worse"])
        == 0
    )


def test_stats_prints_failures_by_kind(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "stats", str(log)]) == 0
    out = capsys.readouterr().out
    assert "1 WRONG" in out and "matmul[8x8x8,f32]" in out


def test_export_writes_a_csv_file(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert invoke(["records", "export", str(log), "-o", str(out)]) == 0
    assert "3 rows" in capsys.readouterr().out and out.read_text().count("matmul[8x8x8,f32]") == 3
    assert invoke(["records", "export", str(log), "-o", str(tmp_path / "out.txt")]) == 1


def test_import_shows_the_log_of_another_tuner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ansor.json"
    path.write_text(
        '{"i": [["[\\"mm\\", 8]", "llvm"], [[], []]], "r": [[0.002], 0, 1, 2], "v": "v0.6"}\nbad\n'
    )
    assert invoke(["records", "import", str(path)]) == 0
    captured = capsys.readouterr()
    assert "mm[8]" in captured.out and "2 ms" in captured.out and "skipped line 2" in captured.err
    assert invoke(["records", "import", str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert "mm[8]" in (tmp_path / "out.csv").read_text()


def test_index_makes_the_index(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "index", str(log)]) == 0
    assert "log.jsonl.index: 3 records of 1 tasks, 0 lines skipped" in capsys.readouterr().out

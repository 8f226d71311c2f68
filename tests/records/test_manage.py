from __future__ import annotations

import math
from pathlib import Path

import pytest

from tilewright.errors import RecordError
from tilewright.records import RecordStore, dedup, distill, merge, validate
from tilewright.records.record import Record, Stage


def trial(
    row_id: str,
    value: float,
    *,
    workload: str = "w",
    default: bool = False,
    final: bool = False,
    trace: str = "[]",
    n: int = 0,
) -> Record:
    return Record(
        workload, "a", f"{workload}[8,f32]", "t", row_id, "OK" if math.isfinite(value) else "RUN_CRASH", value,
        trace_text=trace, default=default, stage=Stage.FINAL if final else Stage.TRIAL, trial=n,
    )  # fmt: skip


def log(path: Path, *records: Record) -> Path:
    RecordStore(path).append(*records)
    return path


def test_merge_adds_what_is_missing_once_and_reports_the_rest(tmp_path: Path) -> None:
    a = log(tmp_path / "a", trial("x", 1.0), trial("y", 2.0))
    b = log(tmp_path / "b", trial("y", 2.0), trial("z", 3.0))
    with open(b, "a") as file:
        file.write("garbage\n")
    out = log(tmp_path / "out", trial("x", 1.0))
    report = merge([a, b], out)
    assert [r.row_id for r in RecordStore(out)] == ["x", "y", "z"]
    assert (report.n_read, report.n_added, report.n_present) == (4, 2, 2)
    assert [(path, p.line) for path, p in report.problems] == [(str(b), 3)]
    assert merge([a, b], out).n_added == 0


def test_merge_refuses_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such log"):
        merge([tmp_path / "absent"], tmp_path / "out")


def test_dedup_keeps_the_fastest_of_each_candidate_and_stage(tmp_path: Path) -> None:
    source = log(
        tmp_path / "a", trial("x", math.inf, n=0), trial("x", 2.0, n=1), trial("y", 1.0, n=2), trial("x", 1.5, n=3),
        trial("x", 1.6, final=True, n=4), trial("z", math.inf, n=5), trial("x", 9.0, workload="v", n=6),
    )  # fmt: skip
    report = dedup(source, tmp_path / "out")
    assert [r.trial for r in RecordStore(tmp_path / "out")] == [2, 3, 4, 5, 6]
    assert (report.n_read, report.n_kept) == (7, 5)


def test_distill_keeps_the_winner_and_the_default_of_each_task(tmp_path: Path) -> None:
    source = log(
        tmp_path / "a", trial("0", 4.0, default=True), trial("x", 2.0), trial("y", 3.0),
        trial("0", 1.0, workload="v", default=True), trial("y", 3.0, workload="v"), trial("x", math.inf, workload="u"),
    )  # fmt: skip
    report = distill(source, tmp_path / "out")
    kept = RecordStore(tmp_path / "out")
    assert sorted((r.workload, r.row_id) for r in kept) == [("v", "0"), ("w", "0"), ("w", "x")]
    assert (report.n_kept, report.n_tasks, report.untuned) == (3, 3, ("u[8,f32]",))
    assert "none is correct for u[8,f32]" in str(report)


def test_a_distilled_log_has_the_same_winners(tmp_path: Path) -> None:
    source = log(
        tmp_path / "a", trial("0", 1.01, default=True), trial("x", 1.0), trial("x", 1.05, final=True), trial("y", 1.02),
        trial("y", 1.04, final=True),
    )  # fmt: skip
    distill(source, tmp_path / "out")
    before, after = RecordStore(source).best("w", "t"), RecordStore(tmp_path / "out").best("w", "t")
    assert before == after and after is not None and after.row_id == "y"


def test_distill_never_overwrites(tmp_path: Path) -> None:
    source = log(tmp_path / "a", trial("x", 1.0))
    target = log(tmp_path / "b", trial("y", 1.0))
    before = target.read_bytes()
    with pytest.raises(RecordError, match="the file exists; choose another name"):
        distill(source, target)
    assert target.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".lock") == ["a", "b"]


def test_validate_accepts_a_sound_log(tmp_path: Path) -> None:
    report = validate(log(tmp_path / "a", trial("x", 1.0), trial("y", math.inf, trace="null")))
    assert report.ok and report.outcomes == (("OK", 1), ("RUN_CRASH", 1))


def test_validate_finds_bad_lines_and_unreadable_traces(tmp_path: Path) -> None:
    path = log(tmp_path / "a", trial("x", 1.0, trace='[["split", 1.5]]'))
    with open(path, "a") as file:
        file.write("garbage\n")
    report = validate(path)
    assert not report.ok
    assert [p.line for p in report.problems] == [2]
    assert [row for row, _ in report.unreadable_traces] == ["x"]
    assert validate(path, traces=False).unreadable_traces == ()

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tilewright.records import Record, RecordStore, Stage, diff, stats


def trial(workload: str, row: str, value: float, **changes: Any) -> Record:
    status = changes.pop("status", "OK" if math.isfinite(value) else "WRONG")
    return Record(workload, "a", workload, "t", row, status, value, **changes)


def log(path: Path, *records: Record) -> RecordStore:
    store = RecordStore(path)
    store.append(*records)
    return store


def test_diff_tells_better_worse_same_new_and_missing(tmp_path: Path) -> None:
    nothing = trial("never", "x", math.inf)
    before = log(
        tmp_path / "a", trial("up", "x", 2.0), trial("down", "x", 1.0), trial("flat", "x", 1.0), trial("gone", "x", 1.0),
        trial("came", "x", math.inf), nothing,
    )  # fmt: skip
    after = log(
        tmp_path / "b", trial("up", "y", 1.0), trial("down", "y", 1.5), trial("flat", "y", 1.015), trial("gone", "x", math.inf),
        trial("came", "y", 3.0), trial("fresh", "y", 1.0), nothing,
    )  # fmt: skip
    found = {c.name: (c.verdict, c.speedup) for c in diff(before, after)}
    assert found == {
        "up": ("better", 2.0), "down": ("worse", pytest.approx(2 / 3)), "flat": ("same", pytest.approx(1 / 1.015)),
        "gone": ("missing", None), "came": ("new", None), "fresh": ("new", None),
    }  # fmt: skip
    assert {c.name: c.verdict for c in diff(before, after, tolerance=0.01)}["flat"] == "worse"


def test_a_log_has_no_difference_from_itself(tmp_path: Path) -> None:
    one = log(tmp_path / "a", trial("w", "x", 1.0), trial("v", "x", 2.0))
    assert {c.verdict for c in diff(one, one)} == {"same"}


def test_stats_count_trials_failures_by_kind_and_time(tmp_path: Path) -> None:
    store = log(
        tmp_path / "a", trial("w", "0", 4.0, default=True, build_s=1.0, run_s=2.0), trial("w", "x", 1.0, build_s=0.5),
        trial("w", "x", 1.5, stage=Stage.FINAL), trial("w", "y", math.inf), trial("w", "z", math.inf),
        trial("w", "u", math.inf, status="RUN_TIMEOUT", run_s=9.0), trial("v", "0", math.inf),
    )  # fmt: skip
    w, v = stats(store)
    assert (w.n_trials, w.n_finals, w.n_failed) == (5, 1, 3)
    assert w.failures == (("WRONG", 2), ("RUN_TIMEOUT", 1))
    assert (w.best, w.default, w.build_s, w.run_s) == (1.5, 4.0, 1.5, 11.0)
    assert (v.best, v.default, v.n_trials) == (None, None, 1)

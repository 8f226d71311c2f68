"""The search benchmark, on tables; nothing here looks at a time."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.search import curve_of, main, recorded_cases, trials_to
from benchmarks.tables import file_of, synthetic
from click.testing import CliRunner
from tests.tuner.doubles import FormulaPool, task

from tilewright.codegen.target import Target
from tilewright.opspec import parse
from tilewright.records import RecordStore
from tilewright.schedule.task import Task
from tilewright.tuner import Study

OPS = ("matmul:32x24x16", "softmax:16x64")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for op in OPS:
        t = Task(parse(op).workload, Target.host(1))
        made = synthetic(t, 150, {"op": op, "kernel": 0})
        made.save(file_of(folder, op, 0, 1, True))
    return folder


def test_rows_and_curves_of_every_searcher_model_and_seed(tables: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "rows.json", tmp_path / "curves.png"
    done = CliRunner().invoke(
        main,
        [
            "--tables", f"{tables}/*.npz", "--searchers", "evolutionary,random", "--models", "ridge,analytic",
            "--seeds", "2", "--trials", "24", "--json", str(out), "--plot", str(picture),
        ],
        catch_exceptions=False,
    )  # fmt: skip
    assert done.exit_code == 0 and "SYNTHETIC" in done.output
    rows = json.loads(out.read_text())
    assert len(rows) == 2 * 2 * 2 * 2
    assert set(rows[0]) == {
        "op", "threads", "seed", "searcher", "model", "trials", "seconds", "best_s", "trials_to_90", "trials_to_95",
    }  # fmt: skip
    assert all(r["trials"] == 24 and r["best_s"] > 0 for r in rows)
    for r in rows:
        if r["trials_to_95"] is not None:
            assert 1 <= r["trials_to_90"] <= r["trials_to_95"] <= 24
    guided = [r for r in rows if (r["searcher"], r["model"]) == ("evolutionary", "analytic")]
    assert all(r["trials_to_95"] is not None for r in guided), "the tables follow the draft model"
    assert picture.stat().st_size > 5000
    assert "| evolutionary | analytic | 4 |" in done.output


def test_the_best_known_is_that_of_the_whole_table(tables: Path) -> None:
    cases = list(recorded_cases([f"{tables}/*.npz"]))
    assert [c.op for c in cases] == [f"{op}.k0" for op in OPS]
    assert all(c.synthetic and c.tables[0].best_s > 0 for c in cases)


def test_trials_are_counted_from_one() -> None:
    curve = [math.inf, 4.0, 2.0, 1.0]
    assert trials_to(curve, 1.0, 1.0) == 4
    assert trials_to(curve, 1.0, 0.5) == 3
    assert trials_to(curve, 1.0, 0.25) == 2
    assert trials_to(curve, 0.5, 0.9) is None


def test_a_curve_begins_when_every_kernel_is_known(tmp_path: Path) -> None:
    from benchmarks.search import Case

    tasks = ((task(), 1.0), (task(64, 32, 16), 3.0))
    study = Study(tasks, RecordStore(tmp_path / "log"), FormulaPool()).run(20)
    curve = curve_of(Case("two", 1, tasks, {}), study.store, 20)
    assert np.isinf(curve[0]) and np.isfinite(curve[1])
    assert (np.diff(curve[1:]) <= 0).all() and curve[-1] == pytest.approx(study.model_seconds())


def test_unknown_names_are_refused() -> None:
    done = CliRunner().invoke(main, ["--searchers", "luck"])
    assert done.exit_code == 2 and "choose from evolutionary" in done.output
    done = CliRunner().invoke(main, ["--ops", "no such operator"])
    assert done.exit_code == 2 and "nothing to search" in done.output

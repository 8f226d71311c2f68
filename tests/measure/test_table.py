"""Recorded tables, and the pool that serves them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.tables import main, opened, record, synthetic
from click.testing import CliRunner
from tests.tuner.doubles import FormulaPool, task

from tilewright.errors import MeasureError, RecordError
from tilewright.measure import MeasureInput, ReplayPool, Status, Table
from tilewright.measure.table import digest
from tilewright.records import RecordStore, Stage
from tilewright.schedule.space import Space
from tilewright.schedule.subspace import SubSpace
from tilewright.schedule.trace import Step, Trace
from tilewright.tuner import Study

TASK = task(32, 24, 16)
ABOUT = {"op": "matmul:32x24x16", "kernel": 0}


@pytest.fixture(scope="module")
def table() -> Table:
    return record(TASK, FormulaPool(failures=True), 120, ABOUT)


@pytest.fixture(scope="module")
def inputs(table: Table) -> list[MeasureInput]:
    space = Space(TASK)
    return [MeasureInput(k, TASK, space.trace(r)) for k, r in enumerate(table.rows)]


def test_what_was_measured_is_served_again(table: Table, inputs: list[MeasureInput]) -> None:
    first = FormulaPool(failures=True).measure(inputs)
    again = ReplayPool([table]).measure(inputs)
    assert [(r.id, r.status, r.value) for r in first] == [(r.id, r.status, r.value) for r in again]
    assert {r.status for r in again} > {Status.OK}, "failures are part of a table"
    assert Status.LOST not in {r.status for r in again}


def test_each_candidate_gets_one_result_in_order(table: Table, inputs: list[MeasureInput]) -> None:
    pool = ReplayPool([table])
    pool.submit(inputs[:5])
    pool.submit(inputs[5:9])
    assert pool.pending == 9
    (own,) = pool.measure([inputs[20]])
    assert own.id == 20 and pool.pending == 9
    assert [r.id for r in pool.results(0.0)] == list(range(9))
    assert pool.pending == 0 and pool.results(0.0) == []


def test_strangers_are_lost_and_say_why(table: Table) -> None:
    strange = Trace((Step("split", ("i", (3,))),))
    other = task(8, 8, 8)
    pool = ReplayPool([table])
    a, b = pool.measure([MeasureInput(1, TASK, strange), MeasureInput(2, other, strange)])
    assert a.status is b.status is Status.LOST and a.value == math.inf
    assert a.message == "the table lacks this candidate" and b.message == "no table of this task"


def test_a_closed_pool_takes_nothing(table: Table, inputs: list[MeasureInput]) -> None:
    with ReplayPool([table]) as pool:
        pool.submit(inputs[:2])
    assert pool.pending == 0
    for call in (pool.submit, pool.measure):
        with pytest.raises(MeasureError, match="submit: the pool is closed"):
            call(inputs[:1])


def test_two_tables_of_one_task_are_refused(table: Table) -> None:
    with pytest.raises(MeasureError, match="two tables of one task"):
        ReplayPool([table, table])


def test_a_table_survives_its_file(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "t.npz")
    again = Table.load(tmp_path / "t.npz")
    assert again.task_key == table.task_key and again.about == table.about
    for name in ("rows", "digests", "statuses", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04torn"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(RecordError, match="not a table"):
        Table.load(tmp_path / "t.npz")


def test_tables_of_another_format_are_refused(tmp_path: Path) -> None:
    head = np.array(json.dumps({"format": 99}))
    np.savez(tmp_path / "t.npz", head=head, rows=0, digests=0, statuses=0, values=0)
    with pytest.raises(RecordError, match="format 99"):
        Table.load(tmp_path / "t.npz")


def test_the_digest_is_the_same_in_every_process() -> None:
    assert digest(Trace((Step("split", ("i", (3,))),))) == 13866713782851291347


def test_a_study_on_a_table_finds_its_best(tmp_path: Path) -> None:
    made = synthetic(TASK, 100, ABOUT)
    space = Space(TASK)
    study = Study(
        [(TASK, 1.0)], RecordStore(tmp_path / "log"), ReplayPool([made]),
        space_of=lambda _: SubSpace(space, made.rows),
    ).run(1000)  # fmt: skip
    trials = [r for r in study.store if r.stage is Stage.TRIAL]
    assert len(trials) == len(made.rows), "it ends when the table is used up"
    assert study.model_seconds() == made.best_s


def test_a_synthetic_table_says_so() -> None:
    made = synthetic(TASK, 64, ABOUT)
    assert made.about["synthetic"] is True and len(made.rows) == 64
    again = synthetic(TASK, 64, ABOUT)
    np.testing.assert_array_equal(made.values, again.values)
    assert np.isinf(synthetic(TASK, 300, ABOUT).values).any()


def test_a_table_that_no_longer_fits_its_space_is_refused() -> None:
    made = synthetic(TASK, 64, ABOUT)
    changed = Table(made.task_key, made.rows, made.digests + np.uint64(1), made.statuses, made.values, made.about)  # fmt: skip
    with pytest.raises(RecordError, match="recorded with other schedule rules"):
        opened(changed)


def test_tables_are_recorded_by_one_command(tmp_path: Path) -> None:
    command = ["--op", "matmul:16x16x16", "--limit", "16", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, command, catch_exceptions=False).exit_code == 0
    (path,) = tmp_path.glob("*.npz")
    found = Table.load(path)
    assert found.about["synthetic"] is False and "synthetic" not in path.name
    assert len(found.rows) == 16 and np.isfinite(found.values).any()
    checked, weight, part = opened(found)
    assert weight == 1.0 and part.size() == 16 and checked.key == found.task_key
    kept = path.stat().st_mtime_ns
    done = CliRunner().invoke(main, [*command, "--synthetic"], catch_exceptions=False)
    assert done.exit_code == 0
    assert {"synthetic" in p.name for p in tmp_path.glob("*.npz")} == {True, False}
    assert path.stat().st_mtime_ns == kept

"""Warm starts from the records of other shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tuner.doubles import FormulaPool, task

from tilewright.records import Record, RecordStore, Stage
from tilewright.schedule.space import Space
from tilewright.tuner import Evolutionary, RandomSearch, Seen, Study, WarmStart, transfer


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RecordStore:
    """A log of two matrix products."""
    tasks = [(task(96, 64, 48), 1.0), (task(200, 64, 48), 1.0)]
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    return Study(tasks, RecordStore(path), FormulaPool()).run(40).store


def test_winners_of_other_shapes_become_valid_rows(store: RecordStore) -> None:
    records = store.records
    space = Space(task(64, 48, 32))
    rows = transfer(space, records, 8)
    assert 1 <= len(rows) <= 2, "one for each workload"
    assert space.valid(rows).all() and rows.dtype == np.int32


def test_a_row_for_the_same_shape_is_the_winner_itself(store: RecordStore) -> None:
    t = task(96, 64, 48)
    winner = store.best(t.workload.key, t.target.fingerprint)
    assert winner is not None
    alias = [replace(r, workload="0" * 32) for r in store.of_task(*winner.task_key)]
    (row,) = transfer(Space(t), alias, 8)
    assert tuple(row) == winner.row


def test_knobs_move_to_the_nearest_value() -> None:
    space = Space(task(64, 48, 32))
    rows = space.sample_rows(200, np.random.default_rng(0))
    rows = rows[rows[:, 0] > 0]
    rows[:, 1] = 1
    row = rows[space.valid(rows)][0]
    knobs = space.knobs(row)
    column = space.sketches[int(row[0])].columns[0]
    name, between = column.knob.name, column.values[1] + 0.1
    r = Record(
        "other", "other", "other", space.task.target.fingerprint, space.row_ids(row)[0], "OK", 1.0,
        knobs=tuple(sorted({**knobs, name: between}.items())),
    )  # fmt: skip
    (found,) = transfer(space, [r], 1)
    assert space.knobs(found) == knobs and knobs[name] == column.values[1]


def test_the_same_anchor_comes_before_a_nearer_shape() -> None:
    space = Space(task(64, 48, 32))
    rows = space.sample_rows(60, np.random.default_rng(0))
    rows = rows[rows[:, 0] > 0][:2]
    target, anchor = space.task.target.fingerprint, space.task.workload.anchor_key
    near, same = (
        Record(w, a, w, target, space.row_ids(row)[0], "OK", 1.0, knobs=tuple(sorted(space.knobs(row).items())))
        for w, a, row in zip("ab", ("strange", anchor), rows)
    )  # fmt: skip
    for records in ([near, same], [same, near]):
        np.testing.assert_array_equal(transfer(space, records, 8), rows[::-1])


def test_strangers_are_left_out(store: RecordStore) -> None:
    records = store.records
    t = task(64, 48, 32)
    space = Space(t)
    assert len(transfer(space, [replace(r, target="other-cpu") for r in records], 8)) == 0
    assert len(transfer(space, [replace(r, workload=t.workload.key) for r in records], 8)) == 0
    unlike = [replace(r, row_id="no such sketch|a=1") for r in records]
    assert len(transfer(space, unlike, 8)) == 0
    assert len(transfer(space, [replace(r, knobs=()) for r in records if r.row[0]], 8)) == 0
    assert len(transfer(space, [], 8)) == 0


def test_transferred_rows_come_first_and_once(store: RecordStore) -> None:
    records = store.records
    space = Space(task(64, 48, 32))
    expected = transfer(space, records, 8)
    search = WarmStart(RandomSearch(), records)
    seen, rng = Seen(space), np.random.default_rng(0)
    rows = search.ask(seen, 8, None, rng)
    np.testing.assert_array_equal(rows[: len(expected)], expected)
    seen.add(rows)
    assert len(rows) == 8 and seen.unknown(search.ask(seen, 8, None, rng)).all()


def test_a_study_measures_them_right_after_the_default(store: RecordStore, tmp_path: Path) -> None:
    records = store.records
    t = task(64, 48, 32)
    expected = Space(t).row_ids(transfer(Space(t), records, 8))
    search = WarmStart(Evolutionary(), records)
    s = Study([(t, 1.0)], RecordStore(tmp_path / "new"), FormulaPool(), search=search).run(8)
    trials = [r.row_id for r in s.store if r.stage is Stage.TRIAL]
    assert trials[1 : 1 + len(expected)] == expected

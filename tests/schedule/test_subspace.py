from __future__ import annotations

import numpy as np
from tests.tuner.doubles import task

from tilewright.schedule.space import Space
from tilewright.schedule.subspace import SubSpace


def part(n: int = 40) -> tuple[Space, SubSpace]:
    space = Space(task(32, 16, 8))
    rows = space.sample_rows(n + 20, np.random.default_rng(0))
    return space, SubSpace(space, rows[rows.any(axis=1)][:n])


def test_only_the_given_rows_and_the_default_are_candidates() -> None:
    space, sub = part()
    rows = sub.enumerate_rows(1000)
    assert rows is not None and len(rows) == sub.size() == 41
    assert sub.valid(rows).all() and sub.valid(sub.default_row()).all()
    others = space.sample_rows(400, np.random.default_rng(1))
    kept = {r.tobytes() for r in rows}
    np.testing.assert_array_equal(sub.valid(others), [r.tobytes() in kept for r in others])


def test_draws_are_distinct_candidates() -> None:
    _, sub = part()
    few = sub.sample_rows(10, np.random.default_rng(0))
    assert len({r.tobytes() for r in few}) == 10 and sub.valid(few).all()
    assert len(sub.sample_rows(1000, np.random.default_rng(0))) == sub.size()
    assert sub.enumerate_rows(40) is None


def test_rows_mean_the_same_as_in_the_whole_space() -> None:
    space, sub = part()
    rows = sub.sample_rows(5, np.random.default_rng(0))
    assert sub.row_ids(rows) == space.row_ids(rows)
    np.testing.assert_array_equal(sub.features(rows), space.features(rows))


def test_the_default_is_not_counted_twice() -> None:
    space, _ = part()
    assert SubSpace(space, space.default_row()).size() == 1

"""What is measured together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.tuner.doubles import task

from tilewright.costmodel import AnalyticModel
from tilewright.schedule.space import Rows, Space
from tilewright.tuner import Guide
from tilewright.tuner.batch import batch_of, diverse


def rows_of(*rows: tuple[int, ...]) -> Rows:
    return np.array(rows, dtype=np.int32)


def test_neighbours_wait_until_nothing_else_is_left() -> None:
    rows = rows_of((0, 1, 1), (0, 1, 2), (0, 3, 3), (0, 3, 4))
    assert list(diverse(rows, 2)) == [0, 2]
    assert list(diverse(rows, 3)) == [0, 2, 1]
    assert list(diverse(rows, 9)) == [0, 2, 1, 3]


def test_rows_that_the_model_cannot_tell_apart_come_last() -> None:
    rows = rows_of((0, 1, 1), (0, 5, 5), (0, 1, 2), (0, 9, 9))
    features = np.array([[1.0], [1.0], [2.0], [3.0]])
    assert list(diverse(rows, 4, features)) == [0, 3, 2, 1]


def test_nothing_is_chosen_from_nothing() -> None:
    assert len(diverse(rows_of((0, 1, 1))[:0], 5)) == 0
    assert len(batch_of(rows_of((0, 1, 1))[:0], 5, None, uncertain_share=0.5)) == 0


class Unsure(Guide):
    """Unsure of the rows whose first knob is odd."""

    def uncertainty(self, rows: Rows) -> NDArray[np.float64]:
        return (rows[:, 1] % 2).astype(np.float64)


def test_a_share_of_the_batch_is_where_the_model_is_least_sure() -> None:
    space = Space(task())
    rows = space.sample_rows(200, np.random.default_rng(0))
    guide = Unsure(space, AnalyticModel())
    ranked = rows[np.argsort(-guide(rows), kind="stable")]
    batch = batch_of(ranked, 12, guide, uncertain_share=0.25)
    assert len({r.tobytes() for r in batch}) == 12
    np.testing.assert_array_equal(batch[:9], batch_of(ranked, 9, guide))
    assert (batch[9:, 1] % 2 == 1).all()
    half = {r.tobytes() for r in ranked[:100]}
    assert all(r.tobytes() in half for r in batch[9:]), "not from the hopeless half"


def test_a_model_that_is_sure_of_everything_gets_its_favourites_only() -> None:
    space = Space(task())
    rows = space.sample_rows(50, np.random.default_rng(0))
    sure = Guide(space, AnalyticModel())
    np.testing.assert_array_equal(
        batch_of(rows, 8, sure, uncertain_share=0.5), batch_of(rows, 8, sure)
    )

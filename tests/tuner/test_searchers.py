"""What every searcher must do, on a table with a known answer."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tuner.doubles import task

from tilewright.costmodel import Forest
from tilewright.schedule.space import Rows, Space
from tilewright.tuner import (
    Annealing,
    Bayesian,
    CoordinateDescent,
    Evolutionary,
    Exhaustive,
    Guide,
    RandomSearch,
    Searcher,
    Seen,
    WarmStart,
)
from tilewright.tuner.bayesian import expected_improvement
from tilewright.tuner.moves import line, step


class Table:
    """A space on plain NumPy: `n_sketches` sketches, some columns unused, one constraint.

    Candidates cost the more the further they are from a hidden best row of their sketch.
    """

    def __init__(self, sizes: tuple[tuple[int, ...], ...], seed: int = 0) -> None:
        self.n_columns = max(map(len, sizes))
        self.cardinality = np.array(
            [[*s, *([1] * (self.n_columns - len(s)))] for s in sizes], dtype=np.int32
        )
        self._goal = np.random.default_rng(seed).random(self.cardinality.shape)

    def size(self) -> int:
        return int(sum(np.prod(c, dtype=object) for c in self.cardinality))

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        limits = self.cardinality[rows[:, 0]]
        inside = ((rows[:, 1:] >= 0) & (rows[:, 1:] < limits)).all(axis=1)
        return np.asarray(inside & ((rows[:, 1] + rows[:, 2]) % 4 != 3))

    def sample_rows(self, n: int, rng: np.random.Generator) -> Rows:
        sketch = rng.integers(0, len(self.cardinality), size=4 * n)
        rows = np.column_stack([sketch, rng.integers(0, self.cardinality[sketch])]).astype(np.int32)
        rows = rows[self.valid(rows)]
        return rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])][:n]

    def enumerate_rows(self, limit: int) -> Rows | None:
        if self.size() > limit:
            return None
        parts = []
        for n, sizes in enumerate(self.cardinality):
            grid = np.indices(tuple(sizes)).reshape(self.n_columns, -1).T
            parts.append(np.column_stack([np.full(len(grid), n), grid]))
        rows = np.concatenate(parts).astype(np.int32)
        return rows[self.valid(rows)]

    def cost(self, rows: Rows) -> NDArray[np.float64]:
        limits = np.maximum(self.cardinality[rows[:, 0]] - 1, 1)
        off = np.abs(rows[:, 1:] / limits - self._goal[rows[:, 0]])
        return np.asarray(1 + (off**2).sum(axis=1) + off[:, 0] * off[:, -1] + 0.3 * rows[:, 0])

    def score(self, rows: Rows) -> NDArray[np.float64]:
        return -self.cost(rows)


BIG = ((30, 30, 20, 12, 8, 6), (40, 20, 10, 5))
SMALL = ((5, 4, 3), (6, 2))


def fresh(sizes: tuple[tuple[int, ...], ...], seed: int = 0) -> tuple[Table, Seen]:
    table = Table(sizes, seed)
    space: Any = table
    return table, Seen(space)


def search(searcher: Searcher, trials: int, seed: int, batch: int = 16) -> float:
    """Best cost after so many trials, with a perfect model of half of the truth."""
    table, seen = fresh(BIG, seed)
    rng = np.random.default_rng(seed)
    while len(seen.values) < trials:
        rows = searcher.ask(
            seen, batch, lambda r: -table.cost(r) + 0.2 * np.sin(r.sum(axis=1) * 1.0), rng
        )
        for row, value in zip(rows, table.cost(rows)):
            seen.record(row, float(value))
    return min(seen.values)


class SearcherContract:
    searcher: Searcher

    @pytest.mark.parametrize("scored", [True, False])
    def test_proposals_are_valid_distinct_and_new(self, scored: bool) -> None:
        table, seen = fresh(BIG)
        rng = np.random.default_rng(0)
        known: set[bytes] = set()
        for _ in range(6):
            rows = self.searcher.ask(seen, 24, (lambda r: -table.cost(r)) if scored else None, rng)
            assert rows.shape == (24, 1 + table.n_columns) and rows.dtype == np.int32
            assert table.valid(rows).all()
            new = {r.tobytes() for r in rows}
            assert len(new) == 24 and not new & known
            known |= new
            seen.add(rows)

    @pytest.mark.parametrize("scored", [True, False])
    def test_a_small_space_is_used_up_to_its_last_row(self, scored: bool) -> None:
        table, seen = fresh(SMALL)
        everything = table.enumerate_rows(10**6)
        assert everything is not None
        rng = np.random.default_rng(0)
        found = 0
        while found < len(everything):
            rows = self.searcher.ask(seen, 8, (lambda r: -table.cost(r)) if scored else None, rng)
            assert len(rows) == min(8, len(everything) - found), (
                "fewer only when the space runs out"
            )
            seen.add(rows)
            found += len(rows)
        assert len(self.searcher.ask(seen, 8, None, rng)) == 0

    def test_equal_seeds_give_equal_proposals(self) -> None:
        asked = []
        for _ in range(2):
            table, seen = fresh(BIG)
            seen.record(table.sample_rows(1, np.random.default_rng(1))[0], 1.0)
            asked.append(self.searcher.ask(seen, 16, table.score, np.random.default_rng(7)))
        np.testing.assert_array_equal(asked[0], asked[1])

    def test_failures_alone_are_no_obstacle(self) -> None:
        table, seen = fresh(BIG)
        for row in table.sample_rows(20, np.random.default_rng(1)):
            seen.record(row, float("inf"))
        assert (
            len(self.searcher.ask(seen, 16, lambda r: -table.cost(r), np.random.default_rng(2)))
            == 16
        )

    def test_seeds_matter(self) -> None:
        asked = []
        for seed in (1, 2):
            table, seen = fresh(BIG)
            asked.append(self.searcher.ask(seen, 16, table.score, np.random.default_rng(seed)))
        assert not np.array_equal(asked[0], asked[1])

    def test_it_keeps_no_state_between_spaces(self) -> None:
        asked = []
        for first in (BIG, SMALL):
            for sizes in (first, BIG):
                table, seen = fresh(sizes)
                rows = self.searcher.ask(seen, 8, table.score, np.random.default_rng(3))
            asked.append(rows)
        np.testing.assert_array_equal(asked[0], asked[1])

    def test_a_model_with_uncertainty_guides_it(self) -> None:
        space = Space(task())
        rows = space.sample_rows(60, np.random.default_rng(4))
        seconds = space.analytic(rows)
        x = space.features(rows)
        model = Forest(n_trees=8).fit(x, seconds.min() / seconds, np.zeros(60, dtype=np.int64))
        seen = Seen(space)
        for row, value in zip(rows[:20], seconds):
            seen.record(row, float(value))
        found = self.searcher.ask(seen, 12, Guide(space, model), np.random.default_rng(0))
        assert len(found) == 12 and space.valid(found).all() and seen.unknown(found).all()

    def test_a_real_space_is_searched(self) -> None:
        space = Space(task())
        seen = Seen(space)
        rows = self.searcher.ask(
            seen, 12, lambda r: -np.log(space.analytic(r)), np.random.default_rng(0)
        )
        assert len(rows) == 12 and space.valid(rows).all()


class TestRandomSearch(SearcherContract):
    searcher = RandomSearch()


class TestEvolutionary(SearcherContract):
    searcher = Evolutionary(population=256, generations=3)

    def test_it_beats_random_search_at_equal_trials(self) -> None:
        pairs = [(search(self.searcher, 64, s), search(RandomSearch(), 64, s)) for s in range(10)]
        assert sum(evolved < blind for evolved, blind in pairs) >= 9

    def test_a_share_of_the_proposals_is_blind(self) -> None:
        table, _ = fresh(BIG)
        typical = np.median(table.cost(table.sample_rows(4000, np.random.default_rng(1))))
        searcher = Evolutionary(population=256, generations=3, random_share=0.25)
        blind = []
        for seed in range(20):
            _, seen = fresh(BIG)
            rows = searcher.ask(seen, 32, lambda r: -table.cost(r), np.random.default_rng(seed))
            assert (table.cost(rows[:24]) < typical).all()
            blind.append(table.cost(rows[24:]) > typical)
        assert 0.3 < np.mean(blind) < 0.7, "160 blind rows lie on both sides of the median"

    def test_a_batch_is_spread_out(self) -> None:
        table, seen = fresh(BIG)
        rows = self.searcher.ask(seen, 16, lambda r: -table.cost(r), np.random.default_rng(0))
        distance = (rows[:, None, :] != rows[None, :, :]).sum(axis=2) + 9 * np.eye(16, dtype=int)
        assert distance.min() >= 2, "no two candidates of a batch differ in one knob only"

    def test_a_small_space_is_scored_whole(self) -> None:
        table, seen = fresh(SMALL)
        rows = Evolutionary(random_share=0.0).ask(
            seen, 1, lambda r: -table.cost(r), np.random.default_rng(0)
        )
        everything = table.enumerate_rows(1000)
        assert everything is not None
        np.testing.assert_array_equal(rows[0], everything[np.argmin(table.cost(everything))])

    @pytest.mark.slow
    def test_asking_costs_little_beside_scoring(self) -> None:
        table, seen = fresh(BIG)
        score = lambda r: -table.cost(r)  # noqa: E731
        searcher, rng = Evolutionary(), np.random.default_rng(0)
        spent = []
        for _ in range(5):
            start = time.perf_counter()
            seen.add(searcher.ask(seen, 32, score, rng))
            spent.append(time.perf_counter() - start)
        assert min(spent) < 0.15


class GuidedContract(SearcherContract):
    """Searchers that use what is known: they must beat blind search with a fair model."""

    def test_it_beats_random_search_at_equal_trials(self) -> None:
        pairs = [(search(self.searcher, 64, s), search(RandomSearch(), 64, s)) for s in range(6)]
        assert sum(guided < blind for guided, blind in pairs) >= 5


class TestExhaustive(GuidedContract):
    searcher = Exhaustive(population=2048)

    def test_the_best_of_the_whole_space_comes_first(self) -> None:
        table, seen = fresh(SMALL)
        rows = Exhaustive(random_share=0.0).ask(seen, 3, table.score, np.random.default_rng(0))
        everything = table.enumerate_rows(1000)
        assert everything is not None
        np.testing.assert_array_equal(rows[0], everything[np.argmin(table.cost(everything))])


class TestCoordinateDescent(GuidedContract):
    searcher = CoordinateDescent()

    def test_neighbours_of_the_fastest_row_come_first(self) -> None:
        table, seen = fresh(BIG)
        rows = table.sample_rows(30, np.random.default_rng(1))
        for row, value in zip(rows, table.cost(rows)):
            seen.record(row, float(value))
        best = seen.best(1)[0]
        found = self.searcher.ask(seen, 6, None, np.random.default_rng(0))
        assert ((found != best).sum(axis=1) == 1).all()
        assert (np.abs(found - best).sum(axis=1) == 1).all()

    def test_without_a_model_it_descends_to_a_point_that_no_single_step_improves(self) -> None:
        table, seen = fresh(BIG)
        rng = np.random.default_rng(0)
        while len(seen.values) < 400:
            rows = self.searcher.ask(seen, 8, None, rng)
            for row, value in zip(rows, table.cost(rows)):
                seen.record(row, float(value))
        best = seen.best(1)[0]
        space: Any = table
        assert table.cost(line(space, best, 1)).min() >= min(seen.values)


class TestAnnealing(GuidedContract):
    searcher = Annealing(n_chains=64, n_steps=20)

    def test_without_a_model_it_beats_random_search(self) -> None:
        def best(searcher: Searcher, seed: int) -> float:
            table, seen = fresh(BIG, seed)
            rng = np.random.default_rng(seed)
            while len(seen.values) < 160:
                rows = searcher.ask(seen, 16, None, rng)
                for row, value in zip(rows, table.cost(rows)):
                    seen.record(row, float(value))
            return min(seen.values)

        wins = [best(self.searcher, s) < best(RandomSearch(), s) for s in range(6)]
        assert sum(wins) >= 5


class TestBayesian(GuidedContract):
    searcher = Bayesian(population=1024)

    def test_expected_improvement_has_its_closed_form(self) -> None:
        draws = np.random.default_rng(0).normal(0.3, 2.0, 400_000)
        found = expected_improvement(np.array([0.3, 0.3, 2.0]), np.array([2.0, 0.0, 0.0]), 1.0)
        assert found[0] == pytest.approx(np.maximum(draws - 1.0, 0).mean(), rel=0.01)
        assert found[1] == 0.0 and found[2] == 1.0

    def test_what_is_unsure_is_tried_before_what_is_surely_average(self) -> None:
        space = Space(task())

        class Half(Guide):
            def __call__(self, rows: Rows) -> NDArray[np.float64]:
                return np.zeros(len(rows))

            def uncertainty(self, rows: Rows) -> NDArray[np.float64]:
                return (rows[:, 1] % 2).astype(np.float64)

        guide = Half(space, Forest())
        rows = self.searcher.ask(Seen(space), 12, guide, np.random.default_rng(0))
        assert (rows[:, 1] % 2 == 1).all()


class TestWarmStart(GuidedContract):
    searcher = WarmStart(Evolutionary(population=256, generations=3), ())


def test_steps_stay_inside_and_change_one_knob() -> None:
    table, _ = fresh(BIG)
    space: Any = table
    rows = table.sample_rows(500, np.random.default_rng(0))
    moved = step(space, rows, np.random.default_rng(1), jump=0.0)
    assert ((moved[:, 1:] >= 0) & (moved[:, 1:] < table.cardinality[moved[:, 0]])).all()
    assert ((moved != rows).sum(axis=1) <= 1).all() and (moved != rows).any(axis=1).mean() > 0.8
    np.testing.assert_array_equal(rows[:, 0], moved[:, 0])


def test_steps_in_a_space_without_knobs_stay() -> None:
    space = Space(task(), rules=[])
    assert space.n_columns == 0
    rows = space.default_row()
    np.testing.assert_array_equal(step(space, rows, np.random.default_rng(0)), rows)

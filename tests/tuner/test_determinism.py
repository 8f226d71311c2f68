"""Same seed, same proposals: whatever searches, and in whatever order measurements return."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tuner.doubles import FormulaPool, task

from tilewright.costmodel import CostModel, Ensemble, FailureAware, Forest, Ridge, XGBRanker
from tilewright.records import RecordStore, Stage
from tilewright.tuner import (
    Annealing,
    Bayesian,
    CoordinateDescent,
    Evolutionary,
    Exhaustive,
    RandomSearch,
    Searcher,
    Study,
    WarmStart,
)

PAIRS: dict[str, tuple[Callable[[], Searcher], Callable[[], CostModel]]] = {
    "evolutionary": (lambda: Evolutionary(population=128), lambda: FailureAware()),
    "exhaustive": (lambda: Exhaustive(population=512), lambda: Ridge()),
    "descent": (CoordinateDescent, lambda: XGBRanker(n_rounds=10)),
    "annealing": (lambda: Annealing(n_chains=16, n_steps=8), lambda: XGBRanker(n_rounds=10)),
    "bayesian": (lambda: Bayesian(population=256), lambda: Ensemble(n_members=2)),
    "random": (RandomSearch, lambda: Forest(n_trees=4)),
    "warm": (lambda: WarmStart(CoordinateDescent(), ()), lambda: Ridge()),
}


def proposals(name: str, order: str, seed: int, folder: str) -> dict[int, tuple[str, str]]:
    """What a study with failures proposed, by the number of the trial."""
    search, model = (make() for make in PAIRS[name])
    assert isinstance(search, Searcher) and isinstance(model, CostModel)
    tasks = [(task(48, 32, 24), 1.0), (task(32, 16, 8), 2.0)]
    pool = FormulaPool(order, failures=True)
    store = RecordStore(Path(folder) / "log.jsonl")
    Study(tasks, store, pool, search=search, model=model, seed=seed).run(32)
    return {r.trial: (r.workload, r.row_id) for r in store if r.stage is Stage.TRIAL}


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.sampled_from(["lifo", "shuffled"]))
def test_the_order_of_results_changes_no_proposal(name: str, seed: int, order: str) -> None:
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        first = proposals(name, "fifo", seed, a)
        assert len(first) == 32 and first == proposals(name, order, seed, b)

from __future__ import annotations

import itertools
import math

import pytest

from tilewright.records.query import best, confirmed, nearest
from tilewright.records.record import Record, Stage


def trial(
    row_id: str,
    value: float,
    *,
    workload: str = "w",
    target: str = "t",
    anchor: str = "a",
    final: bool = False,
) -> Record:
    status = "OK" if math.isfinite(value) else "WRONG"
    stage = Stage.FINAL if final else Stage.TRIAL
    return Record(workload, anchor, workload, target, row_id, status, value, stage=stage)


def test_only_correct_records_win() -> None:
    records = [trial("bad", math.inf), trial("slow", 2.0)]
    found = best(records, "w", "t")
    assert found is not None and found.row_id == "slow"
    assert best(records[:1], "w", "t") is None


def test_records_of_another_target_or_workload_never_match() -> None:
    records = [trial("x", 1.0, target="other"), trial("y", 1.0, workload="other")]
    assert best(records, "w", "t") is None


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_ties_do_not_depend_on_the_order_of_the_log(order: tuple[int, ...]) -> None:
    records = [trial("c", 1.0), trial("a", 1.0), trial("b", 1.0)]
    found = best([records[k] for k in order], "w", "t")
    assert found is not None and found.row_id == "a"


def test_finals_decide_among_the_leaders() -> None:
    lucky = [trial("lucky", 1.00), trial("steady", 1.02)]
    finals = [trial("lucky", 1.10, final=True), trial("steady", 1.03, final=True)]
    found = best(lucky + finals, "w", "t")
    assert found is not None and (found.row_id, found.value) == ("steady", 1.03)


def test_an_unconfirmed_trial_behind_the_leaders_does_not_win_by_its_luck() -> None:
    records = [trial("a", 1.00), trial("b", 1.05), trial("a", 1.10, final=True)]
    found = best(records, "w", "t")
    assert found is not None and found.row_id == "a"


def test_a_trial_that_was_found_after_the_finals_wins() -> None:
    records = [trial("a", 1.00), trial("a", 1.10, final=True), trial("new", 0.90)]
    found = best(records, "w", "t")
    assert found is not None and found.row_id == "new"


def test_the_median_of_several_finals_counts() -> None:
    finals = [trial("a", v, final=True) for v in (0.5, 1.2, 1.3)] + [trial("b", 1.1, final=True)]
    found = best([trial("a", 1.0), trial("b", 1.0), *finals], "w", "t")
    assert found is not None and found.row_id == "b"


def test_confirmed_names_the_candidates_with_a_correct_final() -> None:
    records = [trial("a", 1.0), trial("b", 1.0, final=True), trial("c", math.inf, final=True)]
    assert confirmed(records, "w", "t") == {"b"}


def test_nearest_gives_the_best_of_each_workload_with_the_anchor_on_this_target() -> None:
    records = [
        trial("p", 3.0, workload="w1"), trial("q", 2.0, workload="w1"), trial("r", 1.0, workload="w2"),
        trial("s", 0.1, workload="w3", target="other"), trial("u", 0.1, workload="w4", anchor="b"),
        trial("v", math.inf, workload="w5"),
    ]  # fmt: skip
    assert [r.row_id for r in nearest(records, "a", "t")] == ["r", "q"]

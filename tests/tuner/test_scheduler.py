from __future__ import annotations

import math
from dataclasses import replace

from tests.tuner.doubles import task

from tilewright.codegen.target import Target
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, te
from tilewright.tuner.scheduler import Progress, bounds, lower_bound, pick


def progress(
    weight: float = 1.0, best: float = 1.0, *, bound: float = 0.1, trials: int = 16
) -> Progress:
    p = Progress(weight, bound)
    p.update(best, trials)
    return p


def test_the_task_that_weighs_more_goes_first() -> None:
    assert pick([progress(1.0), progress(3.0)]) == 1


def test_of_equal_weights_the_slower_task_goes_first() -> None:
    assert pick([progress(best=2.0), progress(best=1.0)]) == 0


def test_a_task_at_its_bound_has_nothing_to_gain() -> None:
    assert pick([progress(best=0.1, bound=0.1), progress(0.001, best=0.2)]) == 1


def test_a_task_that_no_longer_gains_gives_way_and_comes_back() -> None:
    stuck, other = progress(1.0), progress(0.5)
    order = []
    for _ in range(12):
        index = pick([stuck, other])
        assert index is not None
        order.append(index)
        p = (stuck, other)[index]
        p.update(p.best_s, p.n_trials + 8)
    assert order[0] == 0 and 1 in order[:4] and 0 in order[4:], order


def test_a_gain_brings_a_task_back() -> None:
    p = progress()
    for _ in range(3):
        p.update(1.0, p.n_trials + 8)
    low = p.gain_s
    p.update(0.5, p.n_trials + 8)
    assert p.rounds_without_gain == 0 and p.gain_s > low


def test_exhausted_tasks_are_never_picked() -> None:
    p = progress(9.0)
    p.exhausted = True
    assert pick([p, progress(0.1)]) == 1
    assert pick([p]) is None and pick([]) is None


def test_a_task_without_a_correct_candidate_is_given_up_after_some_rounds() -> None:
    dead, other = Progress(1.0, 0.0), progress()
    rounds = 0
    while pick([dead, other]) == 0:
        dead.update(math.inf, dead.n_trials + 8)
        rounds += 1
        assert rounds < 10, "a dead task takes every round"
    assert rounds >= 2


def test_no_kernel_is_expected_to_beat_the_bound() -> None:
    t = task(128, 128, 128)
    assert 0 < lower_bound(t) < t.workload.flops / (t.target.peak_gflops * 1e9)


def add(n: int) -> Task:
    a, b = (te.placeholder((n,), name=c) for c in "AB")
    return Task(Workload.of(te.compute((n,), lambda i: a[i] + b[i], name="C")), Target.host(1))


def test_what_no_cache_holds_is_bound_by_memory() -> None:
    small, large = add(1 << 10), add(1 << 28)
    assert bounds(small)["memory"] == 0.0
    found = bounds(large)
    assert max(found, key=lambda k: found[k]) == "memory"
    t = large.target
    assert found["memory"] < large.workload.n_bytes / (t.bandwidth_gbs * 1e9)


def test_more_threads_lower_the_bound() -> None:
    one = add(1 << 28)
    two = Task(one.workload, replace(one.target, n_threads=2))
    assert lower_bound(two) == lower_bound(one) / 2


def test_each_reason_is_a_sentence() -> None:
    t = task(128, 128, 128)
    bound = lower_bound(t)
    p = Progress(1.0, bound)
    assert p.why_not(t) == ""
    p.update(bound * 1.01, 16)
    assert p.gain_s == 0.0
    assert p.why_not(t).endswith(f"of what its arithmetic must take at least, {bound * 1e6:.3g} us")
    p.exhausted = True
    assert p.why_not(t) == "matmul[128x128x128]: all candidates of its space were tried"
    dead = Progress(1.0, bound)
    dead.update(math.inf, 40)
    assert dead.why_not(t).endswith("none of 40 candidates was correct, so it is given up")


def test_a_gain_too_small_to_matter_is_not_picked() -> None:
    p = progress(best=1.0)
    assert pick([p], least_s=p.gain_s * 0.99) == 0
    assert pick([p], least_s=p.gain_s) is None


def test_a_round_is_expected_to_gain_less_than_the_room_above_the_bound() -> None:
    p = progress(2.0, best=1.0, bound=0.4)
    assert 0 < p.gain_s < 2.0 * 0.6

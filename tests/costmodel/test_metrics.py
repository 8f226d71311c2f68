from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.costmodel import kendall_tau, pairwise_accuracy, peak_at_k, report

ONE = np.zeros(4, dtype=int)


def test_a_perfect_and_an_inverted_order() -> None:
    y = np.array([0.1, 0.4, 0.2, 1.0])
    assert pairwise_accuracy(y * 7, y, ONE) == 1.0 and kendall_tau(y * 7, y, ONE) == 1.0
    assert pairwise_accuracy(-y, y, ONE) == 0.0 and kendall_tau(-y, y, ONE) == -1.0
    assert peak_at_k(y, y, ONE, 1) == 1.0
    assert peak_at_k(-y, y, ONE, 1) == pytest.approx(0.1)


def test_hand_counted_values() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    score = np.array([1.0, 3.0, 2.0, 4.0])  # one of six pairs is wrong
    assert pairwise_accuracy(score, y, ONE) == pytest.approx(5 / 6)
    assert kendall_tau(score, y, ONE) == pytest.approx(4 / 6)
    assert peak_at_k(np.array([4.0, 3.0, 2.0, 1.0]), y, ONE, 2) == pytest.approx(0.5)


def test_constant_scores_are_worth_a_coin_toss() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    assert pairwise_accuracy(np.zeros(4), y, ONE) == 0.5
    assert kendall_tau(np.zeros(4), y, ONE) == 0.0


def test_tasks_are_never_compared_with_each_other() -> None:
    groups = np.array([0, 0, 1, 1])
    y = np.array([1.0, 0.5, 1.0, 0.5])
    score = np.array([1.0, 0.9, 0.2, 0.1])  # right within each task, wrong across
    assert pairwise_accuracy(score, y, groups) == 1.0 and kendall_tau(score, y, groups) == 1.0
    assert peak_at_k(score, y, groups, 1) == 1.0


def test_nothing_to_compare_is_not_a_number() -> None:
    single, y = np.array([0, 1]), np.array([1.0, 1.0])
    assert math.isnan(pairwise_accuracy(y, y, single))
    assert math.isnan(kendall_tau(y, y, single))
    assert math.isnan(peak_at_k(y, np.zeros(2), np.zeros(2, dtype=int), 1))


def test_kendall_agrees_with_scipy() -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    y, score = rng.random(50), rng.random(50)
    assert kendall_tau(score, y, np.zeros(50, dtype=int)) == pytest.approx(
        kendalltau(score, y).statistic
    )


def test_the_report_has_the_four_published_figures() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    score = np.array([1.0, 3.0, 2.0, 4.0])
    found = report(score, y, ONE)
    assert found == {"pairwise": 5 / 6, "peak1": 1.0, "peak5": 1.0, "kendall": pytest.approx(4 / 6)}

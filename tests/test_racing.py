"""Races: every contender the same number of samples, outputs compared with the reference."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tilewright.errors import TilewrightError
from tilewright.racing import Contender, difference, race


def constant(name: str, value: float, seconds: float = 0.0) -> Contender:
    def call() -> list[np.ndarray]:
        time.sleep(seconds)
        return [np.full(3, value, np.float32)]

    return Contender(name, call)


def test_every_contender_gets_one_sample_a_round() -> None:
    results = race([constant("a", 1.0), constant("b", 1.0)], rounds=5, sample_s=1e-5)
    assert [r.name for r in results] == ["a", "b"]
    assert [len(r.seconds) for r in results] == [5, 5]


def test_a_slower_contender_has_the_larger_median() -> None:
    quick, slow = race([constant("a", 1.0), constant("b", 1.0, 0.005)], rounds=3, sample_s=1e-4)
    assert slow.median_s > 0.004 > quick.median_s


def test_differences_are_relative_to_the_reference() -> None:
    first, second = race(
        [constant("a", 2.0), constant("b", 2.5)], rounds=1, sample_s=1e-6, reference="a"
    )
    assert first.difference is None
    assert second.difference == pytest.approx(0.25)


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(TilewrightError, match=r"no such contender; there are \['a'\]"):
        race([constant("a", 1.0)], reference="b")


def test_no_contenders_are_refused() -> None:
    with pytest.raises(TilewrightError, match="no contenders"):
        race([])


def test_outputs_that_cannot_agree_differ_infinitely() -> None:
    one, nan = np.ones(2), np.array([1.0, np.nan])
    assert difference([one], []) == float("inf")
    assert difference([one], [np.ones((2, 1))]) == float("inf")
    assert difference([nan], [one]) == float("inf")
    assert difference([one], [one]) == 0.0

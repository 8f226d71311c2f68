from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.workloads import arrays, matmul, softmax

from tilewright.measure.tolerance import compare, tolerance
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate

NAN, INF = np.nan, np.inf


def cast_copy(dtype: str) -> Workload:
    x = te.placeholder((4,), dtype, name="X")
    return Workload.of(te.compute((4,), lambda i: x[i], name="Y"))


def test_it_grows_with_the_square_root_of_the_reduction() -> None:
    short, long = (tolerance(matmul(k=k)) for k in (4, 400))
    assert long == pytest.approx(10 * short)
    assert short == pytest.approx(16 * 2.0**-23 * 2)


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10), ("int32", 0.0)],
)
def test_it_follows_the_type(dtype: str, eps: float) -> None:
    assert tolerance(cast_copy(dtype)) == pytest.approx(16 * eps)


@pytest.mark.parametrize("workload", [matmul(), matmul(30, 20, 1000), softmax(5, 300)])
def test_single_precision_is_inside(workload: Workload) -> None:
    inputs = arrays(workload)
    exact = evaluate(workload, inputs, precision="double")
    for found, e in zip(evaluate(workload, inputs), exact):
        assert compare(found, e, tolerance(workload)) is None


def floats(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_equal_arrays_agree_also_at_infinity_and_nan() -> None:
    values = floats(1.0, -INF, INF, NAN, 0.0)
    assert compare(values, values.astype(np.float64), 0.0) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (floats(NAN, 1), [1.0, 1.0]),
        (floats(1, 1), [NAN, 1.0]),
        (floats(INF, 1), [-INF, 1.0]),
        (floats(INF, 1), [1.0, 1.0]),
        (floats(1, 1), [INF, 1.0]),
        (floats(1, 1.001), [1.0, 1.0]),
        (floats(0, 1), [1.0, 1.0]),
    ],
)
def test_one_element_that_differs_is_found(found: Any, expected: list[float]) -> None:
    message = compare(found, np.array(expected), 1e-5)
    assert message is not None and message.startswith(
        "1 of 2 elements are off by more than 1.0e-05"
    )


def test_the_message_says_where_and_by_how_much() -> None:
    expected = np.ones((3, 4))
    found = expected.astype(np.float32)
    found[1, 2] = 5.0
    message = compare(found, expected, 1e-5)
    assert message == (
        "1 of 12 elements are off by more than 1.0e-05 (by up to 4), first at [1, 2]: 5 instead of 1"
    )


def test_small_elements_are_judged_by_the_scale_of_all() -> None:
    expected = np.array([100.0, 1e-9])  # a sum that cancels
    assert compare(floats(100.0, 1e-5), expected, 1e-6) is None
    assert compare(floats(100.0, 1e-3), expected, 1e-6) is not None


def test_a_scale_that_overflows_when_squared_is_no_free_pass() -> None:
    expected = np.array([1e200, 1e200])
    assert compare(np.array([1e200, 2e200]), expected, 1e-6) is not None
    assert compare(np.array([1e200, 1e200]), expected, 1e-6) is None


def test_what_the_type_cannot_hold_is_infinite() -> None:
    expected = np.array([1e6, 1.0])
    assert compare(np.array([INF, 1.0], np.float16), expected, 1e-2) is None
    assert compare(np.array([6e4, 1.0], np.float16), expected, 1e-2) is not None


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool"])
def test_integers_must_be_equal(dtype: str) -> None:
    expected = np.array([1, 0, 1], dtype)
    assert compare(expected.copy(), expected, 1.0) is None
    found = expected.copy()
    found[1] = 1
    message = compare(found, expected, 1.0)
    assert message is not None and message.startswith("1 of 3 elements differ, first at [1]")


def test_a_byte_that_is_neither_flag_is_no_result() -> None:
    unwritten = np.full(3, 0xA5, np.uint8).view(np.bool_)
    for value in (True, False):
        message = compare(unwritten, np.full(3, value), 0.0)
        assert message == f"3 of 3 elements differ, first at [0]: 165 instead of {int(value)}"


def test_the_largest_error_is_told_even_if_it_is_not_the_first() -> None:
    message = compare(floats(1.5, 1, 9), np.ones(3), 1e-5)
    assert message is not None and "(by up to 8), first at [0]: 1.5 instead of 1" in message


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_empty_arrays_agree(dtype: str) -> None:
    assert compare(np.empty((0, 3), dtype), np.empty((0, 3), dtype), 0.0) is None


def test_what_the_type_can_hardly_hold_may_be_zero() -> None:
    assert compare(np.array([-0.0], np.float32), np.array([-7.8e-110]), 1e-5) is None
    assert compare(np.array([0.0], np.float32), np.array([1e-36]), 1e-5) is not None
    assert compare(np.array([0.0], np.float16), np.array([5e-5]), 1e-5) is None

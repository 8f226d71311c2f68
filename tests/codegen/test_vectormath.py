"""Elementary functions against float64 NumPy, for scalars and vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.codegen import harness

from tilewright.codegen.build import build_default, build_program
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.schedule.lower import lower
from tilewright.tensor import Workload, as_dtype, te
from tilewright.tensor.expr import unary

TARGET = Target.host(1)


def _apply(op: str, x: NDArray[Any], scalar: bool = False) -> NDArray[Any]:
    a = te.placeholder(x.shape, as_dtype(x.dtype), name="a")
    w = Workload.of(te.compute(x.shape, lambda i: unary(op, a[i]), name="y"))
    if scalar:
        return harness.run(build_program(lower(w), TARGET)[0], [x])[0]
    return harness.run(build_default(w, TARGET), [x])[0]


def _ulps(found: NDArray[Any], exact: NDArray[np.float64]) -> float:
    finite = np.isfinite(exact.astype(found.dtype))
    gap = np.abs(found[finite].astype(np.float64) - exact[finite])
    return float(
        np.max(gap / np.spacing(np.abs(exact[finite]).astype(found.dtype)).astype(np.float64))
    )


erf = np.vectorize(math.erf, otypes=[np.float64])
CASES: dict[str, tuple[Any, float, float, float]] = {
    "exp": (np.exp, -87.0, 88.7, 1.5),
    "log": (np.log, 1e-30, 1e6, 2.0),
    "tanh": (np.tanh, -12.0, 12.0, 3.0),
    "sigmoid": (lambda v: 1 / (1 + np.exp(-v)), -80.0, 80.0, 3.0),
    "erf": (erf, -5.0, 5.0, 3.0),
    "rsqrt": (lambda v: 1 / np.sqrt(v), 1e-20, 1e20, 1.5),
    "sin": (np.sin, -1e5, 1e5, 2.0),
    "cos": (np.cos, -1e5, 1e5, 2.0),
}


@pytest.mark.parametrize("op", CASES)
def test_float32_functions_are_within_their_stated_error(op: str) -> None:
    exact, low, high, limit = CASES[op]
    x = np.linspace(low, high, 50_003).astype(np.float32)
    if low > 0:
        x = np.concatenate([x, np.geomspace(low, high, 20_000).astype(np.float32)])
    else:
        x = np.concatenate([x, np.linspace(-1, 1, 20_001).astype(np.float32)])
    assert _ulps(_apply(op, x), exact(x.astype(np.float64))) <= limit


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sigmoid", "sin", "cos"])
def test_float64_functions_are_accurate_to_1e_14(op: str) -> None:
    exact, low, high, _ = CASES[op]
    x = np.linspace(max(low, -700.0), high, 20_001)
    if op in ("sin", "cos"):
        x = np.linspace(-100, 100, 20_001)
        np.testing.assert_allclose(_apply(op, x), exact(x), rtol=0, atol=1e-14)
        return
    np.testing.assert_allclose(_apply(op, x), exact(x), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "erf"])
def test_scalars_and_vectors_agree(op: str) -> None:
    x = np.linspace(0.1, 3, 37).astype(np.float32)
    np.testing.assert_array_equal(_apply(op, x, scalar=True), _apply(op, x))


def test_edges_follow_the_standard() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([inf, -inf, nan, 0.0, -0.0, 1000.0, -1000.0, -1.0], np.float32)
    np.testing.assert_array_equal(
        _apply("exp", x)[:7], np.array([inf, 0, nan, 1, 1, inf, 0], np.float32)
    )
    np.testing.assert_array_equal(
        _apply("log", x)[:5], np.array([inf, nan, nan, -inf, -inf], np.float32)
    )
    assert np.isnan(_apply("log", x)[7])
    np.testing.assert_array_equal(
        _apply("tanh", x)[:7], np.array([1, -1, nan, 0, 0, 1, -1], np.float32)
    )
    np.testing.assert_array_equal(
        _apply("erf", x)[:7], np.array([1, -1, nan, 0, 0, 1, -1], np.float32)
    )
    np.testing.assert_array_equal(
        _apply("sigmoid", x)[:7], np.array([1, 0, nan, 0.5, 0.5, 1, 0], np.float32)
    )


def test_pow_handles_signs_and_zeros() -> None:
    x = np.array([2.0, -2.0, -2.0, -2.0, 0.0, 9.0, 1.0, 1.5, 0.3], np.float32)
    y = np.array([10.0, 3.0, 2.0, 0.5, 2.0, 0.5, np.inf, -3.25, 7.0], np.float32)
    a, b = te.placeholder(x.shape, name="a"), te.placeholder(y.shape, name="b")
    w = Workload.of(te.compute(x.shape, lambda i: a[i] ** b[i], name="z"))
    found = harness.run(build_default(w, TARGET), [x, y])[0]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, np.power(x.astype(np.float64), y), rtol=1e-6)


def test_erf_in_float64_is_refused() -> None:
    with pytest.raises(
        BuildError, match=r"erf\(float64\): there is no vectorised version; cast to float32"
    ):
        _apply("erf", np.ones(3))

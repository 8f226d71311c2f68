"""Elementary functions against float64 NumPy, for scalars and vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.codegen import harness, math_kernel

from tilewright.codegen.build import build_default, build_program
from tilewright.codegen.compile import assembly
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.schedule.lower import lower
from tilewright.tensor import Workload, as_dtype, te
from tilewright.tensor.dtype import DType
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
    "exp": (np.exp, -87.0, 88.7, 1.0),
    "log": (np.log, 1e-30, 1e6, 1.0),
    "tanh": (np.tanh, -12.0, 12.0, 3.0),
    "sigmoid": (lambda v: 1 / (1 + np.exp(-v)), -80.0, 80.0, 3.0),
    "erf": (erf, -5.0, 5.0, 6.0),
    "rsqrt": (lambda v: 1 / np.sqrt(v), 1e-20, 1e20, 1.5),
    "sin": (np.sin, -1e5, 1e5, 1.0),
    "cos": (np.cos, -1e5, 1e5, 1.0),
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


DENSE: dict[str, list[tuple[float, float]]] = {
    "exp": [(-87.3, 88.72), (-1.0, 1.0)],
    "log": [(0.5, 2.0), (0.99, 1.01), (1e-38, 1e-36), (1e36, 3e38)],
    "tanh": [(-0.6, 0.6), (0.5, 12.0)],
    "sigmoid": [(-87.0, 20.0), (-1.0, 1.0)],
    "erf": [(-1.0, 1.0), (0.8, 4.5), (1e-30, 1e-28)],
    "rsqrt": [(1e-38, 1e-37), (0.5, 4.0)],
    "sin": [(-7.0, 7.0), (9.9e4, 1e5)],
    "cos": [(-7.0, 7.0), (9.9e4, 1e5)],
}


@pytest.mark.parametrize("special", [False, True])  # instructions that the target has
@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("op", DENSE)
def test_every_width_is_within_the_stated_error(op: str, width: int, special: bool) -> None:
    exact, _, _, limit = CASES[op]
    f = math_kernel.build(op, width, DType.FLOAT32, special)
    for low, high in DENSE[op]:
        x = np.linspace(low, high, 40_001).astype(np.float32)
        assert _ulps(f(x), exact(x.astype(np.float64))) <= limit


@pytest.mark.parametrize("width", [1, 4])
def test_erf_in_float64_is_accurate_to_1e_14(width: int) -> None:
    x = np.concatenate([np.linspace(-7, 7, 20_001), np.geomspace(1e-300, 1, 2_000)])
    found = math_kernel.build("erf", width, DType.FLOAT64)(x)
    np.testing.assert_allclose(found, erf(x), rtol=1e-14)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt"])
def test_infinities_zeros_and_not_a_number_are_numpys(op: str, dtype: DType, special: bool) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e4, -1e4, 30.0, -30.0], dtype.numpy)
    with np.errstate(all="ignore"):
        expected = CASES[op][0](x.astype(np.float64)).astype(dtype.numpy)
    found = math_kernel.build(op, 4, dtype, special)(x)
    np.testing.assert_allclose(found, expected, rtol=3e-7 if dtype is DType.FLOAT32 else 1e-14)
    if op in ("tanh", "erf", "sin"):
        np.testing.assert_array_equal(np.signbit(found[3:5]), [False, True])


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("dtype", "lowest"), [(DType.FLOAT32, -103.0), (DType.FLOAT64, -744.0)])
def test_exp_underflows_gradually(dtype: DType, lowest: float, special: bool) -> None:
    x = np.linspace(lowest, lowest + 16, 1001).astype(dtype.numpy)
    found = math_kernel.build("exp", 4, dtype, special)(x)
    np.testing.assert_allclose(found, np.exp(x), atol=2 * np.finfo(dtype.numpy).smallest_subnormal)
    assert (found > 0).all()


def test_log_takes_denormal_numbers() -> None:
    for dtype, rtol in ((DType.FLOAT32, 2e-7), (DType.FLOAT64, 1e-14)):
        x = np.finfo(dtype.numpy).smallest_subnormal * np.arange(1, 2000, dtype=dtype.numpy)
        found = math_kernel.build("log", 4, dtype)(x)
        np.testing.assert_allclose(found, np.log(x.astype(np.longdouble)).astype(np.float64), rtol=rtol)  # fmt: skip


@pytest.mark.parametrize("width", [1, 4, 16])
def test_pow_is_accurate_at_every_width(width: int) -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-20, 20, 30_000)).astype(np.float32)
    y = rng.uniform(-4, 4, 30_000).astype(np.float32)
    found = math_kernel.build("pow", width, DType.FLOAT32)(x, y)
    assert _ulps(found, np.power(x.astype(np.float64), y.astype(np.float64))) <= 1.5


def test_pow_in_float64_is_accurate_up_to_the_size_of_its_exponent() -> None:
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-3, 3, 10_000)), rng.uniform(-5, 5, 10_000)
    found = math_kernel.build("pow", 4, DType.FLOAT64)(x, y)
    bound = 1e-14 * (1 + np.abs(y * np.log(x)))
    assert (np.abs(found / np.power(x, y) - 1) <= bound).all()


def test_functions_call_no_library() -> None:
    target = Target.host(1)
    for op in [*DENSE, "pow"]:
        for dtype in (DType.FLOAT32, DType.FLOAT64):
            text = assembly(math_kernel.module_text(op, 4, dtype), target)
            assert "call" not in text.replace("#", " ").split(), op


@pytest.mark.parametrize(
    ("op", "dtype", "message"),
    [
        ("exp", DType.FLOAT16, r"exp\(float16\): defined on float32 and float64; cast first"),
        ("pow", DType.FLOAT16, r"pow\(float16\): defined on float32 and float64; cast first"),
        ("cbrt", DType.FLOAT32, r"cbrt\(float32\): there is no vectorised version"),
    ],
)
def test_what_has_no_version_is_refused(op: str, dtype: DType, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        math_kernel.module_text(op, 4, dtype)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
def test_pow_of_zeros_infinities_and_negative_bases_is_numpys(dtype: DType) -> None:
    bases = [0.0, 0.5, 1.0, 2.0, np.inf, np.nan]
    powers = [0.0, 0.5, 1.0, 2.0, 3.0, 1.5, 1e30, np.inf, np.nan]
    pairs = [(s * x, t * y) for x in bases for y in powers for s in (1, -1) for t in (1, -1)]
    x, y = np.array(pairs, dtype.numpy).T.copy()
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    found = math_kernel.build("pow", 4, dtype)(x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype is DType.FLOAT32 else 1e-14)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))

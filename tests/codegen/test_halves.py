"""float16 and bfloat16 in memory: every value, every way of rounding, on every kind of target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.codegen import harness
from tests.codegen.targets import CROSS, HOST, foreign_symbols, text_of

from tilewright.codegen.build import build_default, build_program, default_trace
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.task import Task
from tilewright.tensor import DType, Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.te import Compute, Placeholder


def without(*features: str) -> Target:
    """This machine without some of its instructions."""
    kept = [f for f in HOST.features.split(",") if not any(x in f for x in features)]
    return replace(HOST, features=",".join(kept))


# the compiler still knows the instructions, our code does not use them
HERE = {"host": HOST, "by integers": without("f16c", "neon", "bf16")}
HALVES = ["float16", "bfloat16"]


def cast(n: int, source: str, to: str) -> Workload:
    x = te.placeholder((n,), source, name="x")
    return Workload.of(te.compute((n,), lambda i: te.cast(x[i], to), name="y"))


def edges(dtype: DType) -> Any:
    """Every value of the type, the float32 numbers just beside the middle of two, and some others."""
    with np.errstate(all="ignore"):
        exact = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy).astype(np.float32)
        finite = exact[np.isfinite(exact)]
        ordered = np.unique(finite)
        middle = ((ordered[1:].astype(np.float64) + ordered[:-1]) / 2).astype(np.float32)
        near = [np.nextafter(middle, np.float32(s)) for s in (-np.inf, np.inf)]
        large = np.array([65519.9, 65520.0, 1e9, 3.4e38, -3.4e38, 1e-30, 1e-45, -0.0], np.float32)
    return np.concatenate([exact, middle, *near, large])


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("target", HERE)
def test_every_half_becomes_the_float_that_it_is(name: str, target: str) -> None:
    dtype = DType(name)
    data = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    kernel = build_default(cast(1 << 16, name, "float32"), HERE[target])
    np.testing.assert_array_equal(harness.run(kernel, [data])[0], data.astype(np.float32))


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("vectors", [True, False])
def test_floats_are_rounded_to_the_nearest_half(name: str, target: str, vectors: bool) -> None:
    dtype = DType(name)
    data = edges(dtype)
    if dtype is DType.BFLOAT16:  # AVX-512 takes subnormal numbers for zero
        data = data[~((np.abs(data) < 2.0**-126) & (data != 0))]
    w = cast(len(data), "float32", name)
    kernel = build_default(w, HERE[target]) if vectors else build_program(Schedule(w).program, HERE[target])[0]  # fmt: skip
    with np.errstate(all="ignore"):
        expected = data.astype(dtype.numpy)
    found = harness.run(kernel, [data])[0]
    same = (found.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(found) & np.isnan(expected))  # fmt: skip
    assert same.all(), (data[~same][:5], found[~same][:5], expected[~same][:5])


def p(*shape: int, dtype: str, const: bool = False, name: str = "x") -> Placeholder:
    return te.placeholder(shape, dtype, name=name, const=const)


KERNELS: dict[str, Callable[[str], Compute]] = {
    "matmul": lambda d: ops.matmul(p(7, 300, dtype=d), p(300, 33, dtype=d, const=True, name="w")),
    "conv": lambda d: ops.conv2d(p(1, 6, 9, 11, dtype=d), p(5, 6, 3, 3, dtype=d, const=True, name="w"), padding=1),
    "depthwise": lambda d: ops.conv2d(p(1, 6, 9, 11, dtype=d), p(6, 1, 3, 3, dtype=d, const=True, name="w"), groups=6),
    "softmax": lambda d: ops.softmax(p(5, 37, dtype=d)),
    "layer norm": lambda d: ops.layer_norm(p(3, 48, dtype=d), p(48, dtype=d, name="s"), p(48, dtype=d, name="b")),
    "rms norm": lambda d: ops.rms_norm(p(3, 48, dtype=d), p(48, dtype=d, name="s")),
    "average pool": lambda d: ops.pool(p(1, 3, 9, 9, dtype=d), "average", kernel=[3, 3], stride=[2, 2], padding=[(1, 1)] * 2),
    "max pool": lambda d: ops.pool(p(1, 3, 9, 9, dtype=d), "max", kernel=[3, 3], stride=[2, 2], padding=[(1, 1)] * 2),
    "sum of rows": lambda d: ops.reduce(p(5, 700, dtype=d), "sum", [1]),
    "transposed conv": lambda d: ops.conv_transpose(p(1, 4, 5, 5, dtype=d), p(4, 3, 3, 3, dtype=d, name="w"), stride=[2, 2], padding=[(1, 1)] * 2),
    "elementwise": lambda d: ops.elementwise("y", lambda a, b: te.exp(a) * b + te.tanh(a) - te.maximum(a, b) * 0.3, p(9, 37, dtype=d), p(37, dtype=d, name="b")),
    "transpose": lambda d: ops.transpose(p(19, 33, dtype=d), [1, 0]),
    "strided": lambda d: ops.slice_(p(70, dtype=d), [1], [30], [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("target", HERE)
def test_kernels_of_halves_agree_with_the_evaluator(name: str, dtype: str, target: str) -> None:
    w = Workload.of(KERNELS[name](dtype), name)
    data = make_inputs(w)
    expected = evaluate(w, data, precision="double")[0]
    found = harness.run(build_default(w, HERE[target]), data)[0]
    assert found.dtype == DType(dtype).numpy
    # one rounding at the end, and those of float32 before: not one for each of the sum's terms
    eps = 2.0**-10 if dtype == "float16" else 2.0**-7
    scale = float(np.sqrt(np.mean(np.square(expected))))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=eps, atol=1e-4 * scale)
    assert compare(found, expected, tolerance(w)) is None


def test_a_long_sum_of_float16_does_not_stop_growing() -> None:
    x = te.placeholder((1, 5000), "float16", name="x")
    w = Workload.of(ops.reduce(x, "sum", [1], name="y"))
    found = harness.run(build_default(w, HOST), [np.ones((1, 5000), np.float16)])[0]
    assert found[0, 0] == 5000.0  # float16 itself would stay at 2048


@pytest.mark.parametrize("name", ["matmul", "softmax", "elementwise", "conv"])
@pytest.mark.parametrize("dtype", [*HALVES, "float64"])
@pytest.mark.parametrize("target", CROSS)
def test_no_target_needs_a_library(name: str, dtype: str, target: str) -> None:
    w = Workload.of(KERNELS[name](dtype), name)
    s = Schedule(Task(w, CROSS[target]))
    s.apply(default_trace(w, CROSS[target]))
    # x86-64 as it was in 2003 has no fused multiply-add
    assert foreign_symbols(s.program, CROSS[target]) <= (
        {"fma", "fmaf"} if target == "sse" else set()
    )


@pytest.mark.parametrize(
    ("target", "dtype", "words"),
    [
        ("avx2", "float16", ("vcvtph2ps", "vcvtps2ph")),
        ("avx512", "float16", ("vcvtph2ps", "vcvtps2ph")),
        ("avx512 with bf16", "bfloat16", ("vpslld", "vcvtneps2bf16")),
        ("neon", "float16", ("fcvtl", "fcvtn")),
    ],
)
def test_vectors_of_halves_are_converted_by_instructions(
    target: str, dtype: str, words: tuple[str, ...]
) -> None:
    x = te.placeholder((64,), dtype, name="x")
    s = Schedule(Workload.of(te.compute((64,), lambda i: x[i] * 2.0, name="y")))
    s.vectorize("i")
    text = text_of(s.program, CROSS[target])
    assert all(w in text for w in words)

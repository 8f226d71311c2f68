"""Loads and stores of every stride, type and length, and nothing outside of arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen import harness

from tilewright.codegen.build import build_program
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import DType, Workload, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Expr
from tilewright.tensor.te import Tensor

HOST = Target.host(1)
TYPES = [d.value for d in DType if d not in (DType.FLOAT16, DType.BFLOAT16)]


def check(workload: Workload, vectorized: str | None) -> str:
    """Compile, run and compare; returns the module's text."""
    s = Schedule(workload)
    if vectorized is not None:
        s.vectorize(vectorized)
    data = make_inputs(workload)
    expected = evaluate(workload, data, precision="double")
    found = harness.run(build_program(s.program, HOST)[0], data)
    for a, b in zip(found, expected):
        problem = compare(a, b, tolerance(workload))
        assert problem is None, f"{problem}\n{s.program}"
    return emit_module(s.program, HOST.vector_bits, 1).module.text()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 31, 64, 67])
def test_rows_of_any_length_and_type_are_copied(n: int, dtype: str) -> None:
    x = te.placeholder((3, n), dtype, name="x")
    check(Workload.of(te.compute((3, n), lambda i, j: x[i, j], name="y")), "j")


@given(
    st.integers(1, 40),
    st.integers(0, 6),
    st.integers(0, 3),
    st.sampled_from(["float32", "float64", "int32", "uint8"]),
)
@settings(max_examples=40, deadline=None)  # fmt: skip
def test_strided_loads_read_every_element_and_none_behind(n: int, stride: int, first: int, dtype: str) -> None:  # fmt: skip
    x = te.placeholder((2, (n - 1) * stride + first + 1), dtype, name="x")
    check(Workload.of(te.compute((2, n), lambda i, j: x[i, j * stride + first], name="y")), "j")


INDICES: dict[str, Callable[[Tensor, Expr, Expr], Expr]] = {
    "columns": lambda x, i, j: x[j, i],
    "reversed": lambda x, i, j: x[i, 19 - j],
    "diagonals": lambda x, i, j: x[(i + j) % 20, j],
    "quotients": lambda x, i, j: x[i, j // 3],
    "remainders": lambda x, i, j: x[j % 3, j],
    "products": lambda x, i, j: x[i, i * j // 20],
    "one element": lambda x, i, j: x[i, 7],
    "guarded": lambda x, i, j: te.select(te.logical_and(j >= 3, j < 15), x[i, j - 3], 1.0),
    "guarded columns": lambda x, i, j: te.select(j < 20 - i, x[j + i, i], 2.0),
    "guarded by data": lambda x, i, j: te.select(x[i, j] > 0.0, x[i, j], x[j, i]),
    "guarded, one element": lambda x, i, j: te.select(i < 5, x[i + 15, 3], 0.0),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("vectorized", [None, "j"])
def test_indices_of_any_form_are_addressed(name: str, vectorized: str | None) -> None:
    x = te.placeholder((20, 20), name="x")
    check(Workload.of(te.compute((20, 20), lambda i, j: INDICES[name](x, i, j), name="y")), vectorized)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_columns_are_stored_lane_by_lane(dtype: str) -> None:
    x = te.placeholder((5, 19), dtype, name="x")
    w = Workload.of(te.compute((19, 5), lambda i, j: x[j, i], name="y"))
    s = Schedule(w)
    s.reorder("j", "i")
    s.vectorize("i")
    data = make_inputs(w)
    found = harness.run(build_program(s.program, HOST)[0], data)[0]
    np.testing.assert_array_equal(found, data[0].T)


def test_indices_that_are_data_are_gathered() -> None:
    x, n = te.placeholder((30,), name="x"), te.placeholder((21,), "int32", name="n")
    y = te.compute((21,), lambda i: x[te.cast(n[i], "int64")], name="y")
    check(Workload.of(y), "i")


def test_arrays_of_the_caller_are_never_read_or_written_behind_their_end() -> None:
    """Tails are masked, so a whole vector never crosses the end of a parameter."""
    x = te.placeholder((37,), name="x")
    text = check(Workload.of(te.compute((37,), lambda i: x[i] * 2.0, name="y")), "i")
    tail = 37 % (HOST.vector_bits // 32)
    assert "@llvm.masked.load" in text and "@llvm.masked.store" in text
    mask = next(
        line for line in text.splitlines() if "@llvm.masked.store" in line and "call" in line
    )
    assert mask.count("i1 true") == tail


@pytest.mark.parametrize("op", [te.sum, te.prod, te.max, te.min])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("n", [3, 16, 53])
def test_lanes_are_combined_once_behind_the_loop(op: Callable[..., Expr], dtype: str, n: int) -> None:  # fmt: skip
    x = te.placeholder((4, n), dtype, name="x")
    k = te.reduce_axis(n, "k")
    check(Workload.of(te.compute((4,), lambda i: op(x[i, k], k), name="y")), "k")

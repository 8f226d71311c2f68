"""Square blocks that are transposed in registers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen import harness

from tilewright.codegen.build import build_program
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te

HOST = Target.host(1)
LANES = HOST.vector_bits // 32


def scheduled(rows: int, columns: int, tile: int, lanes: int, dtype: str = "float32") -> Schedule:
    """``y[i, j] = x[j, i] + z[i, j]`` in tiles, rows unrolled and columns in vectors."""
    x = te.placeholder((columns, rows), dtype, name="x")
    z = te.placeholder((rows, columns), dtype, name="z")
    y = te.compute((rows, columns), lambda i, j: x[j, i] + z[i, j], name="y")
    s = Schedule(Workload.of(y))
    i0, i1 = s.split("i", [tile])
    j0, j1 = s.split("j", [lanes])
    s.reorder(i0, j0, i1, j1)
    s.unroll(i1)
    s.vectorize(j1)
    return s


def check(s: Schedule) -> None:
    x, z = s.workload.inputs
    rng = np.random.default_rng(0)
    data = [rng.integers(-99, 99, t.shape).astype(t.dtype.numpy) for t in (x, z)]
    found = harness.run(build_program(s.program, HOST)[0], data)[0]
    np.testing.assert_array_equal(found, data[0].T + data[1])


@given(
    st.integers(1, 50), st.integers(1, 50), st.sampled_from([1, 3, 4, 8, 16, 20, 32]),
    st.sampled_from([2, 4, 8, 16, 32]), st.sampled_from(["float32", "float64", "int32", "int64", "int8"]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_blocks_and_what_is_left_of_them_hold_the_right_elements(
    rows: int, columns: int, tile: int, lanes: int, dtype: str
) -> None:
    check(scheduled(rows, columns, tile, lanes, dtype))


@pytest.mark.parametrize("times", [1, 2])
def test_a_block_is_loaded_by_rows_and_shuffled(times: int) -> None:
    s = scheduled(64, 64, LANES * times, LANES)
    check(s)
    text = emit_module(s.program, HOST.vector_bits, 1).module.text()
    shuffles = LANES * int(np.log2(LANES)) * times
    assert text.count("shufflevector") == shuffles
    assert not re.search(r"load float,", text) and "insertelement" not in text


def test_a_buffer_that_the_kernel_writes_is_read_when_it_is_needed() -> None:
    x = te.placeholder((32, 32), name="x")
    t = te.compute((32, 32), lambda i, j: x[i, j] * 2.0, name="t")
    y = te.compute((32, 32), lambda i, j: t[j, i] + t[i, j], name="y")
    s = Schedule(Workload.of(y))
    loops = s.loops("y")
    i0, i1 = s.split(loops[0], [LANES])
    j0, j1 = s.split(loops[1], [LANES])
    s.reorder(i0, j0, i1, j1)
    s.unroll(i1)
    s.vectorize(j1)
    data = np.arange(1024, dtype=np.float32).reshape(32, 32)
    found = harness.run(build_program(s.program, HOST)[0], [data])[0]
    np.testing.assert_array_equal(found, 2 * data.T + 2 * data)

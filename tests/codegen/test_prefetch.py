"""Prefetches in machine code: one for each cache line, none that changes a result."""

from __future__ import annotations

import pytest
from tests.codegen import harness
from tests.schedule import workloads

from tilewright.codegen.build import build_program
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate

HOST = Target.host(1)


def calls(s: Schedule, vector_bits: int = 256) -> int:
    """Prefetch instructions in the code, after the kernel was run and compared."""
    data = make_inputs(s.workload)
    expected = evaluate(s.workload, data, precision="double")
    for a, b in zip(harness.run(build_program(s.program, HOST)[0], data), expected):
        assert compare(a, b, tolerance(s.workload)) is None
    return emit_module(s.program, vector_bits, 1).module.text().count("call void @llvm.prefetch")


def rows(k1: int, lanes: int, *, distance: int = 3) -> Schedule:
    s = Schedule(workloads.matmul(3, 64, 24, epilogue=False))
    s.reorder("k", "j")
    s.prefetch("C", "B", "k", distance)
    s.split("k", [k1])
    s.split("j", [lanes])
    s.reorder("j.0", "k.0", "k.1", "j.1")
    s.decompose_reduction("C", "k.0")
    s.unroll("k.1")
    s.vectorize("j.1")
    return s


@pytest.mark.parametrize(("lanes", "lines"), [(8, 1), (16, 1), (32, 2), (64, 4)])
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_lanes_of_one_cache_line_share_a_prefetch(lanes: int, lines: int, bits: int) -> None:
    assert calls(rows(4, lanes), bits) == 4 * lines


def test_distance_zero_makes_no_code() -> None:
    assert calls(rows(4, 16, distance=0)) == 0


def test_unrolled_copies_that_read_the_same_line_share_a_prefetch() -> None:
    s = Schedule(workloads.matmul(16, 16, 24, epilogue=False))
    s.reorder("k", "i", "j")
    s.prefetch("C", "B", "k", 2)
    s.prefetch("C", "A", "k", 2)
    s.unroll("i")
    s.vectorize("j")
    s.decompose_reduction("C", "k")
    assert calls(s) == 1 + 16  # B's row once; sixteen rows of A


def test_a_loop_that_stays_in_a_line_asks_where_one_begins() -> None:
    x = te.placeholder((3, 50), name="x")
    s = Schedule(Workload.of(te.compute((3, 50), lambda i, j: x[i, j] + 1.0, name="y")))
    s.prefetch("y", "x", "j", 16)
    assert calls(s) == 1
    assert "icmp ult i64" in emit_module(s.program, 256, 1).module.text()


@pytest.mark.parametrize(("stride", "lines"), [(1, 1), (2, 2), (5, 5), (16, 16)])
def test_steps_between_lanes_are_counted_in_lines(stride: int, lines: int) -> None:
    x = te.placeholder((4, 16 * stride), name="x")
    s = Schedule(Workload.of(te.compute((4, 16), lambda i, j: x[i, j * stride], name="y")))
    s.prefetch("y", "x", "i", 1)
    s.vectorize("j")
    assert calls(s, 512) == lines


def test_lanes_at_irregular_places_are_fetched_by_lines() -> None:
    x = te.placeholder((4, 32), name="x")
    s = Schedule(Workload.of(te.compute((4, 16), lambda i, j: x[i, (j * 7) % 32], name="y")))
    s.prefetch("y", "x", "i", 1)
    s.vectorize("j")
    assert calls(s, 512) == 2

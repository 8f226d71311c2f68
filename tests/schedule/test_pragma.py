"""Pragmas and aligned rows."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from tests.codegen import harness
from tests.schedule import workloads

from tilewright.codegen.build import build_program
from tilewright.codegen.target import Target
from tilewright.errors import ScheduleError
from tilewright.measure.inputs import make_inputs
from tilewright.schedule.interpret import interpret
from tilewright.schedule.program import Pragma
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate


def test_a_pragma_stands_at_the_end_of_its_line() -> None:
    s = Schedule(workloads.transpose(3, 5))
    s.pragma("Y", Pragma.NONTEMPORAL)
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[3, 5], Y: float32[5, 3]):
            for i in range(5):
                for j in range(3):
                    Y[i, j] = X[j, i] * 2.0  # nontemporal
        """)
    assert str(s.trace) == "s.pragma('Y', 'nontemporal')"


def test_a_pragma_is_refused_where_it_means_nothing() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    with pytest.raises(ScheduleError) as e:
        s.pragma("C", "nontemporal")
    assert str(e.value) == (
        "pragma(C, nontemporal): C reads what it writes; hint a block that only writes"
    )
    with pytest.raises(ScheduleError) as e:
        s.pragma("C", "faster")
    assert str(e.value) == "pragma(C, 'faster'): choose one of ['nontemporal']"


def test_aligned_rows_are_shown_and_laid_out() -> None:
    s = Schedule(workloads.matmul(4, 20, 3, epilogue=False))
    s.cache_read("C", "A")
    s.storage_align("A.local", 0, 16, 8)
    assert "A.local = alloc(float32, [4, 3], strides % [0: 16] = 8)  # temp" in str(s.program)
    s.storage_align("A.local", 0, 1, 0)
    assert "strides % [0: 1] = 0" in str(s.program)


@pytest.mark.parametrize(
    ("buffer", "dimension", "factor", "offset", "message"),
    [
        ("A", 0, 16, 0, "A is no temporary in memory; use cache_read or cache_write"),
        ("A.local", 1, 16, 0, "no dimension of rows; A.local has 2, the last cannot be padded"),
        ("A.local", 0, 16, 16, "needs 0 <= offset < factor"),
        ("A.local", 0, 0, 0, "needs 0 <= offset < factor"),
    ],
)
def test_rows_that_cannot_be_aligned_are_refused(
    buffer: str, dimension: int, factor: int, offset: int, message: str
) -> None:
    s = Schedule(workloads.matmul(4, 20, 3, epilogue=False))
    s.cache_read("C", "A")
    with pytest.raises(ScheduleError) as e:
        s.storage_align(buffer, dimension, factor, offset)
    assert str(e.value) == f"storage_align({buffer}, {dimension}, {factor}, {offset}): {message}"


@pytest.mark.parametrize("const", [False, True])
@pytest.mark.parametrize("offset", [0, 4, 15])
def test_aligned_rows_change_no_result(const: bool, offset: int) -> None:
    workload = workloads.matmul(5, 19, 7, const=const, epilogue=False)
    s = Schedule(workload)
    s.cache_read("C", "B", [(1, 8)])
    s.storage_align("B.pack", 1, 16, offset)
    s.storage_align("B.pack", 0, 32, 8)
    data = make_inputs(workload)
    expected = evaluate(workload, data)[0]
    np.testing.assert_allclose(interpret(s.program, data)[0], expected, rtol=1e-5)
    kernel, _ = build_program(s.program, Target.host(1))
    np.testing.assert_allclose(harness.run(kernel, data)[0], expected, rtol=1e-5)


def test_an_order_of_aligned_rows_is_refused() -> None:
    s = Schedule(workloads.matmul(4, 20, 3, epilogue=False))
    s.cache_read("C", "A")
    s.storage_align("A.local", 0, 16, 0)
    with pytest.raises(ScheduleError, match="aligned already; use storage_align afterwards"):
        s.transform_layout("A.local", [1, 0])


@pytest.mark.parametrize("n", [1, 15, 16, 33, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_stores_past_the_caches_change_no_result(n: int, threads: int) -> None:
    x = te.placeholder((3, n), name="x")
    workload = Workload.of(ops.elementwise("y", lambda v: v * 2.0 + 1.0, x))
    s = Schedule(workload)
    outer, inner = s.split("i1", [32])
    s.vectorize(inner)
    s.parallel(s.fuse("i0", outer))
    s.pragma("y", "nontemporal")
    data = make_inputs(workload)
    kernel, _ = build_program(s.program, Target.host(threads))
    np.testing.assert_array_equal(harness.run(kernel, data)[0], evaluate(workload, data)[0])


def test_only_results_beyond_the_caches_have_the_choice() -> None:
    target = Target.host(1)
    rows = target.l3_bytes // 4 // 1024
    names = {}
    for n in (rows // 2, rows * 2):
        x = te.placeholder((n, 1024), name="x")
        workload = Workload.of(ops.elementwise("y", lambda v: v * 2.0, x))
        names[n] = [s.name for s in Space(Task(workload, target)).sketches]
    assert names[rows // 2] == ["naive", "elementwise"]
    assert names[rows * 2] == [
        "naive", "elementwise[y.stores=cached]", "elementwise[y.stores=past_caches]",
    ]  # fmt: skip

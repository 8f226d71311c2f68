"""Primitives on reductions: what they make, what they refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule import workloads
from tests.schedule.random_steps import window
from tests.schedule.refusals import assert_refused

from tilewright.measure.inputs import make_inputs
from tilewright.schedule.interpret import interpret
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload
from tilewright.tensor.evaluate import evaluate


def test_decompose_reduction_writes_the_initial_values_before_a_loop() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    s.decompose_reduction("C", "k")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for i in range(7):
                for j in range(11):
                    C[i, j] = 0.0  # C.init
                    for k in range(5):
                        C[i, j] += A[i, k] * B[k, j]
        """)


def test_decompose_reduction_outside_makes_a_nest_of_its_own() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    s.decompose_reduction("C", "i")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for i.init in range(7):
                for j.init in range(11):
                    C[i.init, j.init] = 0.0  # C.init
            for i in range(7):
                for j in range(11):
                    for k in range(5):
                        C[i, j] += A[i, k] * B[k, j]
        """)


def test_rfactor_makes_partial_results() -> None:
    s = Schedule(workloads.matmul(4, 8, 6, epilogue=False))
    s.split("k", [2])
    assert s.rfactor("C", "k.1") == "C.rf"
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[4, 6], B: float32[6, 8], C: float32[4, 8]):
            C.rf = alloc(float32, [2, 4, 8])  # temp
            for C.rf.i in range(4):
                for C.rf.j in range(8):
                    for C.rf.k.1 in range(2):
                        for k.0 in range(3):
                            C.rf[C.rf.k.1, C.rf.i, C.rf.j] += A[C.rf.i, C.rf.k.1 + k.0*2] * B[C.rf.k.1 + k.0*2, C.rf.j]  # init 0.0
            for i in range(4):
                for j in range(8):
                    for k.1 in range(2):
                        C[i, j] += C.rf[k.1, i, j]  # init 0.0
        """)


def test_rfactor_of_an_outer_loop_makes_blocks_of_the_reduction() -> None:
    """The last block is shorter."""
    s = Schedule(workloads.matmul(4, 8, 5, epilogue=False))
    s.split("k", [2])
    s.rfactor("C", "k.0")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[4, 5], B: float32[5, 8], C: float32[4, 8]):
            C.rf = alloc(float32, [3, 4, 8])  # temp
            for C.rf.i in range(4):
                for C.rf.j in range(8):
                    for C.rf.k.0 in range(3):
                        for k.1 in range(min(2, -C.rf.k.0*2 + 5)):
                            C.rf[C.rf.k.0, C.rf.i, C.rf.j] += A[C.rf.i, C.rf.k.0*2 + k.1] * B[C.rf.k.0*2 + k.1, C.rf.j]  # init 0.0
            for i in range(4):
                for j in range(8):
                    for k.0 in range(3):
                        C[i, j] += C.rf[k.0, i, j]  # init 0.0
        """)
    workload = workloads.matmul(4, 8, 5, epilogue=False)
    data = make_inputs(workload)
    (found,), (expected,) = interpret(s.program, data), evaluate(workload, data)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.reorder("k", "i"); s.decompose_reduction("C", "i")', 'decompose_reduction(C, i): k is a reduction outside of it, which would start over; choose k or an outer loop'),
    (workloads.matmul, 's.decompose_reduction("D", "D.i")', 'decompose_reduction(D, D.i): D has no initial value left to place'),
    (workloads.matmul, 's.decompose_reduction("C", "D.i")', 'decompose_reduction(C, D.i): the loop is not around C; choose one of i, j, k'),
    (window, 's.compute_at("S", "i"); s.decompose_reduction("S", "i")', 'decompose_reduction(S, i): i also holds a reader of S; choose a loop inside of it'),
    (workloads.matmul, 's.rfactor("C", "i")', 'rfactor(C, i): i is a spatial loop; choose one that the reduction runs over'),
    (workloads.matmul, 's.decompose_reduction("C", "k"); s.rfactor("C", "k")', 'rfactor(C, k): C is no undecomposed reduction'),
    (workloads.matmul, 's.rfactor("C", "D.i")', 'rfactor(C, D.i): D.i is no plain loop around C'),
    (workloads.matmul, 's.unroll("k"); s.rfactor("C", "k")', 'rfactor(C, k): the loops of C are shared or annotated; rfactor first'),
    (workloads.matmul, 's.split("k", [2]); s.rfactor("C", "k.1")', 'rfactor(C, k.1): the extent min(2, -k.0*2 + 5) depends on another reduction loop; split by a factor that divides, or choose the outer level'),
    (lambda: workloads.matmul(4, 4, 4, epilogue=False), 's.rfactor("C", "k"); s.rfactor("C", "k")', 'rfactor(C, k): C.rf exists already'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

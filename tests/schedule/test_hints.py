"""Hints to the memory system: where they stand in a program, what is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule import workloads
from tests.schedule.refusals import assert_refused

from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te
from tilewright.tensor.expr import Knob


def gathered() -> Workload:
    x, n = te.placeholder((9,), name="X"), te.placeholder((6,), "int64", name="N")
    return Workload.of(te.compute((6,), lambda i: x[n[i]], name="Y"))


def test_prefetch_names_what_is_read_some_iterations_later() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    s.reorder("k", "j")
    s.prefetch("C", "B", "k", 2)
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for i in range(7):
                for k in range(5):
                    for j in range(11):
                        prefetch(B[k + 2, j])
                        C[i, j] += A[i, k] * B[k, j]  # init 0.0
        """)
    assert str(s.trace).splitlines()[1] == "s.prefetch('C', 'B', 'k', 2)"


def test_a_prefetch_follows_its_block_through_later_steps() -> None:
    s = Schedule(workloads.matmul(7, 11, 8, epilogue=False))
    s.reorder("k", "j")
    s.prefetch("C", "B", "k", Knob("d"))
    s.split("k", [4])
    s.cache_read("C", "B", [(0, 4)])
    s.decompose_reduction("C", "k.0")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 8], B: float32[8, 11], C: float32[7, 11]):
            B.pack = alloc(float32, [2, 11, 4])  # temp
            for B.p0 in range(2):
                for B.i1 in range(11):
                    for B.q0 in range(min(4, -B.p0*4 + 8)):
                        B.pack[B.p0, B.i1, B.q0] = B[B.p0*4 + B.q0, B.i1]
            for i in range(7):
                for j.init in range(11):
                    C[i, j.init] = 0.0  # C.init
                for k.0 in range(2):
                    for k.1 in range(4):
                        for j in range(11):
                            prefetch(B.pack[(d + k.1) // 4 + k.0, j, (d + k.1) % 4])
                            C[i, j] += A[i, k.0*4 + k.1] * B.pack[k.0, j, k.1]
        """)


def test_distance_zero_fetches_nothing() -> None:
    s = Schedule(workloads.matmul())
    before = s.program
    s.prefetch("C", "B", "k", 0)
    assert s.program is before and len(s.trace.steps) == 1


def test_inlining_a_buffer_drops_its_prefetches() -> None:
    workload = workloads.softmax()
    s = Schedule(workload)
    s.prefetch("Y", "E", "Y.j", 3)
    s.prefetch("S", "E", "k2", 1)
    assert str(s.program).count("prefetch") == 2
    s.compute_inline("E")
    assert "prefetch" not in str(s.program)
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)[0]
    np.testing.assert_allclose(interpret(s.program, data)[0], expected, rtol=1e-6)


def test_pragma_stands_at_the_end_of_the_line() -> None:
    s = Schedule(workloads.transpose())
    s.pragma("Y", "nontemporal")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[9, 14], Y: float32[14, 9]):
            for i in range(14):
                for j in range(9):
                    Y[i, j] = X[j, i] * 2.0  # nontemporal
        """)
    assert str(s.trace) == "s.pragma('Y', 'nontemporal')"


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.prefetch("C", "B", "k", -1)', 'prefetch(C, B, k, -1): the distance is below 0; use 0 or more'),
    (workloads.matmul, 's.prefetch("D", "B", "D.i", 1)', 'prefetch(D, B, D.i, 1): the block does not read B'),
    (workloads.matmul, 's.prefetch("C", "B", "D.i", 1)', 'prefetch(C, B, D.i, 1): the loop is not around C; choose one of i, j, k'),
    (workloads.matmul, 's.prefetch("C", "B", "i", 1)', 'prefetch(C, B, i, 1): each iteration reads the same of B; choose a loop that moves B[k, j]'),
    (workloads.matmul, 's.fuse("i", "j"); s.prefetch("C", "A", "i*j", 1)', 'prefetch(C, A, i*j, 1): the loop is fused; prefetch before that, or along another'),
    (workloads.matmul, 's.vectorize("k"); s.prefetch("C", "A", "k", 1)', 'prefetch(C, A, k, 1): the loop is vectorized; prefetch before that, or along another'),
    (workloads.matmul, 's.prefetch("C", "B", "k", 1); s.prefetch("C", "B", "j", 1)', 'prefetch(C, B, j, 1): C fetches B ahead already'),
    (workloads.matmul, 's.set_scope("C", "register"); s.prefetch("D", "C", "D.i", 1)', 'prefetch(D, C, D.i, 1): C stays in registers; choose a buffer in memory'),
    (workloads.matmul, 's.pragma("D", "fast")', "pragma(D, 'fast'): choose one of ['nontemporal']"),
    (workloads.matmul, 's.pragma("C", "nontemporal")', 'pragma(C, nontemporal): C is a reduction, which reads what it has written; use cache_write first'),
    (workloads.transpose, 's.pragma("Y", "nontemporal"); s.pragma("Y", "nontemporal")', 'pragma(Y, nontemporal): Y asks for that already'),
    (workloads.transpose, 's.cache_write("Y"); s.set_scope("Y.local", "register"); s.pragma("Y", "nontemporal")', 'pragma(Y, nontemporal): Y.local stays in registers; choose a block that writes memory'),
    (gathered, 's.prefetch("Y", "X", "i", 1)', 'prefetch(Y, X, i, 1): where X[N[i]] lies is data, which is not known ahead'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

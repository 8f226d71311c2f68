"""Primitives on buffers: what they make, what they refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from tests.schedule import workloads
from tests.schedule.refusals import assert_refused

from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload


def test_cache_write_copies_what_a_block_made() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    assert s.cache_write("C") == "C.out"
    s.split("i", [4])
    s.reverse_compute_at("C.out", "i.0")
    s.set_scope("C.local", "register")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            C.local = alloc(float32, [4, 11])  # register
            for i.0 in range(2):
                for i.1 in range(min(4, -i.0*4 + 7)):
                    for j in range(11):
                        for k in range(5):
                            C.local[i.1, j] += A[i.0*4 + i.1, k] * B[k, j]  # C, init 0.0
                for C.i0 in range(min(4, -i.0*4 + 7)):
                    for C.i1 in range(11):
                        C[C.i0 + i.0*4, C.i1] = C.local[C.i0, C.i1]  # C.out
        """)


def test_cache_read_packs_a_constant_into_panels() -> None:
    s = Schedule(workloads.matmul(const=True, epilogue=False))
    s.split("j", [4])
    assert s.cache_read("C", "B", [(1, 4)]) == "B.pack"
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            B.pack = alloc(float32, [3, 5, 4])  # packed
            for B.p1 in range(3):
                for B.i0 in range(5):
                    for B.q1 in range(min(4, -B.p1*4 + 11)):
                        B.pack[B.p1, B.i0, B.q1] = B[B.i0, B.p1*4 + B.q1]
            for i in range(7):
                for j.0 in range(3):
                    for j.1 in range(min(4, -j.0*4 + 11)):
                        for k in range(5):
                            C[i, j.0*4 + j.1] += A[i, k] * B.pack[j.0, k, j.1]  # init 0.0
        """)


def test_cache_read_fills_the_last_panel_up_with_zeros() -> None:
    workload = workloads.matmul(const=True, epilogue=False)
    s = Schedule(workload)
    s.split("j", [4])
    s.cache_read("C", "B", [(1, 4)], pad=True)
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            B.pack = alloc(float32, [3, 5, 4])  # packed
            for B.p1 in range(3):
                for B.i0 in range(5):
                    for B.q1 in range(4):
                        B.pack[B.p1, B.i0, B.q1] = select(B.p1*4 + B.q1 < 11, B[B.i0, B.p1*4 + B.q1], 0.0)
            for i in range(7):
                for j.0 in range(3):
                    for j.1 in range(min(4, -j.0*4 + 11)):
                        for k in range(5):
                            C[i, j.0*4 + j.1] += A[i, k] * B.pack[j.0, k, j.1]  # init 0.0
        """)
    assert str(s.trace).splitlines()[1] == "s.cache_read('C', 'B', [[1, 4]], 1)"


def test_cache_read_copies_an_input() -> None:
    s = Schedule(workloads.transpose())
    assert s.cache_read("Y", "X") == "X.local"
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[9, 14], Y: float32[14, 9]):
            X.local = alloc(float32, [9, 14])  # temp
            for X.i0 in range(9):
                for X.i1 in range(14):
                    X.local[X.i0, X.i1] = X[X.i0, X.i1]
            for i in range(14):
                for j in range(9):
                    Y[i, j] = X.local[j, i] * 2.0
        """)


def test_copies_of_copies_have_loops_of_their_own() -> None:
    s = Schedule(workloads.transpose())
    s.cache_read("Y", "X")
    s.cache_read("X.local", "X", [(0, 5)])
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[9, 14], Y: float32[14, 9]):
            X.local = alloc(float32, [9, 14])  # temp
            X.pack = alloc(float32, [2, 14, 5])  # temp
            for X.c.p0 in range(2):
                for X.c.i1 in range(14):
                    for X.c.q0 in range(min(5, -X.c.p0*5 + 9)):
                        X.pack[X.c.p0, X.c.i1, X.c.q0] = X[X.c.p0*5 + X.c.q0, X.c.i1]
            for X.i0 in range(9):
                for X.i1 in range(14):
                    X.local[X.i0, X.i1] = X.pack[X.i0 // 5, X.i1, X.i0 % 5]
            for i in range(14):
                for j in range(9):
                    Y[i, j] = X.local[j, i] * 2.0
        """)


def test_packed_buffers_are_made_of_packed_ones() -> None:
    s = Schedule(workloads.matmul(const=True, epilogue=False))
    s.cache_read("C", "B")
    s.cache_write("B.local")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            B.local = alloc(float32, [5, 11])  # packed
            B.local.local = alloc(float32, [5, 11])  # packed
            for B.i0 in range(5):
                for B.i1 in range(11):
                    B.local.local[B.i0, B.i1] = B[B.i0, B.i1]  # B.local
            for B.local.i0 in range(5):
                for B.local.i1 in range(11):
                    B.local[B.local.i0, B.local.i1] = B.local.local[B.local.i0, B.local.i1]  # B.local.out
            for i in range(7):
                for j in range(11):
                    for k in range(5):
                        C[i, j] += A[i, k] * B.local[k, j]  # init 0.0
        """)


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.cache_read("C", "B", pad=True)', 'cache_read(C, B): only panels can be padded; give the dimensions to pack'),
    (workloads.matmul, 's.cache_write("D"); s.cache_write("D.out")', 'cache_write(D.out): D.local exists already'),
    (workloads.matmul, 's.cache_write("D"); s.compute_inline("D"); s.cache_write("D.out")', 'cache_write(D.out): D.out exists already'),
    (workloads.matmul, 's.decompose_reduction("C", "i"); s.cache_write("C")', 'cache_write(C): C is also written by C.init; do this before decompose_reduction'),
    (workloads.matmul, 's.cache_read("D", "A")', 'cache_read(D, A): the block does not read A'),
    (workloads.matmul, 's.cache_read("D", "Q")', "buffer('Q'): no such buffer; there are ['A', 'B', 'D', 'C']"),
    (workloads.matmul, 's.cache_read("C", "B", [(2, 4)])', 'cache_read(C, B): dimension 2 of a buffer of rank 2'),
    (workloads.softmax, 's.cache_read("E", "X"); s.cache_read("M", "X")', 'cache_read(M, X): X.local exists already'),
    (workloads.matmul, 's.reverse_compute_at("D", "i"); s.cache_read("D", "C")', 'cache_read(D, C): C writes C in the same nest; cache before you move blocks'),
    (workloads.matmul, 's.set_scope("A", "register")', "set_scope(A): A is the caller's (input); use cache_read or cache_write first"),
    (workloads.matmul, 's.set_scope("C", "l1")', "set_scope(C, 'l1'): choose one of ['global', 'register']"),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

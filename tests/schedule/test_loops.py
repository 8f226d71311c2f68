"""Primitives on loops: what they make, what they refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from tests.schedule import workloads
from tests.schedule.refusals import assert_refused

from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te
from tilewright.tensor.expr import Var


def test_split_shortens_the_last_tile() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    assert s.split("i", [4]) == (Var("i.0"), Var("i.1"))
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for i.0 in range(2):
                for i.1 in range(min(4, -i.0*4 + 7)):
                    for j in range(11):
                        for k in range(5):
                            C[i.0*4 + i.1, j] += A[i.0*4 + i.1, k] * B[k, j]  # init 0.0
        """)


def test_split_makes_several_levels() -> None:
    s = Schedule(workloads.transpose())
    s.split("i", [4, 2])
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[9, 14], Y: float32[14, 9]):
            for i.0 in range(2):
                for i.1 in range(min(4, -i.0*4 + 7)):
                    for i.2 in range(2):
                        for j in range(9):
                            Y[i.0*8 + i.1*2 + i.2, j] = X[j, i.0*8 + i.1*2 + i.2] * 2.0
        """)


def test_split_by_divisors_has_constant_extents() -> None:
    s = Schedule(workloads.matmul(4, 8, 6, epilogue=False))
    s.split("j", [4, 2])
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[4, 6], B: float32[6, 8], C: float32[4, 8]):
            for i in range(4):
                for j.0 in range(1):
                    for j.1 in range(4):
                        for j.2 in range(2):
                            for k in range(6):
                                C[i, j.0*8 + j.1*2 + j.2] += A[i, k] * B[k, j.0*8 + j.1*2 + j.2]  # init 0.0
        """)


def test_fuse_keeps_the_parts_visible() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    assert s.fuse("i", "j") == Var("i*j")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for i, j in grid(7, 11):
                for k in range(5):
                    C[i, j] += A[i, k] * B[k, j]  # init 0.0
        """)


def test_fuse_of_one_loop_does_nothing() -> None:
    s = Schedule(workloads.transpose())
    assert s.fuse("i") == Var("i")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[9, 14], Y: float32[14, 9]):
            for i in range(14):
                for j in range(9):
                    Y[i, j] = X[j, i] * 2.0
        """)


def test_reorder_moves_the_named_loops_only() -> None:
    s = Schedule(workloads.matmul(epilogue=False))
    s.reorder("k", "i")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            for k in range(5):
                for j in range(11):
                    for i in range(7):
                        C[i, j] += A[i, k] * B[k, j]  # init 0.0
        """)


def test_annotations_are_printed_behind_loops() -> None:
    s = Schedule(workloads.matmul())
    s.parallel("i")
    s.unroll("k")
    s.vectorize("D.j")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], D: float32[7, 11]):
            C = alloc(float32, [7, 11])  # temp
            for i in range(7):  # parallel
                for j in range(11):
                    for k in range(5):  # unrolled
                        C[i, j] += A[i, k] * B[k, j]  # init 0.0
            for D.i in range(7):
                for D.j in range(11):  # vectorized
                    D[D.i, D.j] = max(C[D.i, D.j], 0.0)
        """)


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.split("z", [2])', 'loop(z): no such loop; there are i, j, k, D.i, D.j'),
    (workloads.matmul, 's.split("i", [0])', "split(i, ['0']): factor 0 is below 1; use 1 or more"),
    (workloads.matmul, 's.split("i", [])', 'split(i, []): no factors; give the sizes of the inner levels'),
    (workloads.matmul, 's.fuse("i", "j"); s.split("i*j", [2])', 'split(i*j): the loop is fused; split before you fuse or annotate'),
    (workloads.matmul, 's.parallel("i"); s.split("i", [2])', 'split(i): the loop is parallel; split before you fuse or annotate'),
    (workloads.matmul, 's.fuse("i", "k")', 'fuse(i, k): k is not the only statement in i; reorder first'),
    (workloads.matmul, 's.parallel("i"); s.fuse("i", "j")', 'fuse(i, j): a loop is annotated already; fuse before you annotate'),
    (workloads.matmul, 's.split("i", [4]); s.fuse("i.0", "i.1")', 'fuse(i.0, i.1): the extent min(4, -i.0*4 + 7) of i.1 depends on an outer one; fuse the outer levels only'),
    (workloads.matmul, 's.fuse("j", "k")', 'fuse(j, k): C reduces over some of the loops only; use decompose_reduction first'),
    (workloads.matmul, 's.reorder("i", "i")', 'reorder(i, i): a loop occurs twice'),
    (workloads.matmul, 's.reorder("i", "D.i")', 'reorder(i, D.i): the loops are not nested in one another'),
    (workloads.matmul, 's.decompose_reduction("C", "k"); s.reorder("k", "i")', 'reorder(k, i): j holds several statements, so the loops are no perfect nest'),
    (workloads.matmul, 's.split("i", [4]); s.reorder("i.1", "i.0")', 'reorder(i.1, i.0): the extent min(4, -i.0*4 + 7) of i.1 needs i.0 outside of it'),
    (workloads.matmul, 's.parallel("i"); s.reorder("j", "i")', 'reorder(j, i): i is parallel and must stay outermost'),
    (workloads.matmul, 's.vectorize("D.j"); s.reorder("D.j", "D.i")', 'reorder(D.j, D.i): D.j is vectorized and must stay innermost'),
    (workloads.matmul, 's.vectorize("i")', 'vectorize(i): a loop is inside; reorder i innermost'),
    (workloads.matmul, 's.fuse("D.i", "D.j"); s.vectorize("D.i*D.j")', 'vectorize(D.i*D.j): the loop is fused; vectorize a plain one'),
    (workloads.matmul, 's.reorder("k", "i", "j"); s.parallel("k")', 'parallel(k): it reduces into C, a race; use rfactor first, or a spatial loop'),
    (workloads.matmul, 's.parallel("j")', 'parallel(j): not an outermost loop; reorder it outermost, or fuse it into that'),
    (workloads.matmul, 's.fuse("D.i", "D.j"); s.unroll("D.i*D.j")', 'unroll(D.i*D.j): the loop is fused; unroll a plain one'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_what_data_is_divided_by_stays_where_a_loop_is_cut(dtype: str) -> None:
    x = te.placeholder((12,), dtype, name="X")
    s = Schedule(
        Workload.of(te.compute((12,), lambda i: (x[i] * 6) // 3 + x[i // 4] % 3, name="Y"))
    )
    s.split("i", [4])
    place = "X[i.0*4 + i.1]"
    # the place is divided by the tile, the data is not: six times it may wrap around
    assert str(s.program).splitlines()[-1].strip() == (
        f"Y[i.0*4 + i.1] = {place}*6 // 3 + X[i.0] % 3"
    )

"""Primitives on how buffers lie in memory: what they make, what they refuse."""

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
from tilewright.tensor import Workload


def test_transform_layout_permutes_every_access() -> None:
    s = Schedule(workloads.matmul())
    s.transform_layout("C", [1, 0])
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], D: float32[7, 11]):
            C = alloc(float32, [11, 7])  # temp
            for i in range(7):
                for j in range(11):
                    for k in range(5):
                        C[j, i] += A[i, k] * B[k, j]  # init 0.0
            for D.i in range(7):
                for D.j in range(11):
                    D[D.i, D.j] = max(C[D.j, D.i], 0.0)
        """)


def test_transform_layout_cuts_dimensions_into_blocks() -> None:
    s = Schedule(workloads.matmul())
    s.split("j", [4])
    s.transform_layout("C", [1, 0, 2], [(1, 4)])
    s.split("D.j", [4])
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], D: float32[7, 11]):
            C = alloc(float32, [3, 7, 4])  # temp
            for i in range(7):
                for j.0 in range(3):
                    for j.1 in range(min(4, -j.0*4 + 11)):
                        for k in range(5):
                            C[j.0, i, j.1] += A[i, k] * B[k, j.0*4 + j.1]  # init 0.0
            for D.i in range(7):
                for D.j.0 in range(3):
                    for D.j.1 in range(min(4, -D.j.0*4 + 11)):
                        D[D.i, D.j.0*4 + D.j.1] = max(C[D.j.0, D.i, D.j.1], 0.0)
        """)
    assert str(s.trace).splitlines()[1] == "s.transform_layout('C', [1, 0, 2], [[1, 4]])"


@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 40])
def test_images_are_stored_in_blocks_of_channels(size: int) -> None:
    workload = workloads.conv(20, 3, 5, 3, 1)
    s = Schedule(workload)
    s.transform_layout("P", [0, 1, 3, 4, 2], [(1, size)])
    assert [str(n) for n in s.program.buffer("P").shape] == ["1", str(-(-20 // size)), "7", "7", str(size)]  # fmt: skip
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)[0]
    np.testing.assert_allclose(interpret(s.program, data)[0], expected, rtol=1e-5)


def test_storage_align_stands_behind_the_allocation() -> None:
    s = Schedule(workloads.matmul())
    s.storage_align("C", 0, 16, 8)
    s.storage_align("C", 0, 32, 1)  # the last one counts
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], D: float32[7, 11]):
            C = alloc(float32, [7, 11])  # temp, stride 0 % 32 == 1
            for i in range(7):
                for j in range(11):
                    for k in range(5):
                        C[i, j] += A[i, k] * B[k, j]  # init 0.0
            for D.i in range(7):
                for D.j in range(11):
                    D[D.i, D.j] = max(C[D.i, D.j], 0.0)
        """)


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.transform_layout("A", [1, 0])', "transform_layout(A): A is the caller's (input); use cache_read or cache_write first"),
    (workloads.matmul, 's.transform_layout("C", [0, 0])', 'transform_layout(C, [0, 0]): no permutation of its 2 dimensions'),
    (workloads.matmul, 's.storage_align("C", 0, 16, 8); s.transform_layout("C", [1, 0])', 'transform_layout(C): its strides are aligned; use storage_align afterwards'),
    (workloads.matmul, 's.transform_layout("C", [1, 0], [(1, 4)])', 'transform_layout(C, [1, 0]): no permutation of its 2 dimensions, 1 of them split'),
    (workloads.matmul, 's.transform_layout("C", [1, 0, 2], [(2, 4)])', 'transform_layout(C, [1, 0, 2]): splits dimension 2, not each of 0 to 1 once'),
    (workloads.matmul, 's.transform_layout("C", [1, 0, 2], [(1, 0)])', 'transform_layout(C, [1, 0, 2]): splits dimension 1 by 0; use 1 or more'),
    (workloads.matmul, 's.storage_align("A", 0, 16, 8)', "storage_align(A, 0, 16, 8): A is the caller's (input); use cache_read or cache_write first"),
    (workloads.matmul, 's.storage_align("C", 1, 16, 8)', 'storage_align(C, 1, 16, 8): the last of its 2 dimensions is contiguous; choose one before it'),
    (workloads.matmul, 's.storage_align("C", 0, 16, 16)', 'storage_align(C, 0, 16, 16): a remainder is at least 0 and below the factor 16'),
    (workloads.matmul, 's.set_scope("C", "register"); s.storage_align("C", 0, 16, 8)', 'storage_align(C, 0, 16, 8): C stays in registers, which have no strides'),
    (workloads.matmul, 's.storage_align("C", 0, 16, 8); s.set_scope("C", "register")', 'set_scope(C): its strides are aligned, and registers have none; leave out storage_align'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

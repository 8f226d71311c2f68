"""tensorize: what it makes, what it refuses, and that it changes no result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule import workloads
from tests.schedule.refusals import assert_refused

from tilewright.schedule.interpret import interpret
from tilewright.schedule.intrinsic import Dot, Interleave
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Trace
from tilewright.tensor import DType, Workload, te
from tilewright.tensor.evaluate import evaluate

DOT = Dot(DType.UINT8, DType.INT8, DType.INT32, 4)


def test_tensorize_marks_a_dot_product() -> None:
    s = Schedule(workloads.bytes_matmul(2, 8, 6))
    s.split("k", [4])
    s.split("j", [8])
    s.reorder("i", "j.0", "k.0", "j.1", "k.1")
    s.decompose_reduction("C", "k.0")
    s.tensorize("j.1", "k.1", DOT)
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: uint8[2, 6], B: int8[8, 6], C: int32[2, 8]):
            for i in range(2):
                for j.0 in range(1):
                    for j.1.init in range(8):
                        C[i, j.0*8 + j.1.init] = 0  # C.init
                    for k.0 in range(2):
                        for j.1 in range(8):  # vectorized
                            for k.1 in range(min(4, -k.0*4 + 6)):  # dot 4 of uint8 x int8 into int32
                                C[i, j.0*8 + j.1] += int32(A[i, k.0*4 + k.1])*int32(B[j.0*8 + j.1, k.0*4 + k.1])
        """)
    assert str(s.trace).splitlines()[-1] == "s.tensorize('j.1', 'k.1', ['dot', 'uint8', 'int8', 'int32', 4])"  # fmt: skip


def test_tensorize_marks_a_copy_that_interleaves() -> None:
    s = Schedule(workloads.bytes_matmul(8, 3, 6))
    s.cache_read("C", "A", pack=[(1, 4)])
    s.reorder("A.p1", "A.i0", "A.q1")
    s.tensorize("A.i0", "A.q1", Interleave(4))
    assert str(s.program).splitlines()[2:6] == [
        "    for A.p1 in range(2):",
        "        for A.i0 in range(8):  # vectorized",
        "            for A.q1 in range(min(4, -A.p1*4 + 6)):  # interleave 4",
        "                A.pack[A.p1, A.i0, A.q1] = A[A.i0, A.p1*4 + A.q1]",
    ]


def test_initial_values_of_a_tensorized_loop_are_written_before_its_lanes() -> None:
    s = Schedule(workloads.bytes_matmul(2, 8, 4))
    s.tensorize("j", "k", DOT)
    s.decompose_reduction("C", "k")
    assert str(s.program).splitlines()[2:5] == [
        "        for j.init in range(8):  # vectorized",
        "            C[i, j.init] = 0  # C.init",
        "        for j in range(8):  # vectorized",
    ]


def short() -> Workload:
    return workloads.bytes_matmul(3, 8, 4)


def signed() -> Workload:
    return workloads.bytes_matmul(3, 8, 4, a="int8")


def copy() -> Workload:
    x = te.placeholder((4, 8), name="X")
    return Workload.of(te.compute((8, 4), lambda i, j: x[j, i], name="Y"))


D = "['dot', 'uint8', 'int8', 'int32', 4]"
REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (short, f's.tensorize("i", "k", {D})', 'tensorize(i, k): k is not the only statement in i; reorder it there'),
    (short, f's.tensorize("i", "j", {D})', 'tensorize(i, j): j must hold a single block and no loop'),
    (short, f's.unroll("k"); s.tensorize("j", "k", {D})', 'tensorize(j, k): k is unrolled; tensorize plain loops'),
    (short, f's.fuse("i", "j"); s.tensorize("i*j", "k", {D})', 'tensorize(i*j, k): i*j is fused; tensorize plain loops'),
    (lambda: workloads.bytes_matmul(3, 8, 5), f's.tensorize("j", "k", {D})', 'tensorize(j, k): the extent 5 of k may exceed 4; split it by 4 first'),
    (short, f's.reorder("i", "k", "j"); s.split("j", [4]); s.tensorize("j.0", "j.1", {D})', 'tensorize(j.0, j.1): C does not sum over j.1; dot 4 of uint8 x int8 into int32 needs that'),
    (short, f's.split("k", [2]); s.tensorize("k.0", "k.1", {D})', 'tensorize(k.0, k.1): C reduces over k.0; choose a spatial loop for the lanes'),
    (signed, f's.tensorize("j", "k", {D})', 'tensorize(j, k): C adds int32(A[i, k])*int32(B[j, k]) to int32, which is not dot 4 of uint8 x int8 into int32'),
    (lambda: workloads.matmul(3, 4, 4), f's.tensorize("j", "k", {D})', 'tensorize(j, k): C adds A[i, k] * B[k, j] to float32, which is not dot 4 of uint8 x int8 into int32'),
    (copy, 's.tensorize("i", "j", ["interleave", 2])', 'tensorize(i, j): the extent 4 of j may exceed 2; split it by 2 first'),
    (lambda: workloads.transpose(4, 8), 's.split("j", [2]); s.tensorize("j.0", "j.1", ["interleave", 4])', 'tensorize(j.0, j.1): Y does not write [..., j.0, j.1] of a buffer whose last dimension is 4'),
    (short, 's.tensorize("j", "k", ["interleave", 4])', 'tensorize(j, k): C does not write [..., j, k] of a buffer whose last dimension is 4'),
    (short, f's.tensorize("j", "k", {D}); s.unroll("k")', 'unroll(k): the loop is tensorized; annotate another one'),
    (short, f's.tensorize("j", "k", {D}); s.vectorize("k")', 'vectorize(k): the loop is tensorized; annotate another one'),
    (short, f's.tensorize("j", "k", {D}); s.reorder("k", "i")', 'reorder(k, i): k is tensorized and must stay innermost'),
    (short, f's.tensorize("j", "k", {D}); s.split("k", [2])', 'split(k): the loop is tensorized; split before you fuse or annotate'),
    (short, f's.cache_read("C", "A"); s.tensorize("j", "k", {D}); s.compute_at("A.local", "k")', 'compute_at(A.local, k): k is tensorized; move blocks before that'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)


sizes = st.integers(1, 9)
signs = st.sampled_from(["uint8", "int8"])


def tensorized(shape: tuple[int, int, int], types: tuple[str, str], lanes: int, group: int) -> Schedule:  # fmt: skip
    """A product with packed operands, in groups."""
    s = Schedule(workloads.bytes_matmul(*shape, a=types[0], b=types[1]))
    s.split("k", [group])
    s.split("j", [lanes])
    s.reorder("i", "j.0", "k.0", "j.1", "k.1")
    s.cache_read("C", "B", [(0, lanes), (1, group)])
    s.cache_read("C", "A", [(1, group)])
    s.tensorize("A.i0", "A.q1", Interleave(group))
    s.tensorize("j.1", "k.1", Dot(DType(types[0]), DType(types[1]), DType.INT32, group))
    return s


@given(st.tuples(sizes, sizes, sizes), st.tuples(signs, signs), sizes, st.sampled_from([2, 4]))
@settings(max_examples=60, deadline=None)
def test_tensorized_programs_mean_what_their_loops_compute(
    shape: tuple[int, int, int], types: tuple[str, str], lanes: int, group: int
) -> None:
    s = tensorized(shape, types, lanes, group)
    data: list[Any] = workloads.arrays(s.workload)
    np.testing.assert_array_equal(interpret(s.program, data)[0], evaluate(s.workload, data)[0])
    again = Schedule(s.workload)
    exec(str(s.trace), {"s": again})
    assert str(again.program) == str(s.program) and again.trace == s.trace
    assert Trace.from_json(s.trace.to_json()) == s.trace

"""Double buffering: the next copy before the current computation, whatever the number of trips."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from tests.codegen import harness
from tests.schedule import workloads
from tests.schedule.random_steps import at_load, shared
from tests.schedule.refusals import assert_refused

from tilewright.codegen.build import build_program
from tilewright.codegen.target import Target
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload


def matmul() -> Workload:
    return workloads.matmul(7, 11, 10, epilogue=False)


def staged(workload: Workload, tile: int) -> Schedule:
    s = Schedule(workload)
    s.split("k", [tile])
    s.reorder("k.0", "j", "k.1")
    s.cache_read("C", "B")
    s.compute_at("B.local", "k.0")
    s.double_buffer("B.local")
    return s


def test_double_buffer_copies_for_the_next_iteration_first() -> None:
    s = staged(matmul(), 5)
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 10], B: float32[10, 11], C: float32[7, 11]):
            B.local = alloc(float32, [2, 5, 11])  # temp, double over k.0
            for i in range(7):
                for B.i0.first in range(5):
                    for B.i1.first in range(11):
                        B.local[0, B.i0.first, B.i1.first] = B[B.i0.first, B.i1.first]  # B.local.first
                for k.0 in range(2):
                    for B.i0 in range(min(5, -k.0*5 + 5)):
                        for B.i1 in range(11):
                            B.local[(k.0 + 1) % 2, B.i0, B.i1] = B[B.i0 + k.0*5 + 5, B.i1]
                    for j in range(11):
                        for k.1 in range(5):
                            C[i, j] += A[i, k.0*5 + k.1] * B.local[k.0 % 2, k.1, j]  # init 0.0
        """)
    assert str(s.trace).splitlines()[-1] == "s.double_buffer('B.local')"


def test_a_tile_that_is_cut_off_is_copied_as_far_as_it_goes() -> None:
    text = str(staged(matmul(), 4).program)
    assert "for B.i0 in range(-k.0*4 + 6):" in text or "range(min(4, -k.0*4 + 6))" in text


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 5, 7, 9, 10])
@pytest.mark.parametrize("kind", ["serial", "unrolled", "vectors"])
def test_any_number_of_trips_computes_the_same(tile: int, kind: str) -> None:
    workload = matmul()
    s = staged(workload, tile)
    if kind == "unrolled":
        s.unroll("k.0")
    if kind == "vectors":
        s.reorder("k.1", "j")
        s.vectorize("j")
        s.vectorize("B.i1")
        s.unroll("B.i0")
        s.parallel("i")
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)[0]
    np.testing.assert_allclose(interpret(s.program, data)[0], expected, rtol=1e-5, atol=1e-6)
    found = harness.run(build_program(s.program, Target.host(2))[0], data)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_loops_of_a_copy_may_be_fused_afterwards() -> None:
    workload = matmul()
    s = staged(workload, 5)
    s.fuse("B.i0.first", "B.i1.first")
    s.fuse("B.i0", "B.i1")
    s.unroll("k.0")  # the last copy has no iterations
    data = workloads.arrays(workload)
    expected = interpret(lower(workload), data)[0]
    found = harness.run(build_program(s.program, Target.host(1))[0], data)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(interpret(s.program, data)[0], expected, rtol=1e-5, atol=1e-6)


STAGE = 's.split("k", [4]); s.reorder("k.0", "j", "k.1"); s.cache_read("C", "B"); s.compute_at("B.local", "k.0"); '

REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (matmul, STAGE + 's.double_buffer("B.local"); s.double_buffer("B.local")', 'double_buffer(B.local): B.local is doubled already; choose a copy made by cache_read'),
    (matmul, STAGE + 's.double_buffer("B")', 'double_buffer(B): B is no temporary in memory; choose a copy made by cache_read'),
    (matmul, 's.cache_write("C"); s.double_buffer("C.local")', 'double_buffer(C.local): C.local is not written by one block that only copies'),
    (matmul, 's.cache_read("C", "B"); s.double_buffer("B.local")', 'double_buffer(B.local): no loop holds B.local and what reads it; use compute_at first'),
    (matmul, 's.cache_read("C", "B"); s.compute_at("B.local", "i"); s.parallel("i"); s.double_buffer("B.local")', 'double_buffer(B.local): i is parallel; its iterations must follow each other'),
    (matmul, 's.cache_read("C", "B"); s.fuse("i", "j"); s.compute_at("B.local", "i*j"); s.double_buffer("B.local")', 'double_buffer(B.local): i*j is fused; its iterations must follow each other'),
    (matmul, STAGE + 's.fuse("B.i0", "B.i1"); s.double_buffer("B.local")', 'double_buffer(B.local): the loops of B.local are fused, or several depend on k.0'),
    (shared, 's.compute_at("G", "Y.i"); s.compute_at("E", "Y.i"); s.double_buffer("G")', 'double_buffer(G): the copy reads E, which E writes in Y.i'),
    (shared, 's.reverse_compute_at("G", "i"); s.double_buffer("E")', 'double_buffer(E): E is also read before its copy or outside of i'),
    (at_load, 's.cache_read("S", "W"); s.compute_at("W.local", "i0"); s.double_buffer("W.local")', 'double_buffer(W.local): i0 runs once, when the kernel is loaded, to make S; leave it plain'),
    (matmul, STAGE + 's.double_buffer("B.local"); s.split("k.0", [2])', 'split(k.0): each iteration fills B.local for the next one; do this before double_buffer'),
    (matmul, 's.cache_read("C", "B"); s.compute_at("B.local", "i"); s.double_buffer("B.local"); s.parallel("i")', 'parallel(i): each iteration fills B.local for the next one; do this before double_buffer'),
    (matmul, 's.cache_read("C", "B"); s.compute_at("B.local", "k"); s.double_buffer("B.local"); s.vectorize("k")', 'vectorize(k): each iteration fills B.local for the next one; do this before double_buffer'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

"""Primitives that move blocks: what they make, what they refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule import workloads
from tests.schedule.random_steps import shared, window
from tests.schedule.refusals import assert_refused

from tilewright.measure.inputs import make_inputs
from tilewright.schedule.interpret import interpret
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate


def test_compute_at_makes_the_region_that_is_read() -> None:
    s = Schedule(workloads.conv())
    s.compute_at("P", "oh")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[1, 3, 7, 7], W: float32[5, 3, 3, 3], R: float32[1, 5, 4, 4]):
            P = alloc(float32, [1, 3, 3, 9])  # temp
            C = alloc(float32, [1, 5, 4, 4])  # temp
            for C.n in range(1):
                for oc in range(5):
                    for oh in range(4):
                        for n in range(1):
                            for c in range(3):
                                for h in range(3):
                                    for v in range(9):
                                        P[n, c, h, v] = select(1 <= h + oh*2 and h + oh*2 < 8 and 1 <= v and v < 8, X[C.n + n, c, h + oh*2 - 1, v - 1], 0.0)
                        for ow in range(4):
                            for ic in range(3):
                                for kh in range(3):
                                    for kw in range(3):
                                        C[C.n, oc, oh, ow] += P[0, ic, kh, kw + ow*2] * W[oc, ic, kh, kw]  # init 0.0
            for R.n in range(1):
                for R.oc in range(5):
                    for R.oh in range(4):
                        for R.ow in range(4):
                            R[R.n, R.oc, R.oh, R.ow] = max(C[R.n, R.oc, R.oh, R.ow], 0.0)
        """)


def test_compute_at_keeps_the_ends_of_panels() -> None:
    s = Schedule(workloads.matmul(const=True, epilogue=False))
    s.cache_read("C", "B", [(1, 4)])
    s.split("j", [4])
    s.reorder("j.0", "i")
    s.compute_at("B.pack", "j.0")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], C: float32[7, 11]):
            B.pack = alloc(float32, [1, 5, 4])  # temp
            for j.0 in range(3):
                for B.p1 in range(1):
                    for B.i0 in range(5):
                        for B.q1 in range(min(4, -B.p1*4 - j.0*4 + 11, -j.0*4 + 11)):
                            B.pack[B.p1, B.i0, B.q1] = B[B.i0, B.p1*4 + B.q1 + j.0*4]
                for i in range(7):
                    for j.1 in range(min(4, -j.0*4 + 11)):
                        for k in range(5):
                            C[i, j.0*4 + j.1] += A[i, k] * B.pack[0, k, j.1]  # init 0.0
        """)


def test_compute_at_makes_all_that_several_reads_need() -> None:
    """One read takes every element, the other the tile's own: the region ends where the later one does."""
    x = te.placeholder((33,), name="X")
    j = te.reduce_axis(33, "j")
    less = te.compute(
        (33,), lambda i: te.sum(te.select(x[j] < x[i], 1.0, 0.0), j), name="L", axes=["i"]
    )
    workload = Workload.of(less)
    s = Schedule(workload)
    i0, i1, i2 = s.split("i", [1, 32])
    s.reorder(i0, i1, "j", i2)
    name = s.cache_read("L", "X", pack=[(0, 32)])
    s.compute_at(name, i0)
    data = make_inputs(workload)
    np.testing.assert_array_equal(interpret(s.program, data), evaluate(workload, data))


def test_compute_at_repeats_overlapping_reductions() -> None:
    s = Schedule(window())
    s.compute_at("S", "i")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[8, 3], Y: float32[6]):
            S = alloc(float32, [3])  # temp
            for i in range(6):
                for i0 in range(3):
                    for r1 in range(3):
                        S[i0] += X[i + i0, r1]  # init 0.0
                for k in range(3):
                    Y[i] = max(Y[i], S[k])  # init -inf
        """)


def test_reverse_compute_at_takes_the_part_that_is_made() -> None:
    s = Schedule(workloads.matmul())
    s.split("i", [4])
    s.reverse_compute_at("D", "i.0")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(A: float32[7, 5], B: float32[5, 11], D: float32[7, 11]):
            C = alloc(float32, [4, 11])  # temp
            for i.0 in range(2):
                for i.1 in range(min(4, -i.0*4 + 7)):
                    for j in range(11):
                        for k in range(5):
                            C[i.1, j] += A[i.0*4 + i.1, k] * B[k, j]  # init 0.0
                for D.i in range(min(4, -i.0*4 + 7)):
                    for D.j in range(11):
                        D[D.i + i.0*4, D.j] = max(C[D.i, D.j], 0.0)
        """)


def test_reverse_compute_at_joins_two_producers() -> None:
    s = Schedule(shared())
    s.reverse_compute_at("G", "i")
    s.reverse_compute_at("Y", "i")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[4, 3], Y: float32[4, 3]):
            E = alloc(float32, [1, 3])  # temp
            G = alloc(float32, [1])  # temp
            for i in range(4):
                for j in range(3):
                    E[0, j] = X[i, j] + 1.0
                for G.i in range(1):
                    G[G.i] = E[G.i, 0] * 2.0
                for Y.i in range(1):
                    for Y.j in range(3):
                        Y[Y.i + i, Y.j] = E[Y.i, Y.j] + G[Y.i]
        """)


def test_compute_inline_repeats_the_expression() -> None:
    s = Schedule(workloads.softmax())
    s.compute_inline("E")
    assert str(s.program) == inspect.cleandoc("""
        def kernel(X: float32[3, 13], Y: float32[3, 13]):
            M = alloc(float32, [3])  # temp
            S = alloc(float32, [3])  # temp
            for i in range(3):
                for k1 in range(13):
                    M[i] = max(M[i], X[i, k1])  # init -inf
            for S.i in range(3):
                for k2 in range(13):
                    S[S.i] += exp(X[S.i, k2] - M[S.i])  # init 0.0
            for Y.i in range(3):
                for Y.j in range(13):
                    Y[Y.i, Y.j] = exp(X[Y.i, Y.j] - M[Y.i]) / S[Y.i]
        """)


def part() -> Workload:
    """A reader of two of four rows."""
    x = te.placeholder((4, 3), name="X")
    e = te.compute((4, 3), lambda i, j: x[i, j] + 1.0, name="E")
    return Workload.of(te.compute((2, 3), lambda i, j: e[i, j] * 2.0, name="Y"))


REFUSED: list[tuple[Callable[[], Workload], str, str]] = [
    (workloads.matmul, 's.compute_at("D", "i")', 'compute_at(D, i): D is an output; use reverse_compute_at to move it'),
    (part, 's.reverse_compute_at("Y", "i")', 'reverse_compute_at(Y, i): Y reads 2 of 4 along Y.i of E; use compute_at on the producer'),
    (workloads.softmax, 's.compute_at("E", "Y.i")', 'compute_at(E, Y.i): E is also read outside of Y.i; choose a loop around all its readers'),
    (workloads.matmul, 's.split("i", [4]); s.compute_at("C", "D.i")', 'compute_at(C, D.i): the loops of C are tiled already; move the block before you split its loops'),
    (workloads.matmul, 's.decompose_reduction("C", "i"); s.compute_at("C", "D.i")', 'compute_at(C, D.i): C is also written by C.init; do this before decompose_reduction'),
    (workloads.matmul, 's.parallel("i"); s.compute_at("C", "D.i")', 'compute_at(C, D.i): loop i of C is fused or annotated; move the block before that'),
    (workloads.matmul, 's.vectorize("D.j"); s.compute_at("C", "D.j")', 'compute_at(C, D.j): D.j is vectorized; move blocks before that'),
    (workloads.matmul, 's.reverse_compute_at("D", "i"); s.compute_at("C", "i")', 'compute_at(C, i): block C shares its loop i with other blocks; move those first'),
    (workloads.matmul, 's.reverse_compute_at("C", "D.i")', 'reverse_compute_at(C, D.i): C is a reduction; only elementwise consumers move this way'),
    (workloads.matmul, 's.reverse_compute_at("D", "D.i")', 'reverse_compute_at(D, D.i): the loop belongs to the block itself'),
    (workloads.matmul, 's.reverse_compute_at("D", "k")', 'reverse_compute_at(D, k): C is not finished inside k, its reduction k is outside; choose an outer loop'),
    (workloads.softmax, 's.reverse_compute_at("E", "S.i")', 'reverse_compute_at(E, S.i): nothing inside S.i writes what E reads'),
    (shared, 's.reverse_compute_at("Y", "i")', 'reverse_compute_at(Y, i): Y also reads G, which is not finished there; move G first'),
    (shared, 's.reverse_compute_at("G", "j")', 'reverse_compute_at(G, j): G reads E at 0, not at its own axes; use compute_at on the producer'),
    (workloads.matmul, 's.compute_inline("C")', 'compute_inline(C): C is a reduction; use compute_at'),
    (workloads.matmul, 's.compute_inline("D")', 'compute_inline(D): D is an output; only intermediates can be inlined'),
    (workloads.matmul, 's.compute_inline("X")', "block('X'): no such block; there are ['C', 'D']"),
    (lambda: workloads.matmul(const=True), 's.cache_read("C", "B", [(1, 4)]); s.compute_inline("B.pack")', 'compute_inline(B.pack): B.pack writes a part of B.pack only'),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "steps", "message"), REFUSED)
def test_what_is_illegal_is_refused(
    workload: Callable[[], Workload], steps: str, message: str
) -> None:
    assert_refused(workload, steps, message)

"""Loops and stores in machine code: random legal schedules compute what the interpreter does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen import harness
from tests.schedule import workloads
from tests.schedule.random_steps import WORKLOADS, Choice, choices, take

from tilewright.codegen.build import build_program
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.loops import find_loop
from tilewright.schedule.program import For, LoopKind, map_stmts
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Expr, Var

HOST = Target.host(3)
DATA = {name: workloads.arrays(w) for name, w in WORKLOADS.items()}
EXPECTED = {name: evaluate(w, DATA[name], precision="double") for name, w in WORKLOADS.items()}


def check(name: str, drawn: list[Choice]) -> None:
    s = Schedule(WORKLOADS[name])
    take(s, drawn)
    try:
        kernel, _ = build_program(s.program, HOST)
    except BuildError as error:
        assert "registers" in str(error) or "no instruction for" in str(error)
        return
    for a, b in zip(harness.run(kernel, DATA[name]), EXPECTED[name]):
        problem = compare(a, b, tolerance(WORKLOADS[name]))
        assert problem is None, f"{problem}\n{s.trace}\n{s.program}"


@given(st.sampled_from(list(WORKLOADS)), choices)
@settings(max_examples=150, deadline=None)
def test_kernels_of_random_legal_steps_compute_the_workload(name: str, drawn: list[Choice]) -> None:
    check(name, drawn)


@pytest.mark.slow
@given(st.sampled_from(list(WORKLOADS)), choices)
@settings(max_examples=4000, deadline=None)
def test_kernels_of_many_random_legal_steps_compute_the_workload(
    name: str, drawn: list[Choice]
) -> None:
    check(name, drawn)


def run_all(s: Schedule) -> None:
    """Compile for one and three threads; compare with the evaluator."""
    data = workloads.arrays(s.workload)
    expected = evaluate(s.workload, data, precision="double")
    for n_threads in (1, 3):
        kernel, _ = build_program(s.program, HOST.with_threads(n_threads))
        for a, b in zip(harness.run(kernel, data), expected):
            problem = compare(a, b, tolerance(s.workload))
            assert problem is None, f"{problem}\n{s.program}"


@pytest.mark.parametrize("tile", [1, 4, 5, 14, 20])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_fused_and_shared_loops_are_decoded(n: int, tile: int) -> None:
    s = Schedule(workloads.transpose(n, 14))
    outer, _ = s.split("i", [tile])
    s.reorder(outer, "j", "i.1")
    s.parallel(s.fuse(outer, "j"))
    run_all(s)


@pytest.mark.parametrize("factors", [[4], [3, 2], [2, 3, 2], [5, 1], [13, 3]])
@pytest.mark.parametrize("loop", ["i", "j", "k"])
def test_imperfect_tiles_of_any_depth_cover_every_iteration(loop: str, factors: list[int]) -> None:
    s = Schedule(workloads.matmul(7, 11, 13))
    s.split(loop, factors)
    run_all(s)


def test_unrolled_loops_have_no_counter() -> None:
    s = Schedule(workloads.matmul(3, 4, 5, epilogue=False))
    for v in ("i", "j", "k"):
        s.unroll(v)
    text = emit_module(s.program, HOST.vector_bits, 1).module.text()
    assert " phi " not in text and text.count("@llvm.fma.f32(") == 1 + 3 * 4 * 5
    run_all(s)


def test_an_epilogue_shares_the_tile_of_a_parallel_loop() -> None:
    s = Schedule(workloads.matmul(13, 31, 9))
    i0, i1 = s.split("i", [4])
    j0, j1 = s.split("j", [16])
    s.reorder(i0, j0, "k", i1, j1)
    shared = s.fuse(i0, j0)
    s.reverse_compute_at("D", shared)
    s.set_scope("C", "register")
    s.decompose_reduction("C", "k")
    for v in ("i.1.init", "i.1", "D.i"):
        s.unroll(v)
    for v in ("j.1.init", "j.1", "D.j"):
        s.vectorize(v)
    s.parallel(shared)
    run_all(s)


def test_a_trip_count_known_at_run_time_only_is_a_guarded_loop() -> None:
    x = te.placeholder((9, 9), name="x")
    s = Schedule(Workload.of(te.compute((9, 9), lambda i, j: x[i, j], name="y")))
    inner = find_loop(s.program, Var("j"))
    lower_part = replace(inner, extent=Var("i"))
    body = map_stmts(s.program.body, lambda t: lower_part if t is inner else t)
    kernel, _ = build_program(s.program.with_body(body), HOST)
    data = np.arange(81, dtype=np.float32).reshape(9, 9)
    found = harness.run(kernel, [data])[0]
    below = np.tril(np.ones((9, 9), dtype=bool), -1)
    np.testing.assert_array_equal(found[below], data[below])
    assert np.isnan(found[~below]).all()


def test_a_vectorized_loop_around_a_loop_is_refused() -> None:
    s = Schedule(workloads.transpose())
    body = map_stmts(
        s.program.body,
        lambda t: replace(t, kind=LoopKind.VECTORIZED) if isinstance(t, For) and t.var == Var("i") else t,
    )  # fmt: skip
    with pytest.raises(BuildError) as error:
        build_program(s.program.with_body(body), HOST)
    assert str(error.value) == "vectorized loop i: a loop is inside; vectorize the innermost one"


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("n", [1, 7, 16, 33])
@pytest.mark.parametrize("vectorized", [False, True])
def test_extremes_keep_a_nan_wherever_it_is(op: str, n: int, vectorized: bool) -> None:
    x = te.placeholder((n, n), name="x")
    k = te.reduce_axis(n, "k")
    reduce = te.max if op == "max" else te.min
    s = Schedule(Workload.of(te.compute((n,), lambda i: reduce(x[i, k], k), name="y")))
    if vectorized:
        s.decompose_reduction("y", "k")
        s.vectorize("k")
    data = -np.ones((n, n), np.float32)
    data[np.arange(n), np.arange(n)[::-1]] = np.nan  # each row has one, each at another place
    data[0] = 2.0
    found = harness.run(build_program(s.program, HOST)[0], [data])[0]
    np.testing.assert_array_equal(found, (np.max if op == "max" else np.min)(data, axis=1))


@pytest.mark.parametrize(("ours", "numpys"), [(te.maximum, np.maximum), (te.minimum, np.minimum)])
def test_a_maximum_of_two_values_is_nan_if_one_is(
    ours: Callable[..., Expr], numpys: Callable[..., Any]
) -> None:
    values = np.array([np.nan, 1.0, -1.0, np.inf, -np.inf], np.float32)
    p, q = np.repeat(values, 5), np.tile(values, 5)
    a, b = te.placeholder(p.shape, name="a"), te.placeholder(q.shape, name="b")
    cases = [
        (te.compute(p.shape, lambda i: ours(a[i], b[i]), name="y"), [p, q], numpys(p, q)),
        (te.compute(p.shape, lambda i: ours(a[i], 0.0), name="y"), [p], numpys(p, 0.0)),
        (te.compute(p.shape, lambda i: ours(0.0, a[i]), name="y"), [p], numpys(0.0, p)),
    ]
    for y, arrays, expected in cases:
        w = Workload.of(y)
        np.testing.assert_array_equal(evaluate(w, arrays)[0], expected)
        kernel, _ = build_program(Schedule(w).program, HOST)
        np.testing.assert_array_equal(harness.run(kernel, arrays)[0], expected)

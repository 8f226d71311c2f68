"""Loaded kernels: what they compute, what they refuse, and calls from several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.workloads import arrays, conv, matmul, softmax, transpose

from tilewright.codegen.build import build_default, build_program
from tilewright.codegen.target import Target
from tilewright.errors import BuildError, TilewrightError
from tilewright.runtime import LoadedKernel, ThreadPool, load
from tilewright.schedule.program import Role
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate

HOST = Target.host(1)


def double(n: int = 33) -> Workload:
    x = te.placeholder((n,), name="X")
    return Workload.of(te.compute((n,), lambda i: x[i] * 2.0, name="Y"))


def parallel_matmul(m: int, n_threads: int) -> tuple[Workload, LoadedKernel]:
    workload = matmul(m, 8, 5, epilogue=False)
    schedule = Schedule(workload)
    schedule.parallel("i")
    return workload, load(build_program(schedule.program, Target.host(n_threads))[0])


@pytest.mark.parametrize("make", [matmul, conv, softmax, transpose, double])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_default_schedules_compute_the_reference(
    make: Callable[[], Workload], n_threads: int
) -> None:
    workload = make()
    kernel = load(build_default(workload, Target.host(n_threads)))
    inputs = arrays(workload)
    for _ in range(3):
        found = kernel.run(*inputs)
        for f, e in zip(found, evaluate(workload, inputs)):
            np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)
    kernel.pool.close()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("m", [1, 2, 3, 17])
def test_a_parallel_loop_of_any_length_on_any_number_of_threads(m: int, n_threads: int) -> None:
    workload, kernel = parallel_matmul(m, n_threads)
    inputs = arrays(workload)
    np.testing.assert_allclose(
        kernel.run(*inputs)[0], evaluate(workload, inputs)[0], rtol=1e-5, atol=1e-6
    )
    kernel.pool.close()


def test_kernels_share_a_pool() -> None:
    pool = ThreadPool(2)
    kernels = [LoadedKernel(build_default(w, Target.host(2)), pool) for w in (matmul(), double())]
    for k, w in zip(kernels, (matmul(), double())):
        x = arrays(w)
        np.testing.assert_allclose(k.run(*x)[0], evaluate(w, x)[0], rtol=1e-5, atol=1e-6)
    pool.close()


def test_a_smaller_pool_may_run_a_kernel_and_a_larger_one_may_not() -> None:
    kernel = build_default(double(), Target.host(2))
    x = np.ones(33, np.float32)
    np.testing.assert_array_equal(load(kernel, ThreadPool(1)).run(x)[0], 2 * x)
    with pytest.raises(TilewrightError, match="built for 2 threads, the pool has 3"):
        load(kernel, ThreadPool(3))


def test_calls_from_several_threads_do_not_mix() -> None:
    workload, kernel = parallel_matmul(17, 3)

    def call(seed: int) -> bool:
        inputs = arrays(workload, seed)
        expected = evaluate(workload, inputs)[0]
        return all(
            np.allclose(kernel.run(*inputs)[0], expected, rtol=1e-5, atol=1e-6) for _ in range(50)
        )

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(call, range(8)))
    kernel.pool.close()


def test_outputs_are_fresh_at_each_call() -> None:
    kernel = load(build_default(double(), HOST))
    one = kernel.run(np.ones(33, np.float32))[0]
    kernel.run(np.zeros(33, np.float32))
    assert (one == 2.0).all()


def test_views_that_are_not_contiguous_are_copied() -> None:
    kernel = load(build_default(double(), HOST))
    wide = np.arange(66, dtype=np.float32)
    np.testing.assert_array_equal(kernel.run(wide[::2])[0], 2 * wide[::2])
    np.testing.assert_array_equal(kernel.run(wide[32::-1])[0], 2 * wide[32::-1])


def test_inputs_are_left_alone() -> None:
    workload = matmul(const=True)
    inputs = arrays(workload)
    before = [a.copy() for a in inputs]
    for a in inputs:
        a.flags.writeable = False
    load(build_default(workload, HOST)).run(*inputs)
    assert all((a == b).all() for a, b in zip(inputs, before))


def test_constants_are_packed_anew_for_each_call() -> None:
    workload = matmul(16, 64, 32, const=True)
    space = Space(Task(workload, HOST))
    rows = space.sample_rows(60, np.random.default_rng(0))
    programs = (space.program(row) for row in rows)
    program = next(p for p in programs if any(b.role is Role.PACKED for b in p.buffers))
    kernel = load(build_program(program, HOST)[0])
    assert kernel.kernel.packed
    for seed in range(3):
        inputs = arrays(workload, seed)
        np.testing.assert_allclose(
            kernel.run(*inputs)[0], evaluate(workload, inputs)[0], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"run: 0 arrays for 1 inputs \(X\)"),
        ([np.ones(33, np.float32)] * 2, "run: 2 arrays for 1 inputs"),
        ([np.ones(32, np.float32)], r"input X is float32\[33\], got float32\[32\]"),
        ([np.ones((33, 1), np.float32)], r"got float32\[33, 1\]"),
        ([np.ones(33)], r"input X is float32\[33\], got float64\[33\]"),
        ([np.ones(33, np.int32)], "got int32"),
        ([np.ones(33, np.dtype(">f4"))], "got >f4"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given: list[np.ndarray], message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        load(build_default(double(), HOST)).run(*given)


def test_code_that_does_not_load_is_refused() -> None:
    kernel = build_default(double(), HOST)
    with pytest.raises(BuildError, match="link: "):
        load(replace(kernel, code=b"damaged"))

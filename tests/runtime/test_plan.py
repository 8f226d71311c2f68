"""Plans: several kernels in one native call."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.schedule.workloads import arrays, matmul, softmax

from tilewright.codegen.build import build_default
from tilewright.codegen.compile import compile_text
from tilewright.codegen.target import Target
from tilewright.runtime import LoadedKernel, ThreadPool
from tilewright.runtime.arena import aligned_bytes, aligned_empty
from tilewright.runtime.kernel import pointer_array
from tilewright.runtime.link import link_object
from tilewright.runtime.threads import pool_code
from tilewright.tensor.evaluate import evaluate

_PLAN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

# appends its number to a list in the workspace: i64 length, then the entries
NOTE = """
define void @note(ptr %args, ptr %workspace, ptr %runtime) {
entry:
  %number = load i64, ptr %args
  %n = load i64, ptr %workspace
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %workspace
  %p = getelementptr i64, ptr %workspace, i64 %n1
  store i64 %number, ptr %p
  ret void
}
"""


@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_plan_calls_its_kernels_in_order_with_one_workspace(n: int) -> None:
    linked = link_object(compile_text(NOTE, Target.host(1))[0], ["note"])
    numbers = np.arange(n, dtype=np.int64) * 7
    calls = np.zeros((n, 2), np.int64)
    calls[:, 0] = linked.addresses["note"]
    calls[:, 1] = numbers.ctypes.data + 8 * np.arange(n)
    workspace = np.zeros(1 + n, np.int64)
    _PLAN(pool_code()["tw_plan"])(calls.ctypes.data, n, workspace.ctypes.data, 0)
    assert workspace[0] == n
    np.testing.assert_array_equal(workspace[1:], numbers)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_one_kernel_reads_what_the_kernel_before_it_wrote(n_threads: int) -> None:
    workloads = matmul(9, 13, 5), softmax(9, 13)
    pool = ThreadPool(n_threads)
    kernels = [LoadedKernel(build_default(w, Target.host(n_threads)), pool) for w in workloads]
    a, b = arrays(workloads[0])
    middle, last = (aligned_empty((9, 13), np.dtype(np.float32)) for _ in range(2))
    args = [pointer_array([x.ctypes.data for x in xs]) for xs in ((a, b, middle), (middle, last))]
    calls = np.array([[k.address, ctypes.addressof(x)] for k, x in zip(kernels, args)], np.int64)
    workspace = aligned_bytes(max(k.kernel.workspace_bytes for k in kernels))
    with pool.lock:
        _PLAN(pool_code()["tw_plan"])(
            calls.ctypes.data, len(calls), workspace.ctypes.data, pool.pointer
        )
    pool.close()
    (expected,) = evaluate(workloads[1], evaluate(workloads[0], [a, b]))
    np.testing.assert_allclose(last, expected, rtol=1e-5, atol=1e-6)

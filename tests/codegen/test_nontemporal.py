"""Stores past the caches: whole aligned vectors only, a fence behind them, the same results."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.codegen import harness

from tilewright.codegen.build import build_program
from tilewright.codegen.compile import assembly
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te

HOST = Target.host(2)
FEATURES = frozenset(HOST.features.split(","))
LANES = HOST.vector_bits // 32


def doubled(rows: int, columns: int, dtype: str = "float32") -> Schedule:
    x = te.placeholder((rows, columns), dtype, name="x")
    y = te.compute((rows, columns), lambda i, j: x[i, j] + x[i, j], name="y")
    s = Schedule(Workload.of(y))
    s.pragma("y", "nontemporal")
    s.vectorize("j")
    s.parallel("i")
    return s


@pytest.mark.parametrize("offset", [0, 4, 16, 32])
@pytest.mark.parametrize("columns", [LANES, 3 * LANES + 5, 64])
def test_results_are_right_wherever_an_array_begins(columns: int, offset: int) -> None:
    s = doubled(6, columns)
    kernel, _ = build_program(s.program, HOST)
    x = np.random.default_rng(0).standard_normal((6, columns)).astype(np.float32)
    memory = np.full(x.nbytes + 256, 77, np.uint8)
    start = -memory.ctypes.data % 64 + 64 + offset
    y = memory[start : start + x.nbytes].view(np.float32).reshape(x.shape)
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
    tracker = harness.link(kernel.code, [kernel.symbol])
    args = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    for_ = ctypes.cast(harness._serial_for, ctypes.c_void_p).value or 0
    entry(tracker[kernel.symbol])(args, None, (ctypes.c_int64 * 2)(for_, 2))
    np.testing.assert_array_equal(y, x + x)
    assert (memory[:start] == 77).all() and (memory[start + x.nbytes :] == 77).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_types_of_any_size_are_stored_so(dtype: str) -> None:
    s = doubled(3, 64, dtype)
    x = np.arange(3 * 64).reshape(3, 64).astype(dtype) % 50
    np.testing.assert_array_equal(harness.run(build_program(s.program, HOST)[0], [x])[0], x + x)


def test_a_fence_follows_only_nests_that_need_one() -> None:
    text = emit_module(doubled(4, 2 * LANES).program, HOST.vector_bits, 1, FEATURES).module.text()
    assert text.count("!nontemporal !0") == 2
    x86 = "+sse" in FEATURES
    assert text.count("call void @llvm.x86.sse.sfence()") == (1 if x86 else 0)
    plain = doubled(4, 2)  # vectors too short for such an instruction
    assert "sfence" not in emit_module(plain.program, HOST.vector_bits, 1, FEATURES).module.text()
    if x86:
        code = assembly(text, HOST)
        assert "movnt" in code and "sfence" in code

"""Measure what this machine can do at most: multiply-adds by a generated kernel, copies by NumPy."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

__all__ = ["Probe", "copy_gbs", "peak_gflops", "probe"]

CHAINS = 12
"""Independent multiply-adds: at least latency times ports (4 x 2), at most the 16 vector registers of AVX2 less three."""

ITERATIONS = 2_000_000
REPEATS = 5
COPY_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Probe:
    """What was measured.

    Parameters
    ----------
    peak_gflops : float
        float32 multiply-adds in registers, two operations each.
    copy_gbs : float
        Bytes read plus bytes written a second by a NumPy copy of an array that fits no cache.
    n_threads : int
        How many threads ran at once.
    """

    peak_gflops: float
    copy_gbs: float
    n_threads: int


def probe(vector_bits: int, n_threads: int = 1) -> Probe:
    """Run both measurements on the given number of threads at once (about a second)."""
    return Probe(peak_gflops(vector_bits, n_threads), copy_gbs(n_threads), n_threads)


def peak_gflops(
    vector_bits: int, n_threads: int = 1, *, iterations: int = ITERATIONS, repeats: int = REPEATS
) -> float:
    """float32 multiply-adds a second in registers, on that many threads at once."""
    lanes = vector_bits // 32
    _, kernel = _fma_kernel(lanes)
    flops = 2 * CHAINS * lanes * iterations * n_threads
    with ThreadPoolExecutor(n_threads) as threads:
        return flops / _fastest(threads, n_threads, lambda _: kernel(iterations), repeats) / 1e9


def copy_gbs(n_threads: int = 1, *, repeats: int = REPEATS) -> float:
    """Bytes read plus bytes written a second by a NumPy copy, on that many threads at once."""
    with ThreadPoolExecutor(n_threads) as threads:
        return 2 * COPY_BYTES / _fastest(threads, n_threads, _copier(n_threads), repeats) / 1e9


def _fastest(
    threads: ThreadPoolExecutor, n_threads: int, f: Callable[[int], object], repeats: int
) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        list(threads.map(f, range(n_threads)))
        best = min(best, time.perf_counter() - start)
    return best


def _copier(n_threads: int) -> Callable[[int], object]:
    import numpy as np

    source = np.ones(COPY_BYTES // 4, np.float32)
    sink = np.zeros_like(source)
    bounds = [len(source) * n // n_threads for n in range(n_threads + 1)]
    return lambda n: np.copyto(sink[bounds[n] : bounds[n + 1]], source[bounds[n] : bounds[n + 1]])


@functools.cache
def _fma_kernel(lanes: int) -> tuple[object, Callable[[int], float]]:
    """An engine that owns the code, and a function that runs that many rounds of `CHAINS` multiply-adds."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_fma_text(lanes)), machine)
    engine.finalize_object()
    address = engine.get_function_address("probe")
    return engine, ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(address)


def _fma_text(lanes: int) -> str:
    vector = f"<{lanes} x float>"

    def splat(value: str) -> str:
        return "<" + ", ".join([f"float {value}"] * lanes) + ">"

    chains = range(CHAINS)
    phis = [
        f"  %a{c} = phi {vector} [ {splat(f'{c}.0')}, %entry ], [ %b{c}, %loop ]" for c in chains
    ]
    steps = [
        f"  %b{c} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{c}, {vector} {splat('0.5')}, {vector} {splat('1.0')})"
        for c in chains
    ]
    sums = [f"  %s0 = fadd {vector} %b0, %b1"]
    sums += [f"  %s{c - 1} = fadd {vector} %s{c - 2}, %b{c}" for c in chains[2:]]
    return "\n".join(
        [
            f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
            "define float @probe(i64 %n) {",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]",
            *phis,
            *steps,
            "  %j = add i64 %i, 1",
            "  %more = icmp ult i64 %j, %n",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *sums,
            f"  %out = extractelement {vector} %s{CHAINS - 2}, i64 0",
            "  ret float %out",
            "}",
        ]
    )

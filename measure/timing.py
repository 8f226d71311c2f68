"""Paired, raced timing.

The noise of real machines is drift in phases of seconds, which repeating a kernel does not remove.
Every sample is therefore followed by a run of a fixed reference kernel, and the ratio counts.
Two samples reject a candidate that is far behind the best; others get more, until the spread is small.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.codegen.build import build_program
from tilewright.codegen.target import Target
from tilewright.runtime.arena import aligned_empty
from tilewright.runtime.kernel import LoadedKernel, pointer_array
from tilewright.runtime.threads import pool_code
from tilewright.schedule.program import Scope
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, te

__all__ = ["Protocol", "ReferenceKernel", "race", "repeat"]

_REPEAT = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


@dataclass(frozen=True)
class Protocol:
    """The numbers of the protocol."""

    sample_s: float = 1e-3
    warm_s: float = 2e-4  # untimed before each sample; the reference lets threads fall asleep
    reference_s: float = 3e-4
    first: int = 3
    most: int = 9
    behind: float = 1.5
    spread: float = 0.02
    max_repeats: int = 10_000
    most_s: float = 2.0


def repeat(address: int, args: Any, workspace: int, runtime: int, n: int) -> float:
    """Seconds of one call, from `n` calls in native code."""
    call = _REPEAT(pool_code()["tw_repeat"])
    start = time.perf_counter()
    call(address, args, workspace, runtime, n)
    return (time.perf_counter() - start) / n


class ReferenceKernel:
    """A fixed matrix product of one thread, some hundredths of a millisecond.

    Its sums stay in registers. One that passes them through memory depends on how well the CPU predicts
    which load reads which store, and a large kernel that ran before can slow it ninefold.

    Attributes
    ----------
    seconds : float
        Its usual time; a session has one, so that values from all of its runners compare.
    """

    def __init__(self) -> None:
        n = 128
        a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
        k = te.reduce_axis(n, "k")
        workload = Workload.of(
            te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="c")
        )
        schedule = Schedule(workload)
        target = Target.host(1)
        lanes = target.vector_bits // 32
        copy = schedule.cache_write("c")
        i0, i1 = schedule.split("i", [4])
        j0, j1 = schedule.split("j", [2 * lanes])
        schedule.reorder(i0, j0, "k", i1, j1)
        schedule.reverse_compute_at(copy, j0)
        schedule.set_scope(schedule.program.blocks()["c"].buffer, Scope.REGISTER)
        schedule.decompose_reduction("c", "k")
        for block in ("c.init", "c", copy):
            row, column = schedule.loops(block)[-2:]
            schedule.unroll(row)
            schedule.vectorize(column)
        self._kernel = LoadedKernel(build_program(schedule.program, target)[0])
        rng = np.random.default_rng(0)
        # Where an allocator happens to put them would change its speed twofold.
        self._arrays = [aligned_empty((n, n), np.dtype(np.float32)) for _ in range(3)]
        for x in self._arrays:
            x[...] = rng.standard_normal((n, n))
        self._args = pointer_array([x.ctypes.data for x in self._arrays])
        self._runtime = self._kernel.pool.pointer
        once = min(self.sample(4) for _ in range(5))
        self.n = max(1, round(Protocol.reference_s / once))
        self.seconds = float(np.median([self.sample(self.n) for _ in range(7)]))

    def sample(self, n: int | None = None) -> float:
        """Seconds of one call now."""
        return repeat(
            self._kernel.address,
            self._args,
            self._kernel.workspace.ctypes.data,
            self._runtime,
            n or self.n,
        )


def race(
    once: Callable[[int], float],
    reference: ReferenceKernel,
    best: float,
    protocol: Protocol,
    *,
    shared: bool = False,
) -> tuple[list[float], list[float]]:
    """Take paired samples of a kernel.

    Parameters
    ----------
    once : callable
        Runs the kernel that many times; returns seconds of one call.
    best : float
        The best value so far, in seconds at the reference's usual speed; infinite if none.
    shared : bool
        Whether the kernel has several threads. The others go on spinning for a while after a call, and
        slow the reference; it then runs once more, untimed, before it is timed.

    Returns
    -------
    Samples of the kernel and of the reference.
    """
    usual = _usual(once, protocol)
    n = _calls(protocol.sample_s, usual, protocol)
    n_warm = _calls(protocol.warm_s, usual, protocol)
    samples: list[float] = []
    references: list[float] = []
    while len(samples) < protocol.most:
        if usual < protocol.sample_s:
            once(n_warm)
        samples.append(once(n))
        if shared:
            reference.sample()
        references.append(reference.sample())
        if n * sum(samples) > protocol.most_s:
            break  # calls so long need no repeats, and a slow kernel is no endless one
        if len(samples) < min(2, protocol.first):
            continue
        value = min(samples) / min(references) * reference.seconds
        if value > protocol.behind * best:
            break
        if len(samples) >= protocol.first:
            ratios = np.array(samples) / np.array(references)
            q25, q50, q75 = np.quantile(ratios, [0.25, 0.5, 0.75])
            if 1.96 * 1.253 * (q75 - q25) / (1.349 * np.sqrt(len(ratios)) * q50) < protocol.spread:
                break
    return samples, references


def _calls(seconds: float, each: float, protocol: Protocol) -> int:
    return int(min(protocol.max_repeats, max(1, seconds / max(each, 1e-9))))


def _usual(once: Callable[[int], float], protocol: Protocol) -> float:
    """Seconds of a call when caches are warm and threads awake: the first calls say little."""
    each, spent = once(1), 0.0
    while each < protocol.sample_s and spent < protocol.warm_s:
        n = _calls(protocol.warm_s / 2, each, protocol)
        each = once(n)
        spent += n * max(each, 1e-9)
        if n == protocol.max_repeats:
            break
    return each

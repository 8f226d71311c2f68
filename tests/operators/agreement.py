"""Kernels of a workload, run between guard pages and compared with the reference evaluator."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.codegen import harness

from tilewright.codegen.build import build
from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.layout import SLACK
from tilewright.codegen.target import Target
from tilewright.measure.guarded import Guarded
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.program import Role
from tilewright.schedule.sketch import drafts
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace
from tilewright.tensor import Workload
from tilewright.tensor.evaluate import evaluate

__all__ = ["arrays_of", "disagreements", "traces_of"]

Array = NDArray[Any]


def arrays_of(workload: Workload, rng: np.random.Generator) -> list[Array]:
    """Inputs of both signs; integers are often small, else of their whole range, also as indices."""
    out: list[Array] = []
    for p in workload.inputs:
        if p.dtype.is_float:
            out.append((rng.standard_normal(p.shape) * 0.7).astype(p.dtype.numpy))
        elif p.dtype.is_int:
            least, most = np.iinfo(p.dtype.numpy).min, np.iinfo(p.dtype.numpy).max
            low, high = (least, most) if rng.random() < 0.3 else (max(least, -9), 9)
            out.append(rng.integers(low, high, p.shape, p.dtype.numpy, endpoint=True))
        else:
            out.append(rng.integers(0, 2, p.shape).astype(p.dtype.numpy))
    return out


def traces_of(
    workload: Workload, target: Target, n: int, rng: np.random.Generator
) -> Iterator[tuple[str, Trace]]:
    """The default schedule, the draft, and one random candidate each of `n` random sketches."""
    task = Task(workload, target)
    space = Space(task)
    yield "default", space.trace(space.default_row()[0])
    for trace in drafts(task, 1):
        yield "draft", trace
    rows = space.sample_rows(40, rng)
    firsts = {int(r[0]): r for r in rows if r[0] > 0}
    chosen = list(firsts.values())
    rng.shuffle(chosen)
    for row in chosen[:n]:
        yield space.row_ids(row)[0], space.trace(row)


def disagreements(
    workload: Workload, target: Target, n: int, rng: np.random.Generator
) -> Iterator[tuple[str, Trace, str | None]]:
    """What is wrong with each kernel (or None)."""
    arrays = arrays_of(workload, rng)
    expected = evaluate(workload, arrays, precision="double")
    for name, trace in traces_of(workload, target, n, rng):
        yield (
            name,
            trace,
            problem(build(workload, trace, target), arrays, expected, tolerance(workload)),
        )


def problem(
    kernel: KernelObject, arrays: Sequence[Array], expected: Sequence[Array], rtol: float
) -> str | None:
    """Run a kernel twice between guard pages; what is wrong, or None."""
    with _Memory(kernel, arrays) as memory:
        for turn in ("", "in a second run: "):
            memory.call()
            for k, (g, e) in enumerate(zip(memory.outputs, expected)):
                found = compare(g.array, e, rtol)
                if found:
                    return f"{turn}output {k}: {found}"
            if not memory.intact():
                return f"{turn}bytes beside an array were overwritten"
    return None


class _Memory:
    """All memory of a kernel, each piece followed by a page that cannot be touched."""

    def __init__(self, kernel: KernelObject, arrays: Sequence[Array]) -> None:
        self._kernel = kernel
        self._code = harness.link(kernel.code, harness.symbols(kernel))
        self._all: list[Guarded] = []
        self.outputs: list[Guarded] = []
        given = iter(arrays)
        for p in kernel.params:
            piece = self._new(p.shape, p.dtype.numpy)
            if p.role is Role.OUTPUT:
                self.outputs.append(piece)
            else:
                piece.array[...] = next(given)
                piece.freeze()
        for p in kernel.packed:
            self._new((p.n_bytes + SLACK,), np.dtype(np.uint8)).array[...] = 0xFF
        pointers = [g.array.ctypes.data for g in self._all]
        self._arguments = (ctypes.c_void_p * len(pointers))(*pointers)
        self._workspace = self._new((kernel.workspace_bytes,), np.dtype(np.uint8))
        self._workspace.array[...] = 0xFF  # NaN: scratch memory need not be zero
        if kernel.packed:
            harness.enter(self._code["tw_prepack"], kernel, self._arguments, self._workspace.array)

    def _new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Guarded:
        self._all.append(Guarded(shape, dtype, shared=False))
        return self._all[-1]

    def call(self) -> None:
        """Run the kernel on poisoned outputs."""
        for g in self.outputs:
            g.poison()
        harness.enter(
            self._code[self._kernel.symbol], self._kernel, self._arguments, self._workspace.array
        )

    def intact(self) -> bool:
        """Whether nothing was written beside an array."""
        return all(g.band_intact() for g in self._all)

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_: object) -> None:
        for g in self._all:
            g.array = np.empty(0)
            g.close()

"""A compiled model: one native call for all its kernels."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.graph.memory import PAGE
from tilewright.graph.plan import Input, Plan, load_plan, save_plan
from tilewright.runtime.arena import ALIGNMENT, aligned_bytes, aligned_empty
from tilewright.runtime.kernel import LoadedKernel, pointer_array
from tilewright.runtime.threads import ThreadPool, pool_code
from tilewright.schedule.program import Role
from tilewright.tensor.dtype import as_dtype

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CompiledModel"]

_PLAN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array at an address that whole vectors can be loaded from; vectors across lines are slow."""
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    out = aligned_empty(array.shape, array.dtype)
    out[...] = array
    return out


class CompiledModel:
    """A model ready to run.

    Parameters
    ----------
    plan : Plan
    n_threads : int, optional
        At most what it was compiled for, which is the default.

    Attributes
    ----------
    inputs, outputs : dict
        Shapes and NumPy types by name.
    """

    def __init__(self, plan: Plan, n_threads: int | None = None) -> None:
        self.plan = plan
        threads = n_threads or plan.target.n_threads
        if threads > plan.target.n_threads:
            raise GraphError(
                f"CompiledModel: compiled for {plan.target.n_threads} threads, asked to use {threads}; compile it again"
            )
        self._pool = ThreadPool(threads)
        self._arena = aligned_bytes(plan.arena_bytes, PAGE)
        self._constants = {k: _aligned(v) for k, v in plan.constants.items()}
        self._loaded = [LoadedKernel(k, self._pool) for k in plan.kernels]
        size = max((k.workspace_bytes for k in plan.kernels), default=0)
        self._workspace = aligned_bytes(size)
        self._keep: list[Any] = []
        self._calls = self._link_calls()
        self._run_plan = _PLAN(pool_code()["tw_plan"])
        self._run_on = (self._calls.ctypes.data, len(plan.calls), self._workspace.ctypes.data)
        self._views = {v.name: self._array(v) for v in (*plan.inputs, *plan.outputs)}

    def _address(self, place: tuple[str, Any]) -> int:
        kind, where = place
        base = (
            self._arena.ctypes.data + where
            if kind == "arena"
            else self._constants[where].ctypes.data
        )
        return int(base)

    def _array(self, v: Input) -> NDArray[Any]:
        dtype = as_dtype(v.dtype).numpy
        if v.place[0] == "constant":
            return self._constants[v.place[1]].reshape(v.shape)
        size = int(np.prod(v.shape, dtype=np.int64)) * dtype.itemsize
        return self._arena[v.place[1] : v.place[1] + size].view(dtype).reshape(v.shape)

    def _link_calls(self) -> Any:
        table = np.zeros((max(1, len(self.plan.calls)), 2), np.uint64)
        for n, call in enumerate(self.plan.calls):
            loaded = self._loaded[call.kernel]
            params = loaded.kernel.params
            constants = [
                self._constants[where]
                for p, (_, where) in zip(params, call.places)
                if p.role is Role.CONST
            ]
            packed = loaded.prepack(constants)
            args = pointer_array(
                [*(self._address(p) for p in call.places), *(b.ctypes.data for b in packed)]
            )
            self._keep.append((args, packed))
            table[n] = loaded.address, ctypes.addressof(args)
        return table

    @property
    def inputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of every input."""
        return {v.name: (v.shape, as_dtype(v.dtype).numpy) for v in self.plan.inputs}

    @property
    def outputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of every output."""
        return {v.name: (v.shape, as_dtype(v.dtype).numpy) for v in self.plan.outputs}

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the model once.

        Parameters
        ----------
        inputs : mapping
            An array for each input.

        Returns
        -------
        dict
            Fresh arrays by output name.

        Raises
        ------
        GraphError
            If an input is missing, unknown, or of the wrong shape or type.
        """
        wanted = self.inputs
        missing = [n for n in wanted if n not in inputs]
        unknown = [n for n in inputs if n not in wanted]
        if missing or unknown:
            what = (
                f"lacks {', '.join(missing)}" if missing else f"has no input {', '.join(unknown)}"
            )
            raise GraphError(f"run: the call {what}; the inputs are {', '.join(wanted)}")
        for name, (shape, dtype) in wanted.items():
            array = np.asarray(inputs[name])
            if array.shape != shape or array.dtype != dtype:
                raise GraphError(
                    f"run: input {name} is {dtype}{list(shape)}, got {array.dtype}{list(array.shape)}"
                )
        with self._pool.lock:
            for name in wanted:
                self._views[name][...] = inputs[name]
            self._execute()
            return {v.name: self._views[v.name].copy() for v in self.plan.outputs}

    @property
    def buffers(self) -> dict[str, NDArray[Any]]:
        """The model's own memory of its inputs and outputs by name, for calls without copies.

        Write the inputs, `execute`, read the outputs; inputs keep what was written.
        """
        return dict(self._views)

    def execute(self) -> None:
        """Run once on what the `buffers` hold."""
        with self._pool.lock:
            self._execute()

    def _execute(self) -> None:
        if self.plan.calls:  # else a model of views alone
            self._run_plan(*self._run_on, self._pool.pointer)

    def profile(self, repeats: int = 50) -> pd.DataFrame:
        """Time every kernel call alone, on whatever the arena holds.

        Returns
        -------
        DataFrame
            One row a call: name, origin, microseconds (least of the repeats).
        """
        import time

        import pandas as pd

        rows = []
        with self._pool.lock:
            for n, call in enumerate(self.plan.calls):
                one = self._calls[n : n + 1]
                best = float("inf")
                for _ in range(repeats):
                    start = time.perf_counter()
                    self._run_plan(
                        one.ctypes.data, 1, self._workspace.ctypes.data, self._pool.pointer
                    )
                    best = min(best, time.perf_counter() - start)
                rows.append({"kernel": call.name, "origin": call.origin, "us": best * 1e6})
        return pd.DataFrame(rows)

    def report(self) -> pd.DataFrame:
        """One row a kernel call: its name and whether its schedule is tuned, transferred, drafted or default."""
        import pandas as pd

        return pd.DataFrame(
            {
                "kernel": [c.name for c in self.plan.calls],
                "origin": [c.origin for c in self.plan.calls],
            }
        )

    def summary(self) -> str:
        """How many kernels are tuned, transferred, drafted and default, and how many records no longer apply."""
        counts = Counter(c.origin.split(" ")[0] for c in self.plan.calls)
        parts = [
            f"{counts[k]} {k}" for k in ("tuned", "transferred", "draft", "default") if counts[k]
        ]
        stale = sum("no longer applies" in c.origin for c in self.plan.calls)
        parts += [f"{stale} with a record that no longer applies"] * (stale > 0)
        return f"{len(self.plan.calls)} kernels: {', '.join(parts) or 'none'}; {self.plan.arena_bytes / 1024:.0f} KiB of activations"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which loads without the tuner."""
        save_plan(self.plan, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_threads: int | None = None) -> CompiledModel:
        """Read what `save` wrote.

        Raises
        ------
        GraphError
            If the file is no compiled model, or for another kind of machine.
        """
        from tilewright.codegen.target import Target

        plan = load_plan(Path(path))
        host = Target.host()
        have = set(host.features.split(","))
        lacking = [
            f for f in plan.target.features.split(",") if f.startswith("+") and f not in have
        ]
        if plan.target.triple.split("-")[0] != host.triple.split("-")[0] or lacking:
            raise GraphError(
                f"load({os.fspath(path)!r}): compiled for {plan.target.cpu}, this machine lacks {', '.join(lacking[:5]) or plan.target.triple}"
            )
        return cls(plan, n_threads)

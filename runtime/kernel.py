"""A kernel in memory, ready to be called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codegen.kernel import KernelObject, Param
from tilewright.codegen.layout import SLACK
from tilewright.errors import TilewrightError
from tilewright.runtime.arena import aligned_bytes, aligned_empty
from tilewright.runtime.link import link_object
from tilewright.runtime.threads import ThreadPool
from tilewright.schedule.program import Role

__all__ = ["LoadedKernel", "load"]

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class LoadedKernel:
    """Machine code with its scratch memory and threads.

    Examples
    --------
    >>> import numpy as np
    >>> from tilewright.codegen.build import build_default
    >>> from tilewright.codegen.target import Target
    >>> from tilewright.tensor import Workload, te
    >>> a = te.placeholder((4,), name="a")
    >>> w = Workload.of(te.compute((4,), lambda i: a[i] + 1.0, name="b"))
    >>> load(build_default(w, Target.host(1))).run(np.zeros(4, np.float32))
    [array([1., 1., 1., 1.], dtype=float32)]
    """

    def __init__(self, kernel: KernelObject, pool: ThreadPool | None = None) -> None:
        self.kernel = kernel
        symbols = [kernel.symbol, *(["tw_prepack"] if kernel.packed else [])]
        self._linked = link_object(kernel.code, symbols)
        self.address = self._linked.addresses[kernel.symbol]
        self.prepack_address = self._linked.addresses.get("tw_prepack")
        if pool is not None and pool.n_threads > kernel.n_threads:
            raise TilewrightError(
                f"load: the kernel was built for {kernel.n_threads} threads, the pool has {pool.n_threads}"
            )
        self.pool = pool or ThreadPool(kernel.n_threads)
        self.workspace = aligned_bytes(kernel.workspace_bytes)

    def prepack(
        self,
        constants: Sequence[NDArray[Any]],
        allocate: Callable[[int], NDArray[np.uint8]] = aligned_bytes,
    ) -> list[NDArray[np.uint8]]:
        """Fill the packed buffers from the constant inputs (in order of the parameters)."""
        packed = [allocate(p.n_bytes + SLACK) for p in self.kernel.packed]
        if self.prepack_address is None:
            return packed
        given = iter(constants)
        pointers = [
            next(given).ctypes.data if p.role is Role.CONST else None for p in self.kernel.params
        ]
        args = pointer_array([*pointers, *(b.ctypes.data for b in packed)])
        ENTRY(self.prepack_address)(args, self.workspace.ctypes.data, self.pool.pointer)
        return packed

    def run(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        """Call the kernel.

        Parameters
        ----------
        arrays : arrays
            One for each input, in order.

        Returns
        -------
        list of arrays
            Fresh outputs, in order.

        Raises
        ------
        TilewrightError
            If an array has the wrong number, shape or type.
        """
        inputs = [p for p in self.kernel.params if p.role is not Role.OUTPUT]
        if len(arrays) != len(inputs):
            raise TilewrightError(
                f"run: {len(arrays)} arrays for {len(inputs)} inputs ({', '.join(p.name for p in inputs)})"
            )
        ready = [checked(p, a) for p, a in zip(inputs, arrays)]
        outputs = [
            aligned_empty(p.shape, p.dtype.numpy)
            for p in self.kernel.params
            if p.role is Role.OUTPUT
        ]
        with self.pool.lock:
            packed = self.prepack([a for p, a in zip(inputs, ready) if p.role is Role.CONST])
            args = pointer_array([b.ctypes.data for b in (*ready, *outputs, *packed)])
            ENTRY(self.address)(args, self.workspace.ctypes.data, self.pool.pointer)
        return outputs


def pointer_array(addresses: Sequence[int | None]) -> Any:
    """The `args` of a kernel."""
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


def checked(param: Param, array: NDArray[Any]) -> NDArray[Any]:
    """The array as the kernel needs it, or a clear refusal."""
    array = np.asarray(array)
    if array.shape != param.shape or array.dtype != param.dtype.numpy:
        raise TilewrightError(
            f"run: input {param.name} is {param.dtype}{list(param.shape)}, got {array.dtype}{list(array.shape)}"
        )
    return np.ascontiguousarray(array)


def load(kernel: KernelObject, pool: ThreadPool | None = None) -> LoadedKernel:
    """Link a kernel into this process.

    Raises
    ------
    BuildError
        If its code is of another architecture.
    """
    return LoadedKernel(kernel, pool)

"""Load and run kernels in the tests' own process, without the runtime."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from tilewright.codegen.kernel import KernelObject
from tilewright.schedule.program import Role

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_SHARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_compilers: list[Any] = []
_numbers = itertools.count()


@_FOR  # type: ignore[untyped-decorator]
def _serial_for(runtime: int, function: int, context: int, n: int) -> None:
    share = _SHARE(function)
    threads = ctypes.c_int64.from_address(runtime + 8).value
    for t in range(threads):
        share(context, n * t // threads, n * (t + 1) // threads, t)


def link(code: bytes, symbols: Sequence[str]) -> Any:
    """Link an object file; the result maps names to addresses, which it owns."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if not _compilers:
        _compilers.append(llvm.create_lljit_compiler())
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for s in symbols:
        builder.export_symbol(s)
    return builder.link(_compilers[0], f"test{next(_numbers)}")


def symbols(kernel: KernelObject) -> list[str]:
    """The entries of a kernel."""
    return [kernel.symbol, *(["tw_prepack"] if kernel.packed else [])]


def enter(address: int, kernel: KernelObject, args: Any, workspace: NDArray[np.uint8]) -> None:
    """Call an entry of a kernel on a serial stand-in for the thread pool."""
    runtime = (ctypes.c_int64 * 2)(
        ctypes.cast(_serial_for, ctypes.c_void_p).value or 0, kernel.n_threads
    )
    _ENTRY(address)(args, workspace.ctypes.data, runtime)


def run(kernel: KernelObject, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Run a kernel once on a serial stand-in for the thread pool."""
    tracker = link(kernel.code, symbols(kernel))
    inputs = iter(arrays)
    buffers: list[NDArray[Any]] = []
    outputs: list[NDArray[Any]] = []
    for p in kernel.params:
        if p.role is Role.OUTPUT:
            outputs.append(np.full(p.shape, np.nan if p.dtype.is_float else 1, p.dtype.numpy))
            buffers.append(outputs[-1])
        else:
            buffers.append(np.ascontiguousarray(next(inputs), dtype=p.dtype.numpy))
    buffers += [np.full(p.n_bytes + 1024, 255, np.uint8) for p in kernel.packed]
    workspace = np.full(kernel.workspace_bytes + 64, 255, np.uint8)
    aligned = workspace[(-workspace.ctypes.data) % 64 :]
    args = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
    if kernel.packed:
        enter(tracker["tw_prepack"], kernel, args, aligned)
    enter(tracker[kernel.symbol], kernel, args, aligned)
    return outputs

"""Loaded kernels, the thread pool, aligned memory, plans of many kernels."""

if __name__ != "tilewright.runtime":
    raise ImportError("import this folder as tilewright.runtime; it is no top-level package")

from tilewright.runtime.kernel import LoadedKernel, load
from tilewright.runtime.threads import ThreadPool

__all__ = ["LoadedKernel", "ThreadPool", "load"]

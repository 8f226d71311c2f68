"""Tensor expressions, workloads, the operator library and the reference evaluator."""

if __name__ != "tilewright.tensor":
    raise ImportError("import this folder as tilewright.tensor; it is no top-level package")

from tilewright.tensor import te
from tilewright.tensor.dtype import DType, as_dtype
from tilewright.tensor.workload import Workload

__all__ = ["DType", "Workload", "as_dtype", "te"]

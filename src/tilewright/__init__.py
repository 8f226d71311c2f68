"""Tilewright: a search-based auto-scheduling compiler for tensor programs.

Names load when they are first used, so that ``import tilewright`` is light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.codegen.inspection import inspect_kernel
    from tilewright.codegen.target import Target
    from tilewright.compiling import compile
    from tilewright.errors import TilewrightError
    from tilewright.graph import CompiledModel, load_onnx
    from tilewright.measure import LocalPool, Pool, RayPool
    from tilewright.records import Record, RecordStore, read_ansor, read_autotvm
    from tilewright.schedule.schedule import Schedule
    from tilewright.schedule.space import Space
    from tilewright.schedule.task import Task
    from tilewright.schedule.trace import Trace
    from tilewright.tensor import DType, Workload, te
    from tilewright.tuner import Study
    from tilewright.tuning import tune

__version__ = "0.1.0"
__all__ = [
    "CompiledModel",
    "DType",
    "LocalPool",
    "Pool",
    "RayPool",
    "Record",
    "RecordStore",
    "Schedule",
    "Space",
    "Study",
    "Target",
    "Task",
    "TilewrightError",
    "Trace",
    "Workload",
    "__version__",
    "compile",
    "inspect_kernel",
    "load_onnx",
    "read_ansor",
    "read_autotvm",
    "te",
    "tune",
]

_HOME = {
    "CompiledModel": "graph",
    "DType": "tensor",
    "LocalPool": "measure",
    "Pool": "measure",
    "RayPool": "measure",
    "Record": "records",
    "RecordStore": "records",
    "Schedule": "schedule.schedule",
    "Space": "schedule.space",
    "Study": "tuner",
    "Target": "codegen.target",
    "Task": "schedule.task",
    "TilewrightError": "errors",
    "Trace": "schedule.trace",
    "Workload": "tensor",
    "compile": "compiling",
    "inspect_kernel": "codegen.inspection",
    "load_onnx": "graph",
    "read_ansor": "records",
    "read_autotvm": "records",
    "te": "tensor",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tilewright.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

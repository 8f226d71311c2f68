"""Logs of other tuners as the table that our own logs give: for analysis, not for replay.

References
----------
The formats are those that TVM documents and writes: AutoTVM's (``tvm.autotvm.record.encode``, protocol
json, version 0.2) and the auto-scheduler's (``tvm.auto_scheduler.measure_record``, version v0.6).
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import RecordError
from tilewright.records.frame import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_ansor", "read_autotvm", "read_foreign"]

Row: TypeAlias = dict[str, object]

# MeasureErrorNo of tvm.autotvm and of tvm.auto_scheduler, which number alike.
_STATUS = (
    "OK", "INSTANTIATION_ERROR", "COMPILE_HOST", "COMPILE_DEVICE", "RUNTIME_DEVICE", "WRONG_ANSWER", "BUILD_TIMEOUT",
    "RUN_TIMEOUT", "UNKNOWN_ERROR",
)  # fmt: skip


def read_autotvm(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read an AutoTVM log: ``{"input": [target, task, arguments, ...], "config": {...}, "result": [...]}``.

    Returns
    -------
    DataFrame
        The columns of `to_frame`, as far as the log knows them; entities of the configuration are knobs.
        ``attrs["problems"]`` lists the lines that were skipped.
    """
    return _read(path, _autotvm_row)


def read_ansor(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a log of TVM's auto-scheduler: ``{"i": [[workload, target, ...], [[], steps]], "r": [...], "v": ...}``.

    Returns
    -------
    DataFrame
        The columns of `to_frame`, as far as the log knows them; ``sketch`` counts the steps.
        ``attrs["problems"]`` lists the lines that were skipped.
    """
    return _read(path, _ansor_row)


def read_foreign(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a log of either kind, whichever each line is (see `read_autotvm`, `read_ansor`)."""
    return _read(path, lambda e: _autotvm_row(e) if "input" in e else _ansor_row(e))


def _read(path: str | os.PathLike[str], row: Callable[[dict[str, Any]], Row]) -> pd.DataFrame:
    import pandas as pd

    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise RecordError(f"read({os.fspath(path)}): no such log") from None
    rows: list[Row] = []
    problems: list[str] = []
    for n, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            entry = json.loads(raw)
            if not isinstance(entry, dict):
                raise ValueError("it is no object")
            rows.append(row(entry) | {"trial": len(rows)})
        except (
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            problems.append(f"line {n}: {type(error).__name__}: {error}")
    knobs = sorted({k for r in rows for k in r if k.startswith("knob.")})
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *knobs])
    frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
    frame.attrs["problems"] = problems
    return frame


def _autotvm_row(entry: dict[str, Any]) -> Row:
    target, task, arguments = entry["input"][:3]
    knobs = {f"knob.{name}": _plain(value) for name, _, value in entry["config"]["entity"]}
    workload = json.dumps([task, arguments], separators=(",", ":"))
    package = str(entry.get("tvm_version", ""))
    name = f"{task}[{','.join(filter(None, map(_argument, arguments)))}]"
    index = str(entry["config"]["index"])
    common = _result(entry["result"])
    return common | knobs | {
        "workload": workload, "anchor": workload, "name": name, "target": str(target), "row_id": index,
        "package": f"tvm {package}" if package else "tvm", "study": "autotvm",
    }  # fmt: skip


def _ansor_row(entry: dict[str, Any]) -> Row:
    (workload, target, *_), state = entry["i"][:2]
    steps = state[1]
    try:
        func, *arguments = json.loads(workload)
        name = f"{func}[{','.join(filter(None, map(_argument, arguments)))}]"
    except ValueError:  # a plain key
        name = str(workload)
    return _result(entry["r"]) | {
        "workload": str(workload), "anchor": str(workload), "name": name, "target": str(target),
        "row_id": json.dumps(steps, separators=(",", ":")), "sketch": len(steps),
        "package": f"tvm auto_scheduler {entry.get('v', '')}".strip(), "study": "ansor",
    }  # fmt: skip


def _result(result: list[Any]) -> Row:
    """Fields that both formats have: [costs, error number, all cost, time stamp]."""
    costs, number, spent, stamp = result[:4]
    seconds = [float(c) for c in costs]
    status = _STATUS[int(number)] if 0 <= int(number) < len(_STATUS) else f"ERROR_{int(number)}"
    ok = status == "OK" and bool(seconds) and all(0 < s < math.inf for s in seconds)
    if status == "OK" and not ok:
        raise ValueError(f"status OK with times of {seconds}")
    mean = statistics.fmean(seconds) if ok else math.inf
    return {
        "status": status, "value": mean, "spread": statistics.pstdev(seconds) / mean if ok else math.nan,
        "n_samples": len(seconds) if ok else 0, "run_s": float(spent), "time": float(stamp), "stage": "trial",
        "default": False, "message": "",
    }  # fmt: skip


def _argument(argument: Any) -> str:
    """``["TENSOR", [8, 8], "float32"]`` and ``[8, 8]`` as 8x8; numbers and text as they are."""
    if isinstance(argument, list) and argument and argument[0] == "TENSOR":
        return _argument(argument[1])
    if isinstance(argument, list):
        return "x".join(map(str, argument)) if all(isinstance(a, int) for a in argument) else ""
    return "" if argument is None else str(argument)


def _plain(value: Any) -> Any:
    """A knob's value as a cell: a split's sizes as text, such as 8x4."""
    return "x".join(map(str, value)) if isinstance(value, list) else value

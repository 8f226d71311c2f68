"""What a compiled model is made of, as plain data: it can be saved and loaded without the compiler."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codegen.kernel import KernelObject, Param
from tilewright.codegen.target import Target
from tilewright.errors import GraphError, TilewrightError
from tilewright.schedule.program import Role
from tilewright.tensor.dtype import as_dtype

__all__ = ["Call", "Input", "Plan", "load_plan", "save_plan"]

FORMAT = 1


@dataclass(frozen=True)
class Input:
    """A graph input or output: name, shape, type, and where it lives.

    `place` is ("arena", byte offset) or ("constant", name).
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    place: tuple[str, Any]


@dataclass(frozen=True)
class Call:
    """One kernel call: which kernel, where its parameters live, and how its schedule was found."""

    kernel: int
    places: tuple[tuple[str, Any], ...]
    name: str
    origin: str  # "tuned", "transferred", "draft", "default", or one of these with "(reason)"


@dataclass(frozen=True)
class Plan:
    """Everything a model needs to run."""

    target: Target
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    kernels: tuple[KernelObject, ...]
    calls: tuple[Call, ...]
    constants: dict[str, NDArray[Any]]
    arena_bytes: int


def _param(p: Param) -> list[Any]:
    return [p.name, list(p.shape), str(p.dtype), p.role.value]


def _read_param(data: list[Any]) -> Param:
    return Param(data[0], tuple(data[1]), as_dtype(data[2]), Role(data[3]))


def _value(v: Input) -> list[Any]:
    return [v.name, list(v.shape), v.dtype, list(v.place)]


def _read_value(data: list[Any]) -> Input:
    return Input(data[0], tuple(data[1]), data[2], (data[3][0], data[3][1]))


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan as a zip file: JSON, object files and arrays; nothing in it is executed by reading."""
    head = {
        "format": FORMAT,
        "target": plan.target.to_json(),
        "inputs": [_value(v) for v in plan.inputs],
        "outputs": [_value(v) for v in plan.outputs],
        "arena_bytes": plan.arena_bytes,
        "kernels": [
            {
                "symbol": k.symbol, "params": [_param(p) for p in k.params], "packed": [_param(p) for p in k.packed],
                "workspace_bytes": k.workspace_bytes, "n_threads": k.n_threads,
            }
            for k in plan.kernels
        ],
        "calls": [[c.kernel, [list(p) for p in c.places], c.name, c.origin] for c in plan.calls],
        "constants": list(plan.constants),
    }  # fmt: skip
    partial = path.with_name(path.name + ".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("model.json", json.dumps(head, indent=1, sort_keys=True))
        for n, k in enumerate(plan.kernels):
            z.writestr(f"kernels/{n}.o", k.code)
        for n, array in enumerate(plan.constants.values()):
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            z.writestr(f"constants/{n}.npy", data.getvalue())
    partial.replace(path)


def load_plan(path: Path) -> Plan:
    """Read what `save_plan` wrote.

    Raises
    ------
    GraphError
        If the file is no compiled model, or of another format.
    """
    try:
        with zipfile.ZipFile(path) as z:
            head = json.loads(z.read("model.json"))
            if head.get("format") != FORMAT:
                raise GraphError(
                    f"load({str(path)!r}): format {head.get('format')}, this version reads {FORMAT}; compile again"
                )
            return _read_plan(z, head)
    except FileNotFoundError:
        raise GraphError(f"load({str(path)!r}): no such file") from None
    except (
        zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError,
        RecursionError, NotImplementedError, RuntimeError, TilewrightError,
    ) as error:  # fmt: skip
        if isinstance(error, GraphError):
            raise
        raise GraphError(f"load({str(path)!r}): not a compiled model ({error})") from None


def _read_plan(z: zipfile.ZipFile, head: dict[str, Any]) -> Plan:
    kernels = tuple(
        KernelObject(
            z.read(f"kernels/{n}.o"), k["symbol"], tuple(map(_read_param, k["params"])),
            tuple(map(_read_param, k["packed"])), k["workspace_bytes"], k["n_threads"],
        )
        for n, k in enumerate(head["kernels"])
    )  # fmt: skip
    constants = {
        name: np.load(io.BytesIO(z.read(f"constants/{n}.npy")), allow_pickle=False)
        for n, name in enumerate(head["constants"])
    }
    calls = tuple(
        Call(k, tuple((p[0], p[1]) for p in places), name, origin)
        for k, places, name, origin in head["calls"]
    )
    plan = Plan(
        Target.from_json(head["target"]), tuple(map(_read_value, head["inputs"])),
        tuple(map(_read_value, head["outputs"])), kernels, calls, constants, head["arena_bytes"],
    )  # fmt: skip
    _check_places(plan)
    return plan


def _check_places(plan: Plan) -> None:
    """Refuse a plan whose calls would read or write outside of its memory."""
    for call in plan.calls:
        if not 0 <= call.kernel < len(plan.kernels):
            raise ValueError(f"{call.name} calls kernel {call.kernel} of {len(plan.kernels)}")
        params = plan.kernels[call.kernel].params
        if len(params) != len(call.places):
            raise ValueError(
                f"{call.name} has {len(call.places)} places for {len(params)} parameters"
            )
        for p, place in zip(params, call.places):
            _check_place(plan, call.name, place, p.n_bytes)
    for v in (*plan.inputs, *plan.outputs):
        size = int(np.prod(v.shape, dtype=np.int64)) * as_dtype(v.dtype).numpy.itemsize
        _check_place(plan, v.name, v.place, size)


def _check_place(plan: Plan, what: str, place: tuple[str, Any], n_bytes: int) -> None:
    kind, where = place
    start, room = (
        (where, plan.arena_bytes) if kind == "arena" else (0, plan.constants[where].nbytes)
    )
    if kind not in ("arena", "constant") or not 0 <= start <= start + n_bytes <= room:
        raise ValueError(
            f"{what} uses {n_bytes} bytes at {where!r} of the {kind}, which has {room}"
        )

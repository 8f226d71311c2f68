"""Compile a model with what a log knows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tilewright.errors import RecordError, TilewrightError

if TYPE_CHECKING:
    import onnx

    from tilewright.codegen.target import Target
    from tilewright.graph import CompiledModel, FusedGraph
    from tilewright.records import RecordStore
    from tilewright.schedule.trace import Trace
    from tilewright.tensor import Workload

__all__ = ["Model", "compile", "fused_graph"]

Model: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto"


def compile(
    model: Model,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    records: RecordStore | str | os.PathLike[str] | None = None,
    target: Target | None = None,
    require_tuned: bool = False,
    draft: bool = True,
    winograd: bool = True,
) -> CompiledModel:
    """Compile a model; each kernel gets the best schedule that the log has for it, else a drafted one.

    Parameters
    ----------
    model : path or ModelProto
        An ONNX model.
    shapes : mapping, optional
        Shapes of inputs that are open in the model.
    records : RecordStore or path, optional
        The log. It must exist.
    target : Target, optional
        This machine by default. Only records of this target are used.
    require_tuned : bool
        Refuse to use a schedule that was not tuned.
    draft : bool
        Whether kernels without a record get the schedule that the draft model predicts to be fastest;
        otherwise they get the default one, plain loops in vectors and on all threads.
    winograd : bool
        Whether convolutions may be computed in Winograd's form where the log says that it is faster.

    Returns
    -------
    CompiledModel
        Its `summary` says how many kernels are tuned, drafted and default.

    Raises
    ------
    TilewrightError
        If the model cannot be compiled, or `require_tuned` and a kernel has no record.
    """
    from tilewright.graph import compile_graph

    target = target or default_target()
    store = _existing_log(records)
    missing: list[str] = []

    def lookup(workload: Workload) -> Trace | None:
        best = store.best(workload.key, target.fingerprint) if store is not None else None
        if best is None:
            missing.append(workload.name)
            return None
        return best.trace

    def seconds(workload: Workload) -> float | None:
        best = store.best(workload.key, target.fingerprint) if store is not None else None
        return None if best is None else best.value

    fused = fused_graph(model, shapes, winograd=winograd).choose(seconds)
    if require_tuned:
        for workload in fused.workloads():
            lookup(workload)
        if missing:
            names = ", ".join(dict.fromkeys(missing))
            raise TilewrightError(
                f"compile(require_tuned=True): no record on {target.fingerprint} for {names}; tune these first"
            )
    return compile_graph(fused, target, lookup, draft=draft)


def fused_graph(
    model: Model, shapes: Mapping[str, Sequence[int]] | None = None, *, winograd: bool = True
) -> FusedGraph:
    """Read a model, simplify it, and group its operators into workloads."""
    from tilewright.graph import fuse, load_onnx, simplify

    found = {name: tuple(dims) for name, dims in (shapes or {}).items()}
    return fuse(simplify(load_onnx(model, found)), alternatives=winograd)


def default_target() -> Target:
    """This machine, with the threads that the settings give."""
    from tilewright.codegen.target import Target
    from tilewright.settings import settings

    return Target.host(settings().n_threads)


def _existing_log(records: RecordStore | str | os.PathLike[str] | None) -> RecordStore | None:
    from tilewright.records import RecordStore

    if records is None or isinstance(records, RecordStore):
        return records
    if not os.path.isfile(records):
        raise RecordError(
            f"compile(records={os.fspath(records)!r}): no such log; `tune` writes one"
        )
    return RecordStore(records)

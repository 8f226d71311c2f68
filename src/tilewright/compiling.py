"""Compile a model with what a log knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, TypeAlias

from tilewright.errors import RecordError, TilewrightError

if TYPE_CHECKING:
    import onnx

    from tilewright.codegen.kernel import KernelObject
    from tilewright.codegen.target import Target
    from tilewright.graph import CompiledModel, FusedGraph
    from tilewright.graph.replay import Proposal
    from tilewright.records import Lookups, Record
    from tilewright.schedule.trace import Trace
    from tilewright.tensor import Workload

__all__ = ["Model", "compile", "fused_graph"]

Model: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto"


def compile(
    model: Model,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    records: Lookups | str | os.PathLike[str] | None = None,
    target: Target | None = None,
    require_tuned: bool = False,
    draft: bool = True,
    winograd: bool = True,
    transfer: bool = True,
    verify: bool = False,
) -> CompiledModel:
    """Compile a model; each kernel gets the best schedule that the log has for it, else a drafted one.

    Parameters
    ----------
    model : path or ModelProto
        An ONNX model.
    shapes : mapping, optional
        Shapes of inputs that are open in the model.
    records : RecordStore, LogIndex or path, optional
        The log. It must exist. A path is opened by its index if it has one or is large.
    target : Target, optional
        This machine by default. Only records of this target are used.
    require_tuned : bool
        Refuse to use a schedule that was not tuned, and records that no longer apply.
    draft : bool
        Whether kernels without a record get the schedule that the draft model predicts to be fastest;
        otherwise they get the default one, plain loops in vectors and on all threads.
    winograd : bool
        Whether convolutions may be computed in Winograd's form where the log says that it is faster.
    transfer : bool
        Whether kernels without a record may use that of the same operator with another epilogue or shape, where it
        is legal and the draft model does not predict it to be much slower than the draft.
    verify : bool
        Check every kernel against the reference evaluator on random data, and replace those that are wrong.
        This takes far longer than compiling.

    Returns
    -------
    CompiledModel
        Its `summary` says how many kernels are tuned, transferred, drafted and default; its `report`, for each
        kernel, which, and why a record of it was not used.

    Raises
    ------
    TilewrightError
        If the model cannot be compiled, or `require_tuned` and a kernel has no record that applies.
    """
    from tilewright.graph import compile_graph

    target = target or default_target()
    with _opened(records) as log:
        source = _Source(log, target)
        fused = fused_graph(model, shapes, winograd=winograd).choose(source.seconds)
        if require_tuned:
            _all_known(fused, source, target)
        compiled = compile_graph(
            fused,
            target,
            source.trace,
            draft=draft,
            transfer=source.proposals if transfer and log is not None else None,
            check=wrong if verify else None,
        )
    if require_tuned:
        _all_tuned(compiled)
    return compiled


class _Source:
    """What a log, if there is one, knows about workloads on a target."""

    def __init__(self, log: Lookups | None, target: Target) -> None:
        self._log, self._target = log, target

    def record(self, workload: Workload) -> Record | None:
        """The best record of the workload."""
        if self._log is None:
            return None
        return self._log.best(workload.key, self._target.fingerprint)

    def trace(self, workload: Workload) -> Trace | None:
        """Its schedule."""
        best = self.record(workload)
        return None if best is None else best.trace

    def seconds(self, workload: Workload) -> float | None:
        """Its time."""
        best = self.record(workload)
        return None if best is None else best.value

    def proposals(self, workload: Workload) -> Iterator[Proposal]:
        """Schedules of workloads with another epilogue, then with another shape."""
        from tilewright.graph.replay import Proposal

        if self._log is None:
            return
        fingerprint = self._target.fingerprint
        near = self._log.nearest(workload.anchor_key, fingerprint)[:3]
        for r in (*near, *self._log.similar(workload.name, fingerprint)):
            if r.workload != workload.key:
                with suppress(RecordError):  # an offer that cannot be read is none
                    yield Proposal(r.trace, r.name)


def wrong(workload: Workload, kernel: KernelObject) -> str | None:
    """How a kernel's outputs differ from the reference evaluator's on seeded inputs, or None."""
    from tilewright.measure.exactness import exact_outputs
    from tilewright.measure.inputs import make_inputs
    from tilewright.measure.tolerance import compare, tolerance
    from tilewright.runtime.kernel import load
    from tilewright.tensor.evaluate import evaluate

    arrays = make_inputs(workload)
    found = load(kernel).run(*arrays)
    expected = evaluate(workload, arrays, precision="double")
    exactness = exact_outputs(workload)
    for output, a, b, exact in zip(workload.outputs, found, expected, exactness):
        difference = compare(a, b, tolerance(workload), exact=exact)
        if difference is not None:
            return f"{output.name}: {difference}"
    return None


def _opened(
    records: Lookups | str | os.PathLike[str] | None,
) -> AbstractContextManager[Lookups | None]:
    """The log; closed afterwards if a path was given."""
    from tilewright.records import open_lookups

    if isinstance(records, (str, os.PathLike)):
        return open_lookups(records)
    return nullcontext(records)


def _all_known(fused: FusedGraph, source: _Source, target: Target) -> None:
    """Refuse a model of which a kernel has no record."""
    missing = [w.name for w in fused.workloads() if source.record(w) is None]
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise TilewrightError(
            f"compile(require_tuned=True): no record on {target.fingerprint} for {names}; tune these first"
        )


def _all_tuned(compiled: CompiledModel) -> None:
    """Refuse a model in which a record turned out to be of no use."""
    stale = {c.name: c.origin for c in compiled.plan.calls if c.origin != "tuned"}
    if stale:
        told = "; ".join(f"{name}: {origin}" for name, origin in stale.items())
        raise TilewrightError(
            f"compile(require_tuned=True): {len(stale)} kernels are not as tuned: {told}; tune these again"
        )


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

"""The contenders of `tilewright bench`: default, drafted and tuned schedules, and the peers that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import TilewrightError
from tilewright.racing import Contender

if TYPE_CHECKING:
    from tilewright.codegen.kernel import KernelObject
    from tilewright.codegen.target import Target
    from tilewright.opspec import OpSpec
    from tilewright.records import RecordStore

__all__ = ["model_contenders", "one_library_thread_count", "operator_contenders"]

Array = NDArray[Any]


@contextmanager
def one_library_thread_count(n_threads: int) -> Iterator[None]:
    """Hold NumPy's and other libraries' thread pools to `n_threads`."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=n_threads):
        yield


def operator_contenders(
    op: OpSpec, target: Target, log: RecordStore | None, seed: int
) -> tuple[list[Contender], str]:
    """Default, drafted, tuned, ONNX Runtime and NumPy for one operator, and a note for the reader.

    The last contender is the reference for the outputs.
    """
    from tilewright.codegen.build import build, build_default
    from tilewright.schedule.sketch import drafts
    from tilewright.schedule.task import Task

    workload = op.workload
    rng = np.random.default_rng(seed)
    arrays = {t.name: rng.standard_normal(t.shape).astype(t.dtype.numpy) for t in workload.inputs}
    values = list(arrays.values())
    contenders = [Contender("default", kernel_call(build_default(workload, target), values))]
    for trace in drafts(Task(workload, target), 1):
        kernel = build(workload, trace, target)
        contenders.append(Contender("draft", kernel_call(kernel, values)))
    notes: list[str] = []
    if log is not None:
        best = log.best(workload.key, target.fingerprint)
        if best is None:
            raise TilewrightError(
                f"bench: {log.path} has no correct record of {workload.name} on {target.fingerprint}; tune it first"
            )
        tuned = build(workload, best.trace, target)
        contenders.append(Contender("tuned", kernel_call(tuned, values)))
    if _installed("onnxruntime"):
        feed = {t.name: arrays[t.name] for t in workload.inputs if not t.const}
        session = onnxruntime_session(op.onnx_model(arrays).SerializeToString(), target.n_threads)
        contenders.append(Contender("onnxruntime", lambda: session.run(None, feed)))
    else:
        notes.append("onnxruntime is not installed: pip install onnxruntime")
    peer = op.numpy
    if peer is not None:
        contenders.append(Contender("numpy", lambda: [peer(*values)]))
    else:
        notes.append("NumPy has no fast form of this operator")
    notes.append(
        f"{workload.flops / 1e9:.3g} GFLOP a call, {target.n_threads} threads, {target.fingerprint}"
    )
    return contenders, "\n".join(notes)


def model_contenders(
    path: str,
    target: Target,
    log: RecordStore | None,
    shapes: Mapping[str, Sequence[int]],
    seed: int,
    *,
    winograd: bool = True,
) -> tuple[list[Contender], str]:
    """Default, drafted, tuned and ONNX Runtime for a model, and a note for the reader."""
    from tilewright.compiling import compile
    from tilewright.inputs import random_inputs

    default = compile(path, shapes=shapes, target=target, draft=False, winograd=winograd)
    draft = compile(path, shapes=shapes, target=target, winograd=winograd)
    feed = random_inputs(default, seed)
    contenders = [
        Contender("default", lambda: list(default.run(feed).values())),
        Contender("draft", lambda: list(draft.run(feed).values())),
    ]
    notes: list[str] = []
    if log is not None:
        tuned = compile(path, shapes=shapes, records=log, target=target, winograd=winograd)
        contenders.append(Contender("tuned", lambda: list(tuned.run(feed).values())))
        notes.append(f"tuned: {tuned.summary()}")
    if _installed("onnxruntime"):
        session = onnxruntime_session(path, target.n_threads)
        names = list(default.run(feed))
        contenders.append(Contender("onnxruntime", lambda: session.run(names, feed)))
    else:
        notes.append("onnxruntime is not installed, so no peer ran: pip install onnxruntime")
    notes.append(f"{target.n_threads} threads, {target.fingerprint}")
    return contenders, "\n".join(notes)


def kernel_call(kernel: KernelObject, arrays: Sequence[Array]) -> Callable[[], list[Array]]:
    """A call of a kernel on fixed inputs, with its constants packed once, as a compiled model does it."""
    from tilewright.runtime.arena import aligned_empty
    from tilewright.runtime.kernel import ENTRY, checked, load, pointer_array
    from tilewright.schedule.program import Role

    loaded = load(kernel)
    inputs = [p for p in kernel.params if p.role is not Role.OUTPUT]
    ready = [checked(p, a) for p, a in zip(inputs, arrays)]
    outputs = [
        aligned_empty(p.shape, p.dtype.numpy) for p in kernel.params if p.role is Role.OUTPUT
    ]
    packed = loaded.prepack([a for p, a in zip(inputs, ready) if p.role is Role.CONST])
    keep = (*ready, *outputs, *packed)
    args = pointer_array([a.ctypes.data for a in keep])
    entry, workspace, pool = (
        ENTRY(loaded.address),
        loaded.workspace.ctypes.data,
        loaded.pool.pointer,
    )

    def call(_alive: object = (loaded, keep)) -> list[Array]:
        entry(args, workspace, pool)
        return outputs

    return call


def onnxruntime_session(model: str | bytes, n_threads: int) -> Any:
    """A session whose threads stop spinning after each call, so that they do not slow the next contender."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None

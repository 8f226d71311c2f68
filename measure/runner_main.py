"""The runner process: loads candidates, checks them, times them, each in a child that may crash."""

from __future__ import annotations

import gc
import signal
import socket
import sys
import time
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codegen.kernel import KernelObject
from tilewright.errors import TilewrightError
from tilewright.measure.exactness import exact_outputs
from tilewright.measure.guarded import Guarded
from tilewright.measure.inputs import make_inputs
from tilewright.measure.outcome import Status
from tilewright.measure.process import bind_to_parent, run_child
from tilewright.measure.timing import Protocol, ReferenceKernel, race, repeat
from tilewright.measure.tolerance import compare, tolerance
from tilewright.measure.wire import receive, send
from tilewright.runtime.kernel import LoadedKernel, pointer_array
from tilewright.schedule.program import Role
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.workload import Workload

__all__ = ["main"]

KEPT = 3  # workloads whose data stays in memory
OVERRAN = "bytes beside the workspace or a packed buffer were overwritten"


class _Data:
    """Inputs (read-only), poisoned outputs and the right results of one workload."""

    def __init__(self, workload: Workload) -> None:
        arrays = make_inputs(workload)
        self.expected: list[NDArray[Any]] = evaluate(workload, arrays, precision="double")
        self.rtol = tolerance(workload)
        self.exact = exact_outputs(workload)
        self.inputs = [Guarded(a.shape, a.dtype, shared=False) for a in arrays]
        for g, a in zip(self.inputs, arrays):
            g.array[...] = a
            g.freeze()
        self.outputs = [Guarded(o.shape, o.dtype.numpy, shared=True) for o in workload.outputs]

    def problem(self) -> str | None:
        """What is wrong with the outputs, or None."""
        for n, (g, e) in enumerate(zip(self.outputs, self.expected)):
            if not g.band_intact():
                return f"output {n}: bytes beside the array were overwritten"
            found = compare(g.array, e, self.rtol, exact=self.exact[n])
            if found:
                return f"output {n}: {found}"
        return None

    def close(self) -> None:
        for g in (*self.inputs, *self.outputs):
            g.array = np.empty(0)
            g.close()


def _measure(
    sock: socket.socket,
    data: _Data,
    kernel: KernelObject,
    request: dict[str, Any],
    reference: ReferenceKernel,
) -> None:
    """In the child: run once, let the parent check, time, let it check again."""
    loaded = LoadedKernel(kernel)
    runtime = loaded.pool.pointer
    loaded.pool.bind_caller()
    inputs = iter(data.inputs)
    outputs = iter(data.outputs)
    arrays = [next(outputs if p.role is Role.OUTPUT else inputs).array for p in kernel.params]
    constants = [a for p, a in zip(kernel.params, arrays) if p.role is Role.CONST]
    scratch: list[Guarded] = []

    def allocate(n_bytes: int) -> NDArray[np.uint8]:
        scratch.append(Guarded((n_bytes,), np.dtype(np.uint8), shared=False))
        scratch[-1].array[...] = 0xFF  # NaN in every type: scratch memory need not be zero
        return scratch[-1].array

    packed = loaded.prepack(constants, allocate)
    workspace = allocate(kernel.workspace_bytes)
    args = pointer_array([a.ctypes.data for a in (*arrays, *packed)])

    def once(n: int) -> float:
        return repeat(loaded.address, args, workspace.ctypes.data, runtime, n)

    once(1)
    send(sock, ("step", "ran"))
    if not receive(sock):
        return
    if not all(g.band_intact() for g in scratch):
        send(sock, ("step", "overran"))
        return
    samples, references = race(
        once, reference, request["best"], Protocol(), shared=kernel.n_threads > 1
    )
    send(sock, ("step", "timed"))
    if receive(sock):
        send(sock, ("end", {"seconds": samples, "reference_seconds": references}))


def _serve(
    request: dict[str, Any], data: _Data, reference: ReferenceKernel, sock: socket.socket
) -> dict[str, Any]:
    for g in data.outputs:
        g.poison()
    wrong: list[str] = []

    def check(step: str, _: socket.socket) -> bool:
        problem = OVERRAN if step == "overran" else data.problem()
        if problem:
            wrong.append(f"after repeated runs: {problem}" if step == "timed" else problem)
        return not problem

    ending = run_child(
        lambda s: _measure(s, data, request["kernel"], request, reference),
        request["timeout_s"],
        sock,
        on_message=check,
    )
    if wrong:
        return {"status": Status.WRONG, "message": wrong[0]}
    if ending.message is not None:
        samples, references = ending.message["seconds"], ending.message["reference_seconds"]
        value = min(samples) / min(references) * reference.seconds
        return {"status": Status.OK, "value": value, **ending.message}
    if ending.reason == "timeout":
        return {"status": Status.RUN_TIMEOUT, "message": f"ran over {request['timeout_s']:g} s"}
    return {
        "status": Status.RUN_CRASH,
        "message": ": ".join(x for x in (ending.reason, ending.stderr) if x),
    }


def main(fd: int, bound: bool) -> None:
    """Serve requests until the owner closes the socket."""
    sock = socket.socket(fileno=fd)
    if bound:
        bind_to_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reference = ReferenceKernel()
    gc.collect()
    gc.freeze()
    send(sock, "ready")
    kept: OrderedDict[str, _Data] = OrderedDict()
    while True:
        try:
            request = receive(sock)
        except (EOFError, ConnectionError):
            return
        start = time.perf_counter()
        reference.seconds = request["usual_s"] or reference.seconds
        key = request["workload"].key
        try:
            if key not in kept:
                kept[key] = _Data(request["workload"])
            kept.move_to_end(key)
            while len(kept) > KEPT:
                kept.popitem(last=False)[1].close()
            answer = _serve(request, kept[key], reference, sock)
        except MemoryError as error:
            answer = {
                "status": Status.RUN_CRASH,
                "message": f"the runner has too little memory: {error}",
            }
        except TilewrightError as error:
            answer = {
                "status": Status.LOST,
                "message": f"the workload cannot be checked here: {error}",
            }
        answer["usual_s"] = reference.seconds
        answer["run_s"] = time.perf_counter() - start
        send(sock, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "1")

"""Tilewright as one contestant in a process of its own: ``python -m benchmarks.worker NAME THREADS``.

Reads one JSON object a line and answers each with one::

    {"cmd": "prep", "spec": {...}}   -> {"ok": true, "err": E, "prep_s": S, "note": "..."} or {"ok": false, "why": "..."}
    {"cmd": "prep_model", "model": {"onnx": FILE, ...}}   -> the same
    {"cmd": "burst", "seconds": S, "min": N, "max": N}    -> {"t": [seconds of each call]}

`err` is the largest difference from the reference over the largest value of it: of the file
``ref/<name>.npy`` in the working folder, where there is one, else of ONNX Runtime, else absent.
Records come from the file ``TILEWRIGHT_BENCH_RECORDS``, by default ``benchmarks/records/<cpu>.jsonl``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.suite import Spec, inputs, model
from numpy.typing import NDArray

RECORDS = Path(__file__).parent / "records"


def record_file() -> Path:
    """The log that contestants replay: of this machine type, unless the environment names another."""
    import tilewright as tw

    return Path(
        os.environ.get("TILEWRIGHT_BENCH_RECORDS") or RECORDS / f"{tw.Target.host(1).cpu}.jsonl"
    )


def tilewright_call(spec: Spec, n_threads: int) -> tuple[Callable[[], Any], str]:
    """A call of the compiled operator on its inputs, and what it was compiled from."""
    import tilewright as tw
    from tilewright.records import RecordStore

    target = tw.Target.host(n_threads)
    log = record_file()
    store = RecordStore(log) if log.exists() else None
    compiled = tw.compile(model(spec), records=store, target=target)
    for name, array in inputs(spec)[0].items():
        compiled.buffers[name][...] = array
    result = compiled.buffers["y"]

    def call() -> NDArray[Any]:
        compiled.execute()
        return result

    return call, compiled.summary()


def difference(spec: Spec, found: NDArray[Any]) -> float | None:
    """How far an output is from the reference."""
    file = Path("ref") / f"{spec['name']}.npy"
    if file.exists():
        wanted = np.load(file)
    else:
        try:
            import onnxruntime
        except ImportError:
            return None
        session = onnxruntime.InferenceSession(model(spec).SerializeToString())
        wanted = session.run(None, inputs(spec)[0])[0]
    gap = np.abs(found.reshape(wanted.shape).astype(np.float64) - wanted)
    return float(gap.max() / max(float(np.abs(wanted).max()), 1e-30))


def burst(call: Callable[[], Any], seconds: float, least: int, most: int) -> list[float]:
    """Seconds of single calls, for a while."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    for _ in range(2):
        call()
    while len(times) < most and (len(times) < least or time.perf_counter() < end):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def serve(prepare: Callable[[dict[str, Any]], tuple[Callable[[], Any], Spec | None, str]]) -> None:
    """Answer requests until the input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    call: Callable[[], Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "burst":
            assert call is not None, "burst before prep"
            answer: dict[str, Any] = {
                "t": burst(call, request["seconds"], request["min"], request["max"])
            }
        else:
            start = time.perf_counter()
            try:
                call, spec, note = prepare(request)
                result = call()
                answer = {
                    "ok": True,
                    "prep_s": time.perf_counter() - start,
                    "note": note,
                    "err": 0.0,
                }
                if spec is not None and result is not None:
                    answer["err"] = difference(spec, np.asarray(result))
            except Exception as error:  # a peer may fail in any way; the driver shows it
                call = None
                answer = {"ok": False, "why": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=out, flush=True)


def main() -> None:
    n_threads = int(sys.argv[2])

    def prepare(request: dict[str, Any]) -> tuple[Callable[[], Any], Spec | None, str]:
        if request["cmd"] == "prep":
            call, note = tilewright_call(request["spec"], n_threads)
            return call, request["spec"], note
        import tilewright as tw

        compiled = tw.compile(request["model"]["onnx"], target=tw.Target.host(n_threads))
        return compiled.execute, None, compiled.summary()

    serve(prepare)


if __name__ == "__main__":
    main()

"""A log of a million records: how long it takes to index, to open with its index, and to look something up.

    python benchmarks/records.py [--records 1000000] [--tasks 2000] [--keep DIR] [--json FILE]

The peer is the log read whole, by `RecordStore`, at a size that memory allows (``--whole``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tilewright.records import LogIndex, Provenance, Record, RecordStore

TRACE = (
    '[["split","i",[4,16]],["split","j",[8,32]],["reorder","i.0","j.0","k","i.1","j.1","i.2","j.2"],'
    '["cache_write","C"],["decompose_reduction","C","k"],["unroll","i.2"],["vectorize","j.2"],["parallel","i.0"]]'
)


def template() -> str:
    """A record's line without its checksum, with marks where lines differ."""
    record = Record(
        "@W@", "@T@", "matmul[512x512x@T@,f32]", "x86_64-znver4-v512-dd977d-t1", "tile|@R@", "OK", 0.125,
        trace_text=TRACE, sketch=1, row=(1, 0, 3, 5), knobs=(("i.c", 4), ("j.c", 8)), seconds=(1.25e-05, 1.26e-05, 1.27e-05),
        reference_seconds=(1e-05, 1e-05, 1e-05), build_s=0.1, run_s=0.1, trial=123456789,
        provenance=Provenance("host", 1.7e9, 0, "0.1.0", "20.1.0", "study"),
    )  # fmt: skip
    payload = json.loads(record.to_line())
    del payload["checksum"]
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return text.replace("0.125", "@V@").replace("123456789", "@N@")


def write_log(path: Path, n: int, n_tasks: int) -> None:
    """Write n sound lines, some 500,000 in a few seconds."""
    form = template().replace("{", "{{").replace("}", "}}")
    for mark, field in (
        ("@T@", "{t}"),
        ("@R@", "{n}"),
        ("@V@", "{v!r}"),
        ("@N@", "{n}"),
        ("@W@", "{w}"),
    ):
        form = form.replace(mark, field)
    values = np.random.default_rng(0).uniform(1e-5, 1e-3, n).tolist()
    keys = [hashlib.sha256(str(t).encode()).hexdigest()[:32] for t in range(n_tasks)]
    at = form.index('"default"')
    head, tail = form[:at], form[at:]
    with open(path, "w") as file:
        for k in range(n):
            t = k * n_tasks // n  # a task is tuned for a while, then the next
            fields = {"t": t + 1, "n": k, "v": values[k], "w": keys[t]}
            first, rest = head.format(**fields), tail.format(**fields)
            checksum = hashlib.sha256((first + rest).encode()).hexdigest()[:16]
            file.write(f'{first}"checksum":"{checksum}",{rest}\n')


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(path: Path, n_lookups: int, whole: bool) -> dict[str, float]:
    """The figures, in seconds."""
    out = {"index_s": timed(lambda: LogIndex(path).close())}
    out["open_s"] = statistics.median(timed(lambda: LogIndex(path).close()) for _ in range(5))
    with LogIndex(path) as index:
        tasks = index.tasks()
        picks = np.random.default_rng(1).integers(0, len(tasks), n_lookups)
        spent = [timed(lambda k=k: index.best(*tasks[k])) for k in picks]  # type: ignore[misc]
        out["lookup_median_s"] = statistics.median(spent)
        out["lookup_p99_s"] = float(np.quantile(spent, 0.99))
        out["n_records"], out["n_tasks"] = len(index), len(tasks)
        record = index.of_task(*tasks[0])[0]
    append_line(path, record)
    out["open_after_append_s"] = timed(lambda: LogIndex(path).close())
    if whole:
        out["whole_s"] = timed(lambda: RecordStore(path))
    return out


def append_line(path: Path, record: Record) -> None:
    """Append a line as another process would, without reading the log."""
    with open(path, "a") as file:
        file.write(replace(record, row_id="new").to_line() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--lookups", type=int, default=2000)
    parser.add_argument("--whole", action="store_true", help="time reading the whole log too")
    parser.add_argument(
        "--keep", type=Path, help="where to leave the log; a temporary folder by default"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (args.keep or Path(folder)) / "records.jsonl"
        path.unlink(missing_ok=True)
        spent = timed(lambda: write_log(path, args.records, args.tasks))
        out = {"write_s": spent, "log_bytes": float(path.stat().st_size)}
        out |= measure(path, args.lookups, args.whole)
    for name, value in out.items():
        print(f"{name:22} {value:.6g}")
    if args.json:
        args.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The operator suite against every installed peer: ``python -m benchmarks.ops --json FILE``.

Each contestant is one long-lived process a thread count, idle unless asked. All prepare an operator (build, warm
up, check), then each in turn gives a burst of calls, several rounds, so that the noise of a shared machine hits all
alike; the machine's peak is measured beside each round. Figures are medians over all calls.
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
from benchmarks.peers import installed
from benchmarks.suite import Spec, model, suite
from benchmarks.worker import record_file

import tilewright as tw
from tilewright.probing import copy_gbs, peak_gflops

ROOT = Path(__file__).resolve().parents[1]
SPINNING_S = 0.25  # threads of OpenMP runtimes wait busily for so long after a call; the peak is measured when they sleep


class Contestant:
    """A process that speaks the workers' protocol."""

    def __init__(self, name: str, n_threads: int, records: Path | None) -> None:
        self.name, self.n_threads = name, n_threads
        module = "benchmarks.worker" if name == "tilewright" else "benchmarks.peers"
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_PLACES": "cores",
            "OMP_PROC_BIND": "close",
        }
        for library in ("OMP", "OPENBLAS", "MKL"):  # read when it is loaded
            env[f"{library}_NUM_THREADS"] = str(n_threads)
        if records is not None:
            env["TILEWRIGHT_BENCH_RECORDS"] = str(records)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, name, str(n_threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=ROOT,
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request and its answer; a process that dies answers no more."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"ok": False, "why": f"the process ended ({self._process.poll()})"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)


def race(spec: Spec, contestants: list[Contestant], rounds: int, seconds: float) -> dict[str, Any]:
    """Median seconds of each contestant that could prepare the operator, why others could not, the peak meanwhile."""
    ready, why, errors = [], {}, {}
    for c in contestants:
        answer = c.ask(cmd="prep", spec=spec)
        if answer["ok"]:
            ready.append(c)
            errors[c.name] = answer.get("err")
        else:
            why[c.name] = answer["why"]
    bits, threads = tw.Target.host(1).vector_bits, contestants[0].n_threads
    times: dict[str, list[float]] = {c.name: [] for c in ready}
    peaks = []
    for r in range(rounds):
        turn = r % max(1, len(ready))
        time.sleep(SPINNING_S)
        peaks.append(peak_gflops(bits, threads, iterations=100_000, repeats=3))
        for c in ready[turn:] + ready[:turn]:
            times[c.name] += c.ask(cmd="burst", seconds=seconds, min=5, max=2000)["t"]
            time.sleep(0.02)  # threads of a peer that spin after a call stop
    return {
        "seconds": {n: statistics.median(t) for n, t in times.items()},
        "why": why, "errors": errors, "peak": statistics.median(peaks),
    }  # fmt: skip


def row_of(spec: Spec, threads: int, found: dict[str, Any], bandwidth: float) -> dict[str, Any]:
    """One line of the result."""
    seconds = dict(found["seconds"])
    ours = seconds.pop("tilewright", math.nan)
    return {
        "op": spec["name"], "threads": threads, "ours_s": ours, "peers": seconds,
        "peak_share": spec["flops"] / ours / 1e9 / found["peak"],
        "bandwidth_share": spec["bytes"] / ours / 1e9 / bandwidth,
        "error": found["errors"].get("tilewright"), "failed": found["why"],
    }  # fmt: skip


def tune(specs: list[Spec], threads: list[int], trials: int, log: Path) -> None:
    """Tune each operator until the log has that many trials of each of its kernels."""
    from tilewright.measure import LocalPool
    from tilewright.records import RecordStore
    from tilewright.tuning import tasks_of

    log.parent.mkdir(parents=True, exist_ok=True)
    store = RecordStore(log)
    with LocalPool() as pool:
        for n in threads:
            target = tw.Target.host(n)
            for spec in specs:
                onnx = model(spec)
                kernels = sum(len(forms) for forms, _ in tasks_of(onnx, target))
                study = tw.tune(
                    onnx, trials=trials * kernels, records=store, pool=pool, target=target, progress=False
                )  # fmt: skip
                click.echo(
                    f"tuned {spec['name']} on {n} thread(s): {study.model_seconds() * 1e6:.1f} us",
                    err=True,
                )
                if study.interrupted:
                    raise click.exceptions.Exit(130)


def line(row: dict[str, Any], metric: str) -> str:
    """A row of the Markdown table."""
    peers = sorted(row["peers"].items(), key=lambda p: p[1])
    best = f"{peers[0][0]} {peers[0][1] * 1e6:.1f}" if peers else "-"
    ratio = f"{peers[0][1] / row['ours_s']:.2f}" if peers else "-"
    share = row["peak_share"] if metric == "gflops" else row["bandwidth_share"]
    bound = "peak" if metric == "gflops" else "copy"
    others = ", ".join(f"{n} {s * 1e6:.1f}" for n, s in peers[1:])
    return f"| {row['op']} | {row['threads']} | {row['ours_s'] * 1e6:.1f} | {best} | {ratio} | {100 * share:.0f} % {bound} | {others} |"


@click.command()
@click.option("--ops", default=".", metavar="REGEX", help="Operators by name.")
@click.option("--threads", default="1,2", show_default=True)
@click.option("--peers", help="By commas; all that are installed by default.")
@click.option(
    "--shapes",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON list of further specifications, tuned with --trials.",
)
@click.option(
    "--trials",
    type=click.IntRange(0),
    help="Tune first: so many trials of each kernel, those in the log included; with --shapes, 64 by default.",
)
@click.option(
    "--records",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The log to replay and to add to.",
)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1))
@click.option("--seconds", default=0.15, show_default=True, help="Of a burst.")
@click.option("--json", "out", type=click.Path(dir_okay=False), help="Write the rows here.")
def main(
    ops: str, threads: str, peers: str | None, shapes: str | None, trials: int | None, records: Path | None,
    rounds: int, seconds: float, out: str | None,
) -> None:  # fmt: skip
    """Race Tilewright against its peers on the operator suite."""
    counts = [int(n) for n in threads.split(",")]
    specs = [s for s in suite() if re.search(ops, s["name"])]
    if shapes:
        more = json.loads(Path(shapes).read_text())
        specs = [*(specs if ops != "." else []), *more]
        trials = 64 if trials is None else trials
    log = records or record_file()
    if trials:
        tune(specs, counts, trials, log)
    names = ["tilewright", *(peers.split(",") if peers is not None else installed())]
    rows = []
    click.echo("| operator | threads | ours us | best peer us | ratio | share | others us |")
    click.echo("|---|---|---|---|---|---|---|")
    for n in counts:
        bandwidth = copy_gbs(n)
        contestants = [Contestant(name, n, log if log.exists() else None) for name in names if name]
        for spec in specs:
            rows.append(row_of(spec, n, race(spec, contestants, rounds, seconds), bandwidth))
            click.echo(line(rows[-1], spec["metric"]))
            for name, why in rows[-1]["failed"].items():
                click.echo(f"{name} cannot: {why}", err=True)
            if out:
                Path(out).write_text(json.dumps(rows, indent=1))
        for c in contestants:
            c.close()
        ratios = [
            min(r["peers"].values()) / r["ours_s"] for r in rows if r["threads"] == n and r["peers"]
        ]
        if ratios:
            mean = math.exp(statistics.fmean(math.log(v) for v in ratios))
            click.echo(
                f"\n{n} thread(s): geometric mean {mean:.2f}, least {min(ratios):.2f}, {len(ratios)} operators\n"
            )


if __name__ == "__main__":
    main()

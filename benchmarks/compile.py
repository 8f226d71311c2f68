"""What compiling one candidate costs, by stage: ``python -m benchmarks.compile``."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import click
import numpy as np
from benchmarks.suite import model, suite

import tilewright as tw
from tilewright.codegen.build import build_program
from tilewright.tuning import tasks_of

OPERATORS = ("matmul_512", "conv3x3_64_56", "dw3x3_576_14", "softmax_12x128x128")
STAGES = ("schedule", "emit", "parse", "passes", "codegen")


def stages(name: str, candidates: int) -> dict[str, float]:
    """Median seconds of each stage over random candidates of an operator's first kernel."""
    spec = next(s for s in suite() if s["name"] == name)
    task = tasks_of(model(spec), tw.Target.host(1))[0][0][0]
    space = tw.Space(task)
    times = []
    for row in space.sample_rows(candidates, np.random.default_rng(0)):
        start = time.perf_counter()
        program = space.program(row)
        scheduled = time.perf_counter() - start
        _, t = build_program(program, task.target)
        times.append((scheduled, t.emit_s, t.parse_s, t.passes_s, t.codegen_s))
    out = {s: statistics.median(t[n] for t in times) for n, s in enumerate(STAGES)}
    out["all"] = statistics.median(sum(t) for t in times)
    return out


@click.command()
@click.option("--candidates", default=60, show_default=True, type=click.IntRange(1))
@click.option("--json", "out", type=click.Path(dir_okay=False), help="Write the figures here.")
def main(candidates: int, out: str | None) -> None:
    """Compile random candidates and show where the time goes."""
    found = {name: stages(name, candidates) for name in OPERATORS}
    click.echo(f"| operator | {' | '.join(STAGES)} | median of the sum, ms |")
    click.echo("|---" * (len(STAGES) + 2) + "|")
    for name, t in found.items():
        cells = " | ".join(f"{t[s] * 1e3:.1f}" for s in (*STAGES, "all"))
        click.echo(f"| {name} | {cells} |")
    if out:
        Path(out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""Train the model that ships: ``python -m benchmarks.pretrain build/dataset.jsonl.xz``.

Writes the trees (XGBoost's UBJSON) and a file of facts: where, when and how the data was measured, and how well such a
model ranks held-out shapes and workloads.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from benchmarks.costmodel import evaluate
from benchmarks.dataset import Data, data_of, read

from tilewright.costmodel import XGBRanker, save_weights

HOME = Path(__file__).resolve().parents[1] / "costmodel" / "weights"


def ranker() -> XGBRanker:
    """Slower to learn than what a study fits while it runs, and bagged: tasks differ more than draws."""
    return XGBRanker(
        n_rounds=150, max_depth=5, learning_rate=0.1, subsample=0.7, colsample_bytree=0.5, min_child_weight=5.0,
    )  # fmt: skip


def facts_of(lines: list[dict[str, Any]], data: Data) -> dict[str, Any]:
    """How the data came about."""
    targets = sorted({f"{e['target']['cpu']}, {e['target']['n_threads']} thread(s)" for e in lines})
    times = [e["time"] for e in lines]
    return {
        "data": {
            "candidates": len(data.y), "workloads": len(set(data.workloads)), "kinds": sorted(set(data.kinds)),
            "targets": targets, "failed": int((data.y == 0).sum()), "dropped": data.n_dropped,
            "measured": [time.strftime("%Y-%m-%d", time.gmtime(t)) for t in (min(times), max(times))],
            "package": sorted({e["package"] for e in lines}),
            "how": "benchmarks.dataset: seconds of one call relative to a reference kernel timed beside it",
        },
    }  # fmt: skip


@click.command()
@click.argument("source", metavar="DATA", type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--out", default=HOME, type=click.Path(file_okay=False, path_type=Path))
def main(source: Path, out: Path) -> None:
    """Train, judge, and write weights."""
    lines = list(read(source))
    data = data_of(lines)
    metrics = evaluate(ranker, data)
    for split, figures in metrics.items():
        click.echo(f"{split}: " + ", ".join(f"{k} {v:.3f}" for k, v in figures.items()))
    model = ranker().fit(data.x, data.y, data.groups)
    names = ("n_rounds", "max_depth", "learning_rate", "subsample", "colsample_bytree")
    parameters = {n: getattr(model, n) for n in names}
    save_weights(
        model, out, {**facts_of(lines, data), "parameters": parameters, "metrics": metrics}
    )
    click.echo(f"{out}: {(out / 'cpu.ubj').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

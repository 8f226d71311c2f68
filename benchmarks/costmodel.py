"""How well cost models rank what they have not seen: ``python -m benchmarks.costmodel DATA --json FILE``.

Two splits, cross-validated, and no workload is ever on both sides:

- held_out_shapes: other shapes of the same kinds of operators were seen.
- held_out_workloads: whole kinds of operators are new (no convolution was ever seen, say).

DATA is a file of `benchmarks.dataset`, or a log of records of the operator suite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np
from benchmarks.dataset import Data, data_of, read
from benchmarks.suite import suite
from benchmarks.tables import tasks_named
from numpy.typing import NDArray

import tilewright as tw
from tilewright.cli.choices import MODELS, model_named
from tilewright.costmodel import CostModel, default_model, report
from tilewright.records import Record, RecordStore, Stage
from tilewright.schedule.space import Space

FOLDS = 4
Make = Callable[[], CostModel]


def data_of_log(path: Path) -> Data:
    """Trials of the suite's kernels from a log of records, as far as they are still in their spaces."""
    by_task: dict[tuple[str, str], list[Record]] = {}
    for r in RecordStore(path):
        if r.stage is Stage.TRIAL:
            by_task.setdefault(r.task_key, []).append(r)
    threads = sorted({int(target.rpartition("-t")[2]) for _, target in by_task})
    x, y, sizes, workloads, kinds, dropped = [], [], [], [], [], 0
    for n in threads:
        target = tw.Target.host(n)
        for spec in suite():
            for task, _ in tasks_named(spec["name"], target):
                found = by_task.pop((task.workload.key, task.target.fingerprint), [])
                if len(found) < 2:
                    continue
                space = Space(task)
                good = [r for r in found if _fits(space, r)]
                dropped += len(found) - len(good)
                seconds = np.array([r.value for r in good])
                if len(good) < 2 or not np.isfinite(seconds).any():
                    continue
                x.append(space.features(np.array([r.row for r in good], dtype=np.int32)))
                y.append(seconds.min() / seconds)
                sizes.append(len(good))
                workloads.append(task.workload.key)
                kinds.append(spec["kind"])
    if not x:
        raise click.UsageError(f"{path}: no trial of a suite operator of this machine type")
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return Data(np.concatenate(x), np.concatenate(y), groups, workloads, kinds, dropped)


def _fits(space: Space, r: Record) -> bool:
    row = np.array(r.row, dtype=np.int32)
    return (
        row.shape == (1 + space.n_columns,)
        and bool(space.valid(row[None])[0])
        and space.row_ids(row)[0] == r.row_id
    )


def load(path: Path) -> Data:
    """A data set or a log, by its ending."""
    return data_of(read(path)) if path.suffix == ".xz" else data_of_log(path)


def splits(data: Data, seed: int = 0) -> Iterator[tuple[str, list[NDArray[np.bool_]]]]:
    """Each split's name and, for each of its folds, which groups are held out."""
    rng = np.random.default_rng(seed)
    workloads = np.array(data.workloads)
    unique = np.array(sorted(set(data.workloads)))
    fold_of: dict[str, int] = {}
    kind_of = dict(zip(data.workloads, data.kinds))
    for kind in sorted(set(data.kinds)):
        own = [w for w in unique if kind_of[w] == kind]
        start = int(rng.integers(FOLDS))
        fold_of |= {own[k]: (start + n) % FOLDS for n, k in enumerate(rng.permutation(len(own)))}
    folds = np.array([fold_of[w] for w in workloads])
    yield "held_out_shapes", [folds == k for k in range(FOLDS)]
    kinds = sorted(set(data.kinds))
    order = {kinds[k]: n % FOLDS for n, k in enumerate(rng.permutation(len(kinds)))}
    folds = np.array([order[kind_of[w]] for w in workloads])  # a workload has one kind
    yield "held_out_workloads", [folds == k for k in range(FOLDS)]


def evaluate(make: Make, data: Data, seed: int = 0) -> dict[str, dict[str, float]]:
    """Figures of a model on each split: every group is predicted by a model that never saw its workload."""
    out = {}
    for name, folds in splits(data, seed):
        score = np.zeros(len(data.y))
        tested = np.zeros(len(data.y), dtype=bool)
        for held_out in folds:
            test = held_out[data.groups]
            if test.all() or not test.any():
                continue
            model = make().fit(data.x[~test], data.y[~test], data.groups[~test])
            score[test] = model.predict(data.x[test])
            tested |= test
        out[name] = report(score[tested], data.y[tested], data.groups[tested])
    return out


@click.command()
@click.argument("source", metavar="DATA", type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--models", default="xgboost,ridge,forest,analytic,random", show_default=True)
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Figures of the first model.")  # fmt: skip
def main(source: Path, models: str, out: Path | None) -> None:
    """Compare cost models on a data set."""
    names = models.split(",")
    if strange := [n for n in names if n not in MODELS]:
        raise click.BadParameter(f"{', '.join(strange)}: choose from {', '.join(MODELS)}")
    data = load(source)
    click.echo(
        f"{len(data.y)} candidates of {len(set(data.workloads))} workloads, {data.n_dropped} dropped (no longer in their spaces)"
    )
    click.echo("| split | model | pairwise | peak@1 | peak@5 | Kendall tau |")
    click.echo("|---|---|---|---|---|---|")
    found = {name: evaluate(lambda n=name: _fresh(n), data) for name in names}  # type: ignore[misc]
    for split in found[names[0]]:
        for name in names:
            f = found[name][split]
            click.echo(f"| {split} | {name} | {f['pairwise']:.3f} | {f['peak1']:.3f} | {f['peak5']:.3f} | {f['kendall']:.3f} |")  # fmt: skip
    if out is not None:
        out.write_text(json.dumps(found[names[0]], indent=1))


def _fresh(name: str) -> CostModel:
    """A model without the shipped weights, which may have seen what is held out here."""
    from tilewright.costmodel import AnalyticModel, FailureAware

    ranker = default_model()
    ranker.prior = AnalyticModel()
    models = {"xgboost": ranker, "failures": FailureAware(ranker)}
    return models.get(name) or model_named(name)


if __name__ == "__main__":
    main()

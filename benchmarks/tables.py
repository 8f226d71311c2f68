"""Record whole tables of measured candidates, so that search research needs no timing.

    python -m benchmarks.tables --ops 'matmul_128|dw3x3_960' --limit 2000 --out build/tables
    python -m benchmarks.tables --op matmul:96x96x96 --synthetic --out build/tables

All candidates of a small space are measured, of a larger one a sample: draws, what the draft model likes, and
neighbours of both. `--synthetic` measures nothing: values are the draft model's, with noise. Such a table is for
tests of the machinery and says so in its file and its name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import numpy as np
from benchmarks.suite import model, suite

import tilewright as tw
from tilewright.errors import RecordError
from tilewright.measure import MeasureInput, MeasureResult, Pool, Status, Table
from tilewright.measure.table import digest
from tilewright.schedule.space import Rows, Space, unique_rows
from tilewright.schedule.subspace import SubSpace
from tilewright.tuner.moves import step

BATCH = 64


def tasks_named(op: str, target: tw.Target) -> list[tuple[tw.Task, float]]:
    """The tasks of an operator of the suite, or of a specification such as matmul:64x64x64."""
    from tilewright.opspec import parse
    from tilewright.tuning import tasks_of

    if ":" in op:
        return [(tw.Task(parse(op).workload, target), 1.0)]
    spec = next((s for s in suite() if s["name"] == op), None)
    if spec is None:
        raise click.UsageError(f"no operator {op!r} in the suite")
    return [(forms[0], weight) for forms, weight in tasks_of(model(spec), target)]


def chosen_rows(space: Space, limit: int, seed: int = 0) -> Rows:
    """The rows of a table: all, or a sample of at most `limit`; the default comes first."""
    rng = np.random.default_rng(seed)
    everything = space.enumerate_rows(20 * limit)
    if everything is not None and len(everything) <= limit:
        rows = everything
    else:
        many = space.sample_rows(max(4096, 4 * limit), rng)
        liked = many[np.argsort(space.analytic(many), kind="stable")[: limit // 4]]
        near = step(space, np.concatenate([liked, liked]), rng, jump=0.0)
        drawn = space.sample_rows(limit, rng)
        rows = np.concatenate([liked, near[space.valid(near)][: limit // 4], drawn])
    return unique_rows(np.concatenate([space.default_row(), rows]))[:limit]


def record(task: tw.Task, pool: Pool, limit: int, about: dict[str, Any], seed: int = 0) -> Table:
    """Measure the rows of a table."""
    space = Space(task)
    rows = chosen_rows(space, limit, seed)
    traces = [space.trace(r) for r in rows]
    results: list[MeasureResult] = []
    for start in range(0, len(rows), BATCH):
        some = range(start, min(start + BATCH, len(rows)))
        results += pool.measure([MeasureInput(k, task, traces[k]) for k in some])
        click.echo(f"\r{task.name}: {len(results)}/{len(rows)}", nl=False, err=True)
    click.echo(err=True)
    facts = {"target": task.target.to_json(), "synthetic": False, "seed": seed, **about}
    return Table.of(task.key, rows, traces, results, facts)


def synthetic(
    task: tw.Task, limit: int, about: dict[str, Any], *, noise: float = 0.1, seed: int = 0
) -> Table:
    """A made-up table: predicted seconds with log-normal noise; a thirtieth fails."""
    space, rng = Space(task), np.random.default_rng(seed)
    rows = chosen_rows(space, limit, seed)
    values = space.analytic(rows) * np.exp(noise * rng.standard_normal(len(rows)))
    failed = rng.random(len(rows)) < 1 / 30
    failed[0] = False
    results = [
        MeasureResult(k, Status.BUILD_ERROR if bad else Status.OK, value=np.inf if bad else v)
        for k, (bad, v) in enumerate(zip(failed, values))
    ]
    facts = {"target": task.target.to_json(), "synthetic": True, "seed": seed, **about}
    return Table.of(task.key, rows, [space.trace(r) for r in rows], results, facts)


def opened(table: Table) -> tuple[tw.Task, float, SubSpace]:
    """The task of a table, its weight, and the part of its space that was recorded.

    Raises
    ------
    RecordError
        If the rules that make the space have changed since.
    """
    about = table.about
    target = tw.Target.from_json(about["target"])
    task, weight = tasks_named(about["op"], target)[about["kernel"]]
    space = Space(task)
    some = np.linspace(0, len(table.rows) - 1, 16).astype(int)
    fits = (
        task.key == table.task_key
        and table.rows.shape[1] == 1 + space.n_columns
        and space.valid(table.rows[some]).all()
        and all(digest(space.trace(table.rows[k])) == int(table.digests[k]) for k in some)
    )
    if not fits:
        raise RecordError(
            f"table of {about['op']}: recorded with other schedule rules; record it again"
        )
    return task, weight, SubSpace(space, table.rows)


def file_of(folder: Path, op: str, kernel: int, threads: int, made_up: bool) -> Path:
    """Where a table lies; a synthetic one says so."""
    safe = re.sub(r"[^\w.=-]+", "_", op)
    return folder / f"{safe}.k{kernel}-t{threads}{'.synthetic' if made_up else ''}.npz"


@click.command()
@click.option("--ops", metavar="REGEX", help="Operators of the suite, by name.")
@click.option("--op", "more", multiple=True, help="An operator such as matmul:96x96x96.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--limit", default=1000, show_default=True, type=click.IntRange(16))
@click.option("--seed", default=0, show_default=True)
@click.option("--synthetic", "made_up", is_flag=True, help="Make values up; for tests only.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
def main(
    ops: str | None, more: tuple[str, ...], threads: int, limit: int, seed: int, made_up: bool, out: Path
) -> None:  # fmt: skip
    """Record tables; those that exist already are kept."""
    names = [s["name"] for s in suite() if ops and re.search(ops, s["name"])] + list(more)
    out.mkdir(parents=True, exist_ok=True)
    target = tw.Target.host(threads)
    pool: Pool | None = None
    for op in names:
        for kernel, (task, _) in enumerate(tasks_named(op, target)):
            path = file_of(out, op, kernel, threads, made_up)
            if path.exists():
                continue
            about = {"op": op, "kernel": kernel}
            if made_up:
                table = synthetic(task, limit, about, seed=seed)
            else:
                pool = pool or tw.LocalPool()
                table = record(task, pool, limit, about, seed)
            table.save(path)
            click.echo(f"{path}: {len(table.rows)} candidates, best {table.best_s * 1e6:.2f} us")
    if pool is not None:
        pool.close()


if __name__ == "__main__":
    main()

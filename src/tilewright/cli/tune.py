"""``tilewright tune``: search, measure, log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tilewright.cli.choices import MODELS, SEARCHERS, model_named, searcher_named
from tilewright.cli.common import (
    add_row,
    console,
    duration,
    host,
    model_argument,
    seconds_text,
    subject,
    winograd_option,
)

if TYPE_CHECKING:
    from tilewright.tuner import Study

__all__ = ["tune"]


@click.command()
@model_argument
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Trials in all, those in the log included.",
)
@click.option(
    "--budget", type=duration, metavar="TIME", help="Stop after this time, such as 90s or 10min."
)
@click.option(
    "--records", type=click.Path(dir_okay=False), default="records.jsonl", show_default=True,
    help="The log. It is added to, and a study that was interrupted goes on.",
)  # fmt: skip
@click.option(
    "--pool",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where candidates are built and timed.",
)
@click.option("--ray-address", metavar="ADDRESS", help="A Ray cluster; a new local one by default.")
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of a kernel; all cores by default."
)
@click.option(
    "--searcher", type=click.Choice(SEARCHERS), default=SEARCHERS[0], show_default=True,
    help="What proposes candidates.",
)  # fmt: skip
@click.option(
    "--model", "cost_model", type=click.Choice(MODELS), default=MODELS[0], show_default=True,
    help="What ranks them.",
)  # fmt: skip
@click.option(
    "--warm-start", type=click.Path(exists=True, dir_okay=False), metavar="LOG",
    help="Try first what won in this log, for other shapes too.",
)  # fmt: skip
@click.option(
    "--min-gain", type=click.FloatRange(0, 100), default=0.0, metavar="PERCENT",
    help="Stop when the next trials are expected to save less of the model's time.",
)  # fmt: skip
@winograd_option
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same candidates.")
@click.option(
    "--plot", type=click.Path(dir_okay=False), help="Draw the tuning curve into this file."
)
def tune(
    model: str | None,
    op: str | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    trials: int,
    budget: float | None,
    records: str,
    pool: str,
    ray_address: str | None,
    threads: int | None,
    searcher: str,
    cost_model: str,
    warm_start: str | None,
    min_gain: float,
    winograd: bool,
    seed: int,
    plot: str | None,
) -> None:
    """Tune MODEL (ONNX) or an operator on this machine, and log every trial."""
    from tilewright.tuning import tune as run_study

    found = subject(model, op)
    search = searcher_named(searcher, seed)
    if warm_start is not None:
        from tilewright.records import RecordStore
        from tilewright.tuner import WarmStart

        search = WarmStart(search, RecordStore(warm_start), seed=seed)
    study = run_study(
        found if isinstance(found, str) else found.workload, trials=trials, budget=budget, records=records, pool=pool,
        ray_address=ray_address, target=host(threads), shapes=dict(shapes), search=search,
        model=model_named(cost_model, seed), min_gain=min_gain / 100, winograd=winograd, seed=seed,
    )  # fmt: skip
    _show(study, records)
    if plot is not None:
        _plot(study, plot)
    if study.interrupted:
        click.echo(
            f"interrupted: {study.n_trials} trials are in {records}; the same command goes on from there",
            err=True,
        )
        raise click.exceptions.Exit(130)


def _show(study: Study, records: str) -> None:
    """The slowest tasks, and the sum of all."""
    from rich.table import Table

    frame = study.table()
    frame["share"] = frame["weight"] * frame["best_us"]
    table = Table("kernel", "calls", "trials", "default", "best", "speed-up", "GFLOP/s")
    for row in frame.sort_values("share", ascending=False).head(12).itertuples():
        add_row(
            table, row.task, int(row.weight), row.trials, seconds_text(row.default_us / 1e6), seconds_text(row.best_us / 1e6),
            f"{row.speedup:.2f}", f"{row.gflops:.1f}",
        )  # fmt: skip
    console().print(table)
    if len(frame) > 12:
        click.echo(f"and {len(frame) - 12} kernels that take less time")
    before, after = study.model_seconds(default=True), study.model_seconds()
    gain = f" ({before / after:.2f} times as fast)" if after > 0 else ""
    click.echo(
        f"sum of kernels: {seconds_text(before)} by default, {seconds_text(after)} tuned{gain}"
    )
    click.echo(f"{study.n_trials} trials in {records}")
    if study.stopped:
        click.echo(f"stopped: {study.stopped}")


def _plot(study: Study, path: str) -> None:
    """Draw the tuning curve of this run."""
    from tilewright.errors import TilewrightError
    from tilewright.tuner import plot_curve

    if study.curve_info().empty:
        click.echo(f"no new trials, so {path} was not drawn", err=True)
        return
    try:
        import matplotlib
    except ImportError:
        raise TilewrightError("tune --plot: needs matplotlib; pip install matplotlib") from None
    matplotlib.use("Agg")
    plot_curve(study).figure.savefig(path, dpi=120, bbox_inches="tight")
    click.echo(f"tuning curve: {path}")

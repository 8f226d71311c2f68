"""``tilewright tune``: search, measure, log."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.common import console, duration, host, model_argument, subject

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
    seed: int,
    plot: str | None,
) -> None:
    """Tune MODEL (ONNX) or an operator on this machine, and log every trial."""
    raise NotImplementedError

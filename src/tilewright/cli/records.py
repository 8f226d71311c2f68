"""``tilewright records``: look at logs and care for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tilewright.cli.common import add_row, console, seconds_text

if TYPE_CHECKING:
    from tilewright.records import Record, RecordStore

__all__ = ["records"]

FILE = click.Path(dir_okay=False)


@click.group()
def records() -> None:
    """Look at logs of tuning records and care for them."""


def open_log(path: str) -> RecordStore:
    """Open a log that must exist."""
    from tilewright.errors import RecordError
    from tilewright.records import RecordStore

    if not os.path.isfile(path):
        raise RecordError(f"records({path}): no such log; `tilewright tune` writes one")
    return RecordStore(path)


@records.command()
@click.argument("file", type=FILE)
@click.option("--all", "everything", is_flag=True, help="Every trial instead of a line a task.")
@click.option("--trace", is_flag=True, help="Print the best schedule of each task too.")
def show(file: str, everything: bool, trace: bool) -> None:
    """Show what FILE holds: for each task its trials, failures, default and best time."""
    from rich.table import Table

    log, out = open_log(file), console()
    if everything:
        table = Table("workload", "trial", "stage", "status", "time", "knobs", "message")
        for r in log:
            knobs = " ".join(f"{k}={v}" for k, v in r.knobs)
            add_row(
                table,
                r.name,
                str(r.trial),
                r.stage.value,
                r.status,
                seconds_text(r.value),
                knobs,
                r.message,
            )
    else:
        table = Table("workload", "target", "trials", "failed", "default", "best", "speed-up")
        for workload, target in dict.fromkeys(r.task_key for r in log):
            add_row(table, *_summary(log, workload, target))
    out.print(table)
    if trace:
        for workload, target in dict.fromkeys(r.task_key for r in log):
            best = log.best(workload, target)
            if best is not None:
                out.print(f"\n# {best.name} on {best.target}", markup=False)
                out.print(str(best.trace), markup=False)
    for problem in log.problems:
        click.echo(f"skipped {problem}", err=True)


def _summary(log: RecordStore, workload: str, target: str) -> tuple[str, ...]:
    found = log.of_task(workload, target)
    best = log.best(workload, target)
    default = min((r.value for r in found if r.default and r.ok), default=float("inf"))
    gain = default / best.value if best is not None else float("inf")
    return (
        found[0].name,
        target,
        str(_trials(found)),
        str(sum(not r.ok for r in found)),
        seconds_text(default),
        seconds_text(best.value) if best is not None else "-",
        f"{gain:.2f}x" if gain < float("inf") else "-",
    )


def _trials(found: tuple[Record, ...]) -> int:
    return sum(r.stage.value == "trial" for r in found)


@records.command()
@click.argument("sources", nargs=-1, required=True, type=FILE)
@click.option(
    "-o", "--output", required=True, type=FILE, help="The log to add to; made if missing."
)
def merge(sources: tuple[str, ...], output: str) -> None:
    """Add to a log the records of SOURCES that it lacks."""
    from tilewright.records import merge as merge_logs

    report = merge_logs(sources, output)
    for path, problem in report.problems:
        click.echo(f"skipped {path} {problem}", err=True)
    click.echo(str(report))


@records.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The new log.")
def distill(file: str, output: str) -> None:
    """Write a new log with the winner of each task in FILE: what a build commits and replays."""
    from tilewright.records import distill as distill_log

    click.echo(str(distill_log(file, output)))


@records.command()
@click.argument("file", type=FILE)
def validate(file: str) -> int:
    """Check every line of FILE; the exit code is 1 if one is damaged."""
    from tilewright.records import validate as validate_log

    report = validate_log(file)
    for problem in report.problems:
        click.echo(f"skipped {problem}", err=True)
    for row_id, reason in report.unreadable_traces:
        click.echo(f"candidate {row_id}: {reason}", err=True)
    click.echo(str(report))
    return 0 if report.ok else 1

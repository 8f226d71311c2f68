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
@click.option("-o", "--output", required=True, type=FILE, help="The new log.")
def dedup(file: str, output: str) -> None:
    """Write a new log with one record for each candidate, stage and task of FILE."""
    from tilewright.records import dedup as dedup_log

    click.echo(str(dedup_log(file, output)))


@records.command()
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("--all", "everything", is_flag=True, help="Tasks with the same time too.")
@click.option(
    "--tolerance", type=click.FloatRange(0), default=2.0, show_default=True,
    help="Per cent up to which two times count as the same.",
)  # fmt: skip
@click.option(
    "--fail-if-worse", is_flag=True, help="Exit with 1 if a task got worse or is missing."
)
def diff(before: str, after: str, everything: bool, tolerance: float, fail_if_worse: bool) -> int:
    """Compare two logs: which tasks got better or worse, which are new or missing."""
    from rich.table import Table

    from tilewright.records import diff as diff_logs

    found = diff_logs(open_log(before), open_log(after), tolerance=tolerance / 100)
    table = Table("workload", "target", "before", "after", "speed-up", "verdict")
    for c in found:
        if everything or c.verdict != "same":
            gain = f"{c.speedup:.2f}x" if c.speedup else "-"
            add_row(table, c.name, c.target, _seconds(c.before), _seconds(c.after), gain, c.verdict)
    console().print(table)
    counts = {
        v: sum(c.verdict == v for c in found) for v in ("better", "worse", "same", "new", "missing")
    }
    click.echo(", ".join(f"{n} {v}" for v, n in counts.items()))
    return int(fail_if_worse and counts["worse"] + counts["missing"] > 0)


@records.command()
@click.argument("file", type=FILE)
def stats(file: str) -> None:
    """Show for each task of FILE its trials, failures by kind, best time, and time spent."""
    from rich.table import Table

    from tilewright.records import stats as stats_of

    table = Table(
        "workload",
        "target",
        "trials",
        "finals",
        "failures",
        "default",
        "best",
        "building",
        "running",
    )
    for t in stats_of(open_log(file)):
        failures = ", ".join(f"{n} {status}" for status, n in t.failures) or "-"
        add_row(table, t.name, t.target, t.n_trials, t.n_finals, failures, _seconds(t.default), _seconds(t.best),
                seconds_text(t.build_s), seconds_text(t.run_s))  # fmt: skip
    console().print(table)


@records.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="The new file, .csv or .parquet.")
def export(file: str, output: str) -> None:
    """Write FILE as a table, a row a record and a column a field or knob."""
    from tilewright.records import export as export_log

    click.echo(f"{output}: {export_log(open_log(file), output)} rows")


@records.command("import")
@click.argument("file", type=FILE)
@click.option(
    "-o", "--output", type=FILE, help="The new file, .csv or .parquet; else a table of bests."
)
def import_(file: str, output: str | None) -> None:
    """Read FILE, a log of AutoTVM or of TVM's auto-scheduler, as a table for analysis.

    Its schedules are those of another compiler: they cannot be replayed here.
    """
    from rich.table import Table

    from tilewright.records import read_foreign
    from tilewright.records.export import write_frame

    frame = read_foreign(file)
    for problem in frame.attrs["problems"]:
        click.echo(f"skipped {problem}", err=True)
    if output is not None:
        click.echo(f"{output}: {write_frame(frame, output)} rows")
        return
    table = Table("workload", "target", "trials", "failed", "best")
    for (_, target), rows in frame.groupby(["workload", "target"], sort=False):
        failed = int((rows["status"] != "OK").sum())
        add_row(
            table,
            rows["name"].iloc[0],
            target,
            len(rows),
            failed,
            seconds_text(rows["value"].min()),
        )
    console().print(table)


@records.command()
@click.argument("file", type=FILE)
def index(file: str) -> None:
    """Make the index of FILE, or bring it up to date; lookups in a large log use it."""
    from tilewright.records import LogIndex, index_path

    with LogIndex(file) as found:
        click.echo(
            f"{index_path(file)}: {len(found)} records of {len(found.tasks())} tasks, {found.n_problems} lines skipped"
        )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else seconds_text(seconds)


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

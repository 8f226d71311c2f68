"""``tilewright inspect``: what the machine code of kernels does in its innermost loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tilewright.cli.common import add_row, console, host, model_argument, subject

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.codegen.inspection import Inspection
    from tilewright.records import RecordStore
    from tilewright.schedule.task import Task
    from tilewright.schedule.trace import Trace

__all__ = ["inspect"]


@click.command()
@model_argument
@click.option("--records", type=click.Path(dir_okay=False), help="The log to take schedules from.")
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of a kernel; all cores by default."
)
@click.option("--assembly", is_flag=True, help="Print the assembly too.")
def inspect(
    model: str | None, op: str | None, shapes: tuple[tuple[str, tuple[int, ...]], ...],
    records: str | None, threads: int | None, assembly: bool,
) -> None:  # fmt: skip
    """Print what the innermost loops of MODEL's or an operator's kernels do: spills, loads, calls.

    Each kernel has its best schedule in the log, else a drafted one.
    """
    from tilewright.cli.records import open_log
    from tilewright.codegen.inspection import inspect_kernel
    from tilewright.opspec import OpSpec
    from tilewright.schedule.schedule import Schedule
    from tilewright.tuning import tasks_of

    what = subject(model, op)
    log, out = open_log(records) if records else None, console()
    given = what.workload if isinstance(what, OpSpec) else what
    for forms, _ in tasks_of(given, host(threads), dict(shapes)):
        for task in forms:
            source, trace = _schedule(task, log)
            schedule = Schedule(task)
            schedule.apply(trace)
            found = inspect_kernel(schedule.program, task.target)
            out.print(f"{task.name} on {task.target.fingerprint}: {source}", markup=False)
            _print(found, out)
            if assembly:
                click.echo(found.assembly)


def _schedule(task: Task, log: RecordStore | None) -> tuple[str, Trace]:
    from tilewright.codegen.build import default_trace
    from tilewright.schedule.sketch import drafts

    best = log.best(task.workload.key, task.target.fingerprint) if log is not None else None
    if best is not None:
        return "tuned", best.trace
    for trace in drafts(task, 1):
        return "draft", trace
    return "default", default_trace(task.workload, task.target)


def _print(found: Inspection, out: Console) -> None:
    from rich.table import Table

    table = Table(
        "innermost loop", "instructions", "multiply-adds", "loads", "broadcasts", "stores", "gathers", "spills",
        "reloads", "calls",
    )  # fmt: skip
    for loop in found.loops:
        add_row(
            table, f"{loop.function} {loop.label}", loop.instructions, loop.multiply_adds, loop.vector_loads,
            loop.broadcasts, loop.vector_stores, loop.gathers, loop.spills, loop.reloads, " ".join(loop.calls),
        )  # fmt: skip
    out.print(table)
    calls = f"; calls {', '.join(found.library_calls)}" if found.library_calls else ""
    out.print(f"{found.spills} spills in {len(found.loops)} innermost loops{calls}", markup=False)

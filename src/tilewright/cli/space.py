"""``tilewright space``: what the search can choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.common import add_row, console, host, seconds_text

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.schedule.space import Space

__all__ = ["space"]


@click.command()
@click.option(
    "--op", required=True, metavar="SPEC", help="An operator, such as matmul:512x512x512."
)
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of the target; all cores by default."
)
@click.option(
    "--sample", "n_rows", type=click.IntRange(0), default=8, show_default=True, help="Rows to show."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--program", is_flag=True, help="Print the program and trace of the sample's first row."
)
@click.option(
    "--default", "default_row", is_flag=True, help="Show the default schedule instead of a sample."
)
def space(
    op: str, threads: int | None, n_rows: int, seed: int, program: bool, default_row: bool
) -> None:
    """Print the schedule space of an operator: sketches, knobs, size, and a sample of its rows."""
    import numpy as np

    from tilewright.opspec import parse
    from tilewright.schedule.space import Space
    from tilewright.schedule.task import Task

    task = Task(parse(op).workload, host(threads))
    table, out = Space(task), console()
    out.print(f"{task.name} on {task.target.fingerprint}", markup=False)
    _print_sketches(table, out)
    if default_row:
        rows = table.default_row()
    else:
        rows = table.sample_rows(max(n_rows, 1), np.random.default_rng(seed))
    if n_rows:
        _print_rows(table, rows[: max(n_rows, 1)], out)
    if program:
        out.print(
            f"\n{table.program(rows[0])}\n\n{table.trace(rows[0])}", markup=False, soft_wrap=True
        )


def _print_sketches(table: Space, out: Console) -> None:
    from rich.table import Table

    columns = Table("sketch", "rule", "knob", "choices", "values")
    for n, sketch in enumerate(table.sketches):
        for k, column in enumerate(sketch.columns):
            values = " ".join(map(str, column.values))
            first = (str(n), sketch.name) if k == 0 else ("", "")
            add_row(columns, *first, column.knob.name, str(len(column.values)), values)
        if not sketch.columns:
            add_row(columns, str(n), sketch.name, "", "1", "no knobs")
        columns.add_section()
    out.print(columns)
    for name, reason in table.refused.items():
        out.print(f"refused: {name}: {reason}", markup=False)
    out.print(f"{len(table.sketches)} sketches, {table.size():,} rows before constraints")


def _print_rows(table: Space, rows: Any, out: Console) -> None:
    from rich.table import Table

    frame = table.to_frame(rows)
    predicted = table.analytic(rows)
    sample = Table(*map(str, frame.columns), "draft model")
    for row, seconds in zip(frame.astype(object).fillna("").itertuples(index=False), predicted):
        add_row(sample, *row, seconds_text(float(seconds)))
    out.print(sample)

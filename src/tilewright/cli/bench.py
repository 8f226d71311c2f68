"""``tilewright bench``: default, tuned and peers in one interleaved run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.common import (
    add_row,
    console,
    host,
    model_argument,
    seconds_text,
    subject,
    winograd_option,
)
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.racing import Result

__all__ = ["bench"]

TOLERANCE = 1e-4
"""Largest relative difference between float32 outputs that counts as agreement."""


@click.command()
@model_argument
@click.option("--records", type=click.Path(dir_okay=False), help="The log with tuned schedules.")
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of every contender; all cores by default."
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Samples of each contender.",
)
@winograd_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the inputs.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False),
    help="Write the figures to this file too.",
)
def bench(
    model: str | None,
    op: str | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    records: str | None,
    threads: int | None,
    runs: int,
    winograd: bool,
    seed: int,
    json_file: str | None,
) -> None:
    """Race the default and the tuned schedules of MODEL or an operator with ONNX Runtime and NumPy.

    Contenders are timed in turn in one process, on the same inputs and number of threads. The exit code is 1 if
    the outputs disagree.
    """
    from tilewright import benching
    from tilewright.cli.records import open_log
    from tilewright.racing import race

    what, target = subject(model, op), host(threads)
    log = open_log(records) if records else None
    with benching.one_library_thread_count(target.n_threads):
        if isinstance(what, str):
            contenders, note = benching.model_contenders(
                what, target, log, dict(shapes), seed, winograd=winograd
            )
        else:
            contenders, note = benching.operator_contenders(what, target, log, seed)
        reference = contenders[-1].name
        results = race(contenders, rounds=runs, reference=reference)
    _print(results, reference, note)
    if json_file:
        _write(
            Path(json_file),
            results,
            reference,
            op or str(model),
            target.n_threads,
            target.fingerprint,
        )
    wrong = [r.name for r in results if r.difference is not None and not r.difference <= TOLERANCE]
    if wrong:
        raise TilewrightError(
            f"bench: the outputs of {', '.join(wrong)} differ from {reference} by more than {TOLERANCE:g}"
        )


def _print(results: Sequence[Result], reference: str, note: str) -> None:
    from rich.table import Table

    base = results[0]
    table = Table(
        "", "median", "spread", f"speed against {base.name}", f"difference from {reference}"
    )
    for r in results:
        add_row(
            table,
            r.name,
            seconds_text(r.median_s),
            f"{r.spread:.1%}" if r.spread == r.spread else "-",
            f"{base.median_s / r.median_s:.2f}x",
            "-" if r.difference is None else f"{r.difference:.1e}",
        )
    out = console()
    out.print(table)
    if note:
        out.print(note, markup=False)


def _write(
    path: Path, results: Sequence[Result], reference: str, name: str, n_threads: int, target: str
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": r.name,
            "median_s": r.median_s,
            "spread": r.spread if r.spread == r.spread else None,
            "speed_against_default": results[0].median_s / r.median_s,
            "difference": r.difference,
            "seconds": list(r.seconds),
        }
        for r in results
    ]
    figures = {
        "subject": name,
        "target": target,
        "threads": n_threads,
        "reference": reference,
        "results": rows,
    }
    path.write_text(json.dumps(figures, indent=1) + "\n")

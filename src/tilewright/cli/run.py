"""``tilewright run``: one call of a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tilewright.cli.common import add_row, console, host, pair, seconds_text, shape
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.graph import CompiledModel

__all__ = ["run"]


@click.command()
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--input", "inputs", type=pair, metavar="NAME=FILE.npy", multiple=True,
    help="An input; those that are not given are random.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write the outputs to this .npz file."
)
@click.option(
    "--records", type=click.Path(dir_okay=False), help="The log to replay; for ONNX files."
)
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of a kernel; all cores by default."
)
@click.option(
    "--shape", "shapes", type=shape, metavar="NAME=DIMS", multiple=True,
    help="Shape of an open model input, such as x=1,3,48,192; for ONNX files.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
def run(
    model: str,
    inputs: tuple[tuple[str, str], ...],
    output: str | None,
    records: str | None,
    threads: int | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    seed: int,
) -> None:
    """Run MODEL, a file of `tilewright compile` or an ONNX model, once, and describe its outputs."""
    from tilewright.inputs import random_inputs

    compiled = _load(model, records, threads, shapes)
    feed = random_inputs(compiled, seed) | {name: _array(file) for name, file in inputs}
    compiled.run(feed)
    start = time.perf_counter()
    outputs = compiled.run(feed)
    spent = time.perf_counter() - start
    _describe(outputs)
    click.echo(f"one call takes {seconds_text(spent)}; `tilewright bench` measures properly")
    if output:
        np.savez(output, **outputs)  # type: ignore[arg-type]
        click.echo(f"outputs are in {output}")


def _load(
    model: str,
    records: str | None,
    threads: int | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
) -> CompiledModel:
    from tilewright.cli.records import open_log
    from tilewright.compiling import compile
    from tilewright.graph import CompiledModel

    if Path(model).suffix == ".onnx":
        log = open_log(records) if records else None
        return compile(model, shapes=dict(shapes), records=log, target=host(threads))
    if records or shapes:
        raise click.UsageError(
            "--records and --shape belong to ONNX models; a compiled model has them fixed"
        )
    return CompiledModel.load(model, n_threads=threads)


def _array(file: str) -> np.ndarray[Any, Any]:
    try:
        array = np.load(file, allow_pickle=False)
    except ValueError as error:
        raise TilewrightError(
            f"run(--input {file}): {error}; save an array with numpy.save"
        ) from None
    if not isinstance(array, np.ndarray):
        raise TilewrightError(
            f"run(--input {file}): several arrays in one file; save one with numpy.save"
        )
    return array


def _describe(outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    from rich.table import Table

    table = Table("output", "shape", "type", "least", "mean", "most")
    for name, array in outputs.items():
        numbers = (array.min(), array.mean(), array.max()) if array.size else ()
        dims = "x".join(map(str, array.shape))
        add_row(table, name, dims, str(array.dtype), *(f"{float(n):.6g}" for n in numbers))
    console().print(table)

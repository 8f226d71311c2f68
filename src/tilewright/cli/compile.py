"""``tilewright compile``: replay a log into a compiled model."""

from __future__ import annotations

import click

from tilewright.cli.common import host, shape

__all__ = ["compile_"]


@click.command("compile")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option("--records", type=click.Path(dir_okay=False), help="The log to replay.")
@click.option(
    "--require-tuned", is_flag=True, help="Fail if a kernel has no record for this machine."
)
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of a kernel; all cores by default."
)
@click.option(
    "--shape", "shapes", type=shape, metavar="NAME=DIMS", multiple=True,
    help="Shape of a model input that is open in the file, such as x=1,3,48,192.",
)  # fmt: skip
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="The compiled model."
)
def compile_(
    model: str,
    records: str | None,
    require_tuned: bool,
    threads: int | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    output: str,
) -> None:
    """Compile MODEL (ONNX) with the schedules of a log, and write the result."""
    from tilewright.cli.records import open_log
    from tilewright.compiling import compile

    log = open_log(records) if records else None
    compiled = compile(
        model, shapes=dict(shapes), records=log, target=host(threads), require_tuned=require_tuned
    )
    compiled.save(output)
    click.echo(f"{output}: {compiled.summary()}")

"""``tilewright compile``: replay a log into a compiled model."""

from __future__ import annotations

import click

from tilewright.cli.common import host, shape, winograd_option

__all__ = ["compile_"]


@click.command("compile")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option("--records", type=click.Path(dir_okay=False), help="The log to replay.")
@click.option(
    "--require-tuned", is_flag=True, help="Fail if a kernel has no record for this machine."
)
@click.option(
    "--transfer/--no-transfer",
    default=True,
    show_default=True,
    help="Let kernels without a record use that of a similar kernel, where it is legal and predicted to be fast.",
)
@winograd_option
@click.option("--verify", is_flag=True, help="Check each kernel against the reference evaluator.")
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
    transfer: bool,
    winograd: bool,
    verify: bool,
    threads: int | None,
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    output: str,
) -> None:
    """Compile MODEL (ONNX) with the schedules of a log, and write the result."""
    from tilewright.compiling import compile

    compiled = compile(
        model, shapes=dict(shapes), records=records, target=host(threads), require_tuned=require_tuned,
        transfer=transfer, winograd=winograd, verify=verify,
    )  # fmt: skip
    compiled.save(output)
    for name, origin in dict.fromkeys((c.name, c.origin) for c in compiled.plan.calls):
        if "(" in origin:  # a record that was not used, or one of another kernel that was
            click.echo(f"{name}: {origin}", err=True)
    checked = "; every kernel agrees with the reference" if verify else ""
    click.echo(f"{output}: {compiled.summary()}{checked}")

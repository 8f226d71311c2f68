"""The entry point: collects the commands and turns errors into one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

import tilewright
from tilewright.cli.bench import bench
from tilewright.cli.compile import compile_
from tilewright.cli.doctor import doctor
from tilewright.cli.inspect import inspect
from tilewright.cli.records import records
from tilewright.cli.run import run
from tilewright.cli.space import space
from tilewright.cli.tune import tune
from tilewright.errors import TilewrightError
from tilewright.settings import settings

__all__ = ["group", "invoke", "main"]

OK, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tilewright.__version__, prog_name="tilewright")
def group() -> None:
    """Search for fast programs of tensor operators, and compile models with what was found."""


for command in (tune, compile_, run, bench, records, space, inspect, doctor):
    group.add_command(command)


def invoke(args: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    0 is success, 1 an error (one line on stderr; a traceback too if ``TILEWRIGHT_DEBUG`` is set), 2 wrong
    usage, 130 an interrupt.
    """
    try:
        code = group.main(list(args), prog_name="tilewright", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.UsageError as error:
        error.show()
        return USAGE
    except (TilewrightError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        if _debugging():
            raise
        return ERROR
    return code if isinstance(code, int) else OK


def _debugging() -> bool:
    try:
        return settings().debug > 0
    except TilewrightError:
        return False


def main() -> None:
    """Run the command line of this process."""
    try:
        code = invoke(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        code = OK
    sys.exit(code)

"""What several commands share: options, the console, readable numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tilewright.codegen.target import Target
    from tilewright.opspec import OpSpec

__all__ = [
    "add_row", "console", "duration", "duration_text", "host", "model_argument", "pair", "seconds_text", "shape", "subject",
    "winograd_option",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def duration(text: str) -> float:
    """Read a length of time in seconds: 90, 90s, 10min or 1.5h.

    Examples
    --------
    >>> duration("10min")
    600.0
    """
    from tilewright.tuning import seconds_of

    try:
        return seconds_of(text)
    except TilewrightError as error:
        raise click.BadParameter(str(error)) from None


def pair(text: str) -> tuple[str, str]:
    """Read NAME=VALUE.

    Examples
    --------
    >>> pair("x=a.npy")
    ('x', 'a.npy')
    """
    name, equals, rest = text.rpartition("=")
    if not (name and equals and rest):
        raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
    return name, rest


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read NAME=1,3,48,192.

    Examples
    --------
    >>> shape("x=1,3,48,192")
    ('x', (1, 3, 48, 192))
    """
    name, rest = pair(text)
    parts = re.split(r"[,x]", rest)
    if not all(p.isdecimal() and int(p) for p in parts):
        raise click.BadParameter(f"{text!r}: a shape is positive whole numbers by commas")
    return name, tuple(map(int, parts))


def model_argument(f: F) -> F:
    """Add what names the thing to work on: MODEL or ``--op``, and ``--shape``."""
    f = click.option(
        "--shape",
        "shapes",
        type=shape,
        metavar="NAME=DIMS",
        multiple=True,
        help="Shape of a model input that is open in the file, such as x=1,3,48,192.",
    )(f)
    f = click.option("--op", metavar="SPEC", help="An operator, such as matmul:512x512x512.")(f)
    return click.argument("model", required=False, type=click.Path())(f)


def winograd_option(f: F) -> F:
    """Add the choice whether convolutions may be computed by Winograd's algorithms."""
    return click.option(
        "--winograd/--no-winograd",
        default=True,
        show_default=True,
        help="Let 3x3 convolutions be computed by Winograd's algorithms: up to 3 times as fast, up to 10 times the rounding error.",
    )(f)


def subject(model: str | None, op: str | None) -> str | OpSpec:
    """The model's path, or the operator's specification: exactly one is given."""
    from tilewright.opspec import parse

    if (model is None) == (op is None):
        raise click.UsageError("give either MODEL or --op SPEC")
    if op is not None:
        return parse(op)
    assert model is not None
    return model


def host(threads: int | None) -> Target:
    """This machine as a target."""
    from tilewright.codegen.target import Target
    from tilewright.settings import settings

    return Target.host(threads or settings().n_threads)


def console(*, stderr: bool = False) -> Console:
    """Where text goes; wide enough for tables when it is no terminal."""
    from rich.console import Console

    out = Console(stderr=stderr, highlight=False)
    return out if out.is_terminal else Console(stderr=stderr, highlight=False, width=160)


def add_row(table: Table, *cells: object) -> None:
    """Add a row of plain text, in which brackets are no markup."""
    from rich.text import Text

    table.add_row(*(Text(str(c)) for c in cells))


def seconds_text(seconds: float) -> str:
    """A duration in a unit that suits it.

    Examples
    --------
    >>> seconds_text(0.00123), seconds_text(2.5e-6), seconds_text(float("inf"))
    ('1.23 ms', '2.5 us', '-')
    """
    if not seconds < float("inf"):
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def duration_text(seconds: float) -> str:
    """Minutes and seconds.

    Examples
    --------
    >>> duration_text(75.2)
    '1:15'
    """
    if not 0 <= seconds < 360_000:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"

"""What the environment sets. Nothing else in Tilewright reads it.

=====================  =======================================================================
variable               meaning
=====================  =======================================================================
``TILEWRIGHT_DEBUG``   0 (default): results only; 1 progress and tracebacks; 2 candidates;
                       3 traces; 4 programs; 5 LLVM and assembly
``TILEWRIGHT_THREADS`` threads of a kernel, instead of all the cores this process may use
``TILEWRIGHT_PIN``     1 (default): each thread of a pool is bound to a core; 0: it is not
=====================  =======================================================================
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tilewright.errors import TilewrightError

__all__ = ["Settings", "available_cores", "settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of one reading of the environment.

    Parameters
    ----------
    debug : int
        0 to 5; each level also shows what the ones below it show.
    n_threads : int
        Threads that a kernel uses unless it is told otherwise.
    pin : bool
        Whether a thread pool binds its threads to cores.
    """

    debug: int
    n_threads: int
    pin: bool


def available_cores() -> int:
    """The number of cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def settings() -> Settings:
    """Read the environment.

    Raises
    ------
    TilewrightError
        If a variable does not hold a whole number in its range.
    """
    return Settings(
        debug=_integer("TILEWRIGHT_DEBUG", 0, 0, 5),
        n_threads=_integer("TILEWRIGHT_THREADS", available_cores(), 1, 1024),
        pin=bool(_integer("TILEWRIGHT_PIN", 1, 0, 1)),
    )


def _integer(name: str, default: int, least: int, most: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not least <= int(text) <= most:
        raise TilewrightError(
            f"{name}={text}: must be a whole number from {least} to {most}; unset it for {default}"
        )
    return int(text)

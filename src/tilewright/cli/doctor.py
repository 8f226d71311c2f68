"""``tilewright doctor``: what this machine is and what Tilewright can do on it."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import TYPE_CHECKING

import click

from tilewright.cli.common import add_row, console, host

if TYPE_CHECKING:
    from rich.table import Table

    from tilewright.codegen.target import Target

__all__ = ["doctor"]

NEEDED = ("numpy", "llvmlite", "xgboost", "scikit-learn", "pandas", "ray", "onnx", "click", "rich")
OPTIONAL = {
    "onnxruntime": "a peer of `bench` (extra: bench)",
    "matplotlib": "`tune --plot` (extra: bench)",
    "jupyterlab": "the notebooks (extra: notebooks)",
}


@click.command()
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of the target; all cores by default."
)
def doctor(threads: int | None) -> None:
    """Say what the target is, what it reaches at most, which pools work, which packages are there."""
    target = host(threads)
    out = console()
    out.print(_target(target))
    out.print(_speed(target))
    out.print(_packages(target.cpu))


def _two_columns(title: str) -> Table:
    from rich.table import Table

    return Table("", "", title=title, title_justify="left", show_header=False)


def _target(target: Target) -> Table:
    table = _two_columns("target")
    add_row(table, "fingerprint", target.fingerprint)
    add_row(table, "cpu", f"{target.cpu} ({target.triple})")
    add_row(table, "threads", str(target.n_threads))
    add_row(table, "vectors", f"{target.vector_bits} bits, {target.n_registers} registers")
    sizes = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    add_row(table, "caches L1, L2, L3", ", ".join(f"{n // 1024:,} KiB" for n in sizes))
    add_row(table, "assumed peak of a core", f"{target.peak_gflops:.0f} GFLOP/s")
    add_row(table, "assumed bandwidth", f"{target.bandwidth_gbs:.0f} GB/s")
    return table


def _speed(target: Target) -> Table:
    from tilewright.probing import probe

    table = _two_columns("measured now")
    for n in sorted({1, target.n_threads}):
        found = probe(target.vector_bits, n)
        cores = "1 thread" if n == 1 else f"{n} threads"
        add_row(
            table,
            f"FMA peak, {cores}",
            f"{found.peak_gflops:.1f} GFLOP/s (float32, generated kernel)",
        )
        add_row(
            table,
            f"copy, {cores}",
            f"{found.copy_gbs:.1f} GB/s (read + written, estimate by NumPy)",
        )
    return table


def _packages(cpu: str) -> Table:
    table = _two_columns("software")
    add_row(table, "python", f"{platform.python_version()} on {platform.platform()}")
    for name in ("tilewright", *NEEDED):
        add_row(table, name, _version(name) or "missing: reinstall tilewright")
    for name, use in OPTIONAL.items():
        add_row(table, name, _version(name) or f"not installed; for {use}")
    add_row(table, "pool local", "available (default)")
    ray = _version("ray")
    add_row(table, "pool ray", f"available; runners hold measure:{cpu}" if ray else "needs ray")
    return table


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

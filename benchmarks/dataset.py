"""Measure a data set over hundreds of workloads, for cost models that start with experience.

    python -m benchmarks.dataset --out build/dataset.jsonl.xz --minutes 30

Run it again and it goes on, until all workloads are measured. A line is one workload: its specification (see
`benchmarks.workloads`), the target, and for each candidate its sketch, knob values, status and seconds, from which
features can be derived again. While it measures, lines go to a plain file beside the compressed one.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from benchmarks.workloads import Spec, name_of, varied, workload
from numpy.typing import NDArray

import tilewright as tw
from tilewright.errors import RecordError
from tilewright.measure import MeasureInput, MeasureResult, Pool, Status
from tilewright.schedule.space import Rows, Space, unique_rows
from tilewright.tuner.moves import step

FORMAT = 1


@dataclass(frozen=True)
class Data:
    """What models learn from.

    Attributes
    ----------
    x, y, groups
        As `CostModel.fit` takes them; a group is a workload on a target.
    workloads : list of str
        The workload key of each group.
    kinds : list of str
        The kind of operator of each group.
    n_dropped : int
        Candidates that are no longer in their space.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    groups: NDArray[np.int64]
    workloads: list[str]
    kinds: list[str]
    n_dropped: int


def chosen(space: Space, n: int, rng: np.random.Generator) -> Rows:
    """Default, drafts, their neighbours, and as many random rows as all these together."""
    many = space.sample_rows(2048, rng)
    liked = many[np.argsort(space.analytic(many), kind="stable")[: n // 4]]
    near = step(space, np.concatenate([liked] * 4), rng, jump=0.0)
    near = near[space.valid(near)][: n // 4]
    rows = np.concatenate([space.default_row(), liked, near, space.sample_rows(n, rng)])
    return unique_rows(rows)[:n]


def entry(spec: Spec, target: tw.Target, pool: Pool, n: int, seed: int) -> dict[str, Any]:
    """Measure some candidates of one workload."""
    task = tw.Task(workload(spec), target)
    space = Space(task)
    rng = np.random.default_rng([seed, int(task.workload.key[:8], 16)])
    rows = chosen(space, n, rng)
    found = pool.measure([MeasureInput(k, task, space.trace(r)) for k, r in enumerate(rows)])
    return line_of(spec, space, rows, found)


def line_of(spec: Spec, space: Space, rows: Rows, found: list[MeasureResult]) -> dict[str, Any]:
    """A workload as JSON values."""
    used = sorted({int(r[0]) for r in rows})
    sketches = {k: space.sketches[k] for k in used}
    return {
        "format": FORMAT, "spec": spec, "target": space.task.target.to_json(),
        "sketches": [{"name": s.name, "knobs": [c.knob.name for c in s.columns]} for s in sketches.values()],
        "candidates": [
            [used.index(int(r[0])), list(space.knobs(r).values()), m.status.name, m.value if m.status is Status.OK else None]
            for r, m in zip(rows, found) if m.status is not Status.LOST
        ],
        "host": platform.node(), "time": round(time.time()), "package": tw.__version__,
    }  # fmt: skip


def rows_of(line: dict[str, Any], space: Space) -> tuple[Rows, NDArray[np.float64], int]:
    """The candidates of a line that are still in their space, their seconds, and how many are not."""
    ids = {s.name: k for k, s in enumerate(space.sketches)}
    rows, values, dropped = [], [], 0
    for number, knobs, status, seconds in line["candidates"]:
        sketch = line["sketches"][number]
        row = _row(space, ids.get(sketch["name"]), dict(zip(sketch["knobs"], knobs)))
        if row is None:
            dropped += 1
            continue
        rows.append(row)
        values.append(seconds if status == "OK" else np.inf)
    found = np.array(rows, dtype=np.int32).reshape(-1, 1 + space.n_columns)
    good = space.valid(found) if len(found) else np.ones(0, dtype=bool)
    return found[good], np.array(values)[good], dropped + int((~good).sum())


def _row(space: Space, sketch: int | None, knobs: dict[str, int]) -> Rows | None:
    if sketch is None:
        return None
    columns = space.sketches[sketch].columns
    if {c.knob.name for c in columns} != set(knobs):
        return None
    row = np.zeros(1 + space.n_columns, dtype=np.int32)
    row[0] = sketch
    for k, c in enumerate(columns):
        if knobs[c.knob.name] not in c.values:
            return None
        row[1 + k] = c.values.index(knobs[c.knob.name])
    return row


def data_of(lines: Iterable[dict[str, Any]]) -> Data:
    """Derive features and labels."""
    parts: list[tuple[NDArray[np.float32], NDArray[np.float64]]] = []
    workloads, kinds, dropped = [], [], 0
    for line in lines:
        space = Space(tw.Task(workload(line["spec"]), tw.Target.from_json(line["target"])))
        rows, seconds, missing = rows_of(line, space)
        dropped += missing
        if len(rows) and np.isfinite(seconds).any():
            parts.append((space.features(rows), seconds.min() / seconds))
            workloads.append(space.task.workload.key)
            kinds.append(line["spec"]["kind"])
    if not parts:
        raise RecordError("data_of: the data set has no candidate of this version's spaces")
    return Data(
        np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]),
        np.repeat(np.arange(len(parts)), [len(y) for _, y in parts]), workloads, kinds, dropped,
    )  # fmt: skip


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a data set, compressed or plain; a torn last line is left out."""
    opened = lzma.open(path, "rt") if path.suffix == ".xz" else open(path)
    with opened as file:
        for text in file:
            if not text.endswith("\n"):
                return
            line = json.loads(text)
            if line.get("format") != FORMAT:
                raise RecordError(f"{path}: format {line.get('format')!r}, this version reads {FORMAT}; measure it again")  # fmt: skip
            yield line


class Writer:
    """Appends lines to the plain file; `close` compresses all of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        source = self.part if self.part.exists() else path if path.exists() else None
        lines = list(read(source)) if source else []
        self.known = {(name_of(e["spec"]), e["target"]["n_threads"]) for e in lines}
        self._file = open(self.part, "w")
        for e in lines:
            self.write(e)

    def write(self, line: dict[str, Any]) -> None:
        """Add a workload; it is safe when this returns."""
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Compress, replace, remove the plain file."""
        self._file.close()
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_bytes(lzma.compress(self.part.read_bytes(), preset=9))
        fresh.replace(self.path)
        self.part.unlink()


def measure(
    specs: list[Spec], targets: list[tw.Target], out: Path, pool: Pool, *, candidates: int, seconds: float, seed: int
) -> int:  # fmt: skip
    """Measure workloads that the file lacks until time is up; the number of those still missing."""
    deadline = time.monotonic() + seconds
    writer = Writer(out)
    missing = [(s, t) for s in specs for t in targets if (name_of(s), t.n_threads) not in writer.known]  # fmt: skip
    try:
        for k, (spec, target) in enumerate(missing):
            if time.monotonic() >= deadline:
                return len(missing) - k
            writer.write(entry(spec, target, pool, candidates, seed))
            click.echo(f"\r{k + 1} of {len(missing)}: {name_of(spec)}\033[K", nl=False, err=True)
        return 0
    except KeyboardInterrupt:
        click.echo("\ninterrupted: the same command goes on from here", err=True)
        return 1
    finally:
        click.echo(err=True)
        writer.close()


@click.command()
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--workloads", default=440, show_default=True, type=click.IntRange(1))
@click.option("--candidates", default=32, show_default=True, type=click.IntRange(8))
@click.option("--minutes", default=60.0, show_default=True, help="Time budget of this run.")
@click.option("--threads", default="1", show_default=True, help="By commas.")
@click.option("--seed", default=0, show_default=True)
def main(out: Path, workloads: int, candidates: int, minutes: float, threads: str, seed: int) -> None:  # fmt: skip
    """Measure the data set, or go on with it."""
    if out.suffix != ".xz":
        raise click.UsageError("--out: name a .jsonl.xz file")
    targets = [tw.Target.host(int(n)) for n in threads.split(",")]
    with tw.LocalPool() as pool:
        left = measure(
            varied(workloads, seed), targets, out, pool, candidates=candidates, seconds=60 * minutes, seed=seed
        )  # fmt: skip
    n = sum(1 for _ in read(out))
    click.echo(f"{out}: {n} workloads, {out.stat().st_size / 1e6:.2f} MB, {left} missing")


if __name__ == "__main__":
    main()

"""How few trials a search needs: searcher x model x seed, live or on recorded tables.

    python -m benchmarks.search --ops 'matmul_128$' --searchers evolutionary,random --seeds 3 --json search.json
    python -m benchmarks.search --tables 'build/tables/*.npz' --models xgboost,forest --plot search.png

The best speed known of an operator is that of all runs together (and of the whole table, where one is replayed).
`trials_to_90` is the trial after which a run has a candidate of 90 % of it. On tables `seconds` is what the search
itself takes; live it includes the measuring.
"""

from __future__ import annotations

import glob
import itertools
import json
import math
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from benchmarks.suite import suite
from benchmarks.tables import opened, tasks_named
from numpy.typing import NDArray

import tilewright as tw
from tilewright.cli.choices import MODELS, SEARCHERS, model_named, searcher_named
from tilewright.measure import Pool, ReplayPool, Table
from tilewright.records import RecordStore, Stage
from tilewright.schedule.space import Space
from tilewright.tuner import Study


@dataclass(frozen=True)
class Case:
    """What is searched: kernels with weights, and the parts of their spaces that can be measured."""

    op: str
    threads: int
    tasks: tuple[tuple[tw.Task, float], ...]
    spaces: dict[str, Space]
    tables: tuple[Table, ...] = ()
    synthetic: bool = False


def live_cases(pattern: str, threads: int) -> Iterator[Case]:
    """Operators of the suite."""
    target = tw.Target.host(threads)
    for spec in suite():
        if re.search(pattern, spec["name"]) and (pattern != "." or spec["metric"] == "gflops"):
            yield Case(spec["name"], threads, tuple(tasks_named(spec["name"], target)), {})


def recorded_cases(patterns: Sequence[str]) -> Iterator[Case]:
    """Recorded tables, one case each."""
    for path in sorted(p for pattern in patterns for p in glob.glob(pattern)):
        table = Table.load(path)
        task, weight, space = opened(table)
        name = f"{table.about['op']}.k{table.about['kernel']}"
        made_up = bool(table.about["synthetic"])
        yield Case(
            name, task.target.n_threads, ((task, weight),), {task.key: space}, (table,), made_up
        )


def curve_of(case: Case, store: RecordStore, trials: int) -> NDArray[np.float64]:
    """Best-so-far seconds of all kernels after each trial; infinite until every kernel has one."""
    weights = {t.workload.key: w for t, w in case.tasks}
    best = dict.fromkeys(weights, math.inf)
    out = np.full(trials, math.inf)
    for r in sorted((r for r in store if r.stage is Stage.TRIAL), key=lambda r: r.trial):
        best[r.workload] = min(best[r.workload], r.value)
        out[r.trial :] = sum(w * best[k] for k, w in weights.items())
    return out


def run(
    case: Case, searcher: str, model: str, *, seed: int, trials: int, batch: int, pool: Pool | None
) -> dict[str, Any]:
    """One study; its row still lacks what needs the other runs."""
    workers = pool if pool is not None else ReplayPool(case.tables)
    total = trials * len(case.tasks)
    with tempfile.TemporaryDirectory() as folder:
        store = RecordStore(Path(folder) / "log.jsonl", fsync_s=math.inf)
        start = time.perf_counter()
        Study(
            case.tasks, store, workers, search=searcher_named(searcher, seed), model=model_named(model, seed),
            seed=seed, batch=batch, space_of=lambda t: case.spaces.get(t.key) or Space(t),
        ).run(total)  # fmt: skip
        seconds = time.perf_counter() - start
        curve = curve_of(case, store, total)
        done = sum(r.stage is Stage.TRIAL for r in store)
    return {
        "op": case.op, "threads": case.threads, "seed": seed, "searcher": searcher, "model": model,
        "trials": done, "seconds": seconds, "best_s": float(curve[-1]), "curve": curve.tolist(),
        "synthetic": case.synthetic,
    }  # fmt: skip


def trials_to(curve: Sequence[float], best_s: float, share: float) -> int | None:
    """The first trial (from 1) with that share of the best speed; None if it never comes."""
    reached = np.flatnonzero(np.asarray(curve) * share <= best_s * (1 + 1e-12))
    return int(reached[0]) + 1 if len(reached) else None


def complete(rows: list[dict[str, Any]], cases: Sequence[Case]) -> None:
    """Add what depends on all runs: the best known, and the trials to near it."""
    best: dict[tuple[str, int], float] = {}
    for c in cases:
        if c.tables:
            best[c.op, c.threads] = c.tasks[0][1] * c.tables[0].best_s
    for row in rows:
        key = row["op"], row["threads"]
        best[key] = min(best.get(key, math.inf), row["best_s"])
    for row in rows:
        known = best[row["op"], row["threads"]]
        row["known_s"] = known
        for share in (90, 95):
            row[f"trials_to_{share}"] = trials_to(row["curve"], known, share / 100)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown: one line for each searcher and model."""
    out = [
        "| searcher | model | runs | share of best | after 64 | to 90 % | to 95 % | never 95 % | search s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in dict.fromkeys((r["searcher"], r["model"]) for r in rows):
        own = [r for r in rows if (r["searcher"], r["model"]) == pair]
        share = statistics.fmean(r["known_s"] / r["best_s"] for r in own)
        early = statistics.fmean(r["known_s"] / r["curve"][min(63, len(r["curve"]) - 1)] for r in own)  # fmt: skip
        reach = [_median([r[f"trials_to_{s}"] for r in own]) for s in (90, 95)]
        never = sum(r["trials_to_95"] is None for r in own)
        seconds = statistics.fmean(r["seconds"] for r in own)
        out.append(
            f"| {pair[0]} | {pair[1]} | {len(own)} | {share:.3f} | {early:.3f} | {reach[0]} | {reach[1]} | {never} | {seconds:.1f} |"
        )
    return out


def _median(values: list[int | None]) -> str:
    """Median, where what is never reached counts as infinity."""
    found = sorted(math.inf if v is None else v for v in values)[len(values) // 2]
    return f"{found:.0f}" if math.isfinite(found) else "-"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Best-so-far share of the best known speed: median and quartiles over operators and seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 5))
    for pair in dict.fromkeys((r["searcher"], r["model"]) for r in rows):
        own = [r for r in rows if (r["searcher"], r["model"]) == pair]
        length = min(len(r["curve"]) for r in own)
        shares = np.array([r["known_s"] / np.array(r["curve"][:length]) for r in own])
        low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75], axis=0)
        trial = np.arange(1, length + 1)
        (drawn,) = ax.step(trial, middle, where="post", label=" + ".join(pair))
        ax.fill_between(trial, low, high, step="post", alpha=0.15, color=drawn.get_color())
    made_up = " (synthetic tables)" if any(r["synthetic"] for r in rows) else ""
    ax.set(xlabel="trials", ylabel=f"share of the best speed known{made_up}", ylim=(0, 1.02))
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def _names(text: str, known: Sequence[str]) -> list[str]:
    found = text.split(",")
    if strange := [n for n in found if n not in known]:
        raise click.BadParameter(f"{', '.join(strange)}: choose from {', '.join(known)}")
    return found


@click.command()
@click.option("--ops", default=".", metavar="REGEX", help="Suite operators; by default what arithmetic bounds.")  # fmt: skip
@click.option("--tables", multiple=True, metavar="GLOB", help="Replay recorded tables instead.")
@click.option("--searchers", default="evolutionary,random", show_default=True, help=", ".join(SEARCHERS))  # fmt: skip
@click.option("--models", default="xgboost", show_default=True, help=", ".join(MODELS))
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1))
@click.option("--trials", default=128, show_default=True, type=click.IntRange(8), help="Of each kernel.")  # fmt: skip
@click.option("--batch", default=8, show_default=True, type=click.IntRange(1))
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--plot", "picture", type=click.Path(dir_okay=False, path_type=Path))
def main(
    ops: str, tables: tuple[str, ...], searchers: str, models: str, seeds: int, trials: int, batch: int, threads: int,
    out: Path | None, picture: Path | None,
) -> None:  # fmt: skip
    """Compare searchers and models."""
    cases = list(recorded_cases(tables) if tables else live_cases(ops, threads))
    if not cases:
        raise click.UsageError("nothing to search: no operator or table has such a name")
    pairs = list(itertools.product(_names(searchers, SEARCHERS), _names(models, MODELS)))
    rows: list[dict[str, Any]] = []
    pool = None if tables else tw.LocalPool()
    try:
        for case, seed in itertools.product(cases, range(seeds)):
            for searcher, model in pairs:  # side by side, so that drift of the machine hits all
                rows.append(run(case, searcher, model, seed=seed, trials=trials, batch=batch, pool=pool))  # fmt: skip
                last = rows[-1]
                click.echo(f"{case.op} seed {seed} {searcher} {model}: {last['best_s'] * 1e6:.2f} us, {last['seconds']:.1f} s", err=True)  # fmt: skip
    finally:
        if pool is not None:
            pool.close()
    complete(rows, cases)
    if any(c.synthetic for c in cases):
        click.echo("SYNTHETIC tables: these figures say nothing about real kernels")
    click.echo("\n".join(summary(rows)))
    if picture is not None:
        plot(rows, picture)
    if out is not None:
        hidden = {"curve", "known_s", "synthetic"}
        slim = [{k: v for k, v in r.items() if k not in hidden} for r in rows]
        out.write_text(json.dumps(slim, indent=1))


if __name__ == "__main__":
    main()

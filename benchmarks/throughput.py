"""Candidates a second on one core (sampling, checking, features, scores by XGBoost), and trials a second of pools.

    python benchmarks/throughput.py [--rows 16384] [--pools local,ray] [--trials 48] [--json FILE]

The figure of a sketch is rows over the median wall time of all four stages together. That of a pool is trials over
the wall time in which it builds, checks and times random candidates, its start not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tilewright.codegen.target import Target
from tilewright.costmodel import XGBRanker
from tilewright.measure import LocalPool, MeasureInput, Pool, RayPool
from tilewright.opspec import parse
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task

OPERATORS = ("matmul:512x512x512", "conv2d:1x64x56x56,64x64x3x3,s=1,p=1")
STAGES = ("sample", "check", "features", "score")


def rates(
    space: Space, sketch: int, model: XGBRanker, n: int, repeats: int = 7
) -> dict[str, float]:
    """Median seconds of each stage for about n rows of one sketch."""
    rng = np.random.default_rng(0)
    limits = space.cardinality[sketch]
    spent: dict[str, list[float]] = {s: [] for s in STAGES}
    for _ in range(repeats):
        t0 = time.perf_counter()
        rows = np.zeros((n, 1 + space.n_columns), np.int32)
        rows[:, 0] = sketch
        rows[:, 1:] = rng.integers(0, limits, size=(n, space.n_columns))
        t1 = time.perf_counter()
        valid = rows[space.valid(rows)]
        t2 = time.perf_counter()
        features = space.features(np.resize(valid, rows.shape))
        t3 = time.perf_counter()
        model.predict(features)
        t4 = time.perf_counter()
        for stage, seconds in zip(STAGES, (t1 - t0, t2 - t1, t3 - t2, t4 - t3)):
            spent[stage].append(seconds)
    return {s: float(np.median(v)) for s, v in spent.items()}


def trial_rate(pool: Pool, n: int) -> float:
    """Trials a second of a pool that has plenty to do."""
    space = Space(Task(parse(OPERATORS[0]).workload, Target.host(1)))
    rows = space.sample_rows(n + 4, np.random.default_rng(2))
    inputs = [MeasureInput(k, space.task, space.trace(r)) for k, r in enumerate(rows)]
    pool.measure(inputs[:4])  # starts the workers
    start = time.perf_counter()
    pool.measure(inputs[4:])
    return len(inputs[4:]) / (time.perf_counter() - start)


def trial_rates(names: list[str], n: int) -> dict[str, float]:
    """Trials a second by the name of the pool."""
    found = {}
    for name in names:
        with LocalPool() if name == "local" else RayPool() as pool:
            found[name] = trial_rate(pool, n)
        print(f"{found[name]:>12,.1f} trials/s      {name} pool, {n} trials of {OPERATORS[0]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--pools", default="local", help="by commas: local, ray")
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    pools = [p for p in args.pools.split(",") if p]
    if strange := sorted(set(pools) - {"local", "ray"}):
        parser.error(f"no pool {', '.join(strange)}; choose local, ray")
    trials = trial_rates(pools, args.trials)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    found: dict[str, float] = {}
    shares: dict[str, dict[str, float]] = {}
    for text in OPERATORS:
        space = Space(Task(parse(text).workload, Target.host(1)))
        rows = space.sample_rows(2000, np.random.default_rng(1))
        seconds = space.analytic(rows)
        model = XGBRanker().fit(
            space.features(rows), seconds.min() / seconds, np.zeros(len(rows), np.int64)
        )
        largest = int(np.argmax([s.size for s in space.sketches]))
        spent = rates(space, largest, model, args.rows)
        name = f"{text} {space.sketches[largest].name}"
        found[name] = args.rows / sum(spent.values())
        shares[name] = {s: spent[s] / sum(spent.values()) for s in STAGES}
        split = ", ".join(f"{s} {share:.0%}" for s, share in shares[name].items())
        print(f"{found[name]:>12,.0f} candidates/s  {name}\n              {split}")
    if args.json:
        result = {"candidates_per_s": found, "trials_per_s": trials, "shares": shares}
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

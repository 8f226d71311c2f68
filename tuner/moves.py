"""Steps through a space, for whole matrices of rows."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.space import Rows, Space
from tilewright.tuner.searcher import SMALL_SPACE, Score, Seen, distinct

__all__ = ["candidates", "line", "ranked", "step"]


def step(space: Space, rows: Rows, rng: np.random.Generator, *, jump: float = 0.05) -> Rows:
    """Move each row in one knob, mostly to a near value; some rows jump anywhere.

    The result may break constraints: `space.valid` tells. Rows without knobs stay.
    """
    out = rows.copy()
    limits = space.cardinality[out[:, 0]]
    if not space.n_columns:
        return out
    lots = np.where(limits > 1, rng.random(limits.shape), -1.0)
    column = lots.argmax(axis=1)
    index = np.arange(len(out))
    limit, value = limits[index, column], out[index, 1 + column]
    near = value + rng.choice([-2, -1, 1, 2], size=len(out))
    near = np.where((near < 0) | (near >= limit), 2 * value - near, near)  # reflect at the ends
    far = (rng.random(len(out)) * limit).astype(np.int32)
    moved = np.where(rng.random(len(out)) < 0.75, np.clip(near, 0, limit - 1), far)
    out[index, 1 + column] = moved
    jumping = np.flatnonzero(rng.random(len(out)) < jump)
    if len(jumping):
        fresh = space.sample_rows(len(jumping), rng)
        out[jumping[: len(fresh)]] = fresh
    return out


def line(space: Space, row: Rows, distance: int) -> Rows:
    """The valid rows that differ from one in a single knob, by that many positions."""
    limits = space.cardinality[int(row[0])]
    found = []
    for column, limit in enumerate(limits):
        for value in (row[1 + column] - distance, row[1 + column] + distance):
            if 0 <= value < limit:
                other = row.copy()
                other[1 + column] = value
                found.append(other)
    rows = np.array(found, dtype=np.int32).reshape(-1, len(row))
    return rows[space.valid(rows)] if len(rows) else rows


def candidates(
    seen: Seen, n: int, rng: np.random.Generator, *, exhaustive: int = SMALL_SPACE
) -> Rows:
    """Unknown rows to choose from: all of a small space, else draws and neighbours of the best."""
    space = seen.space
    rows = space.enumerate_rows(exhaustive)
    if rows is None:
        rows = space.sample_rows(n, rng)
        best = seen.best(16)
        if len(best):
            near = step(space, np.repeat(best, -(-n // len(best) // 2), axis=0), rng, jump=0.0)
            near = np.concatenate([near, step(space, near, rng, jump=0.0)])
            rows = distinct(np.concatenate([near[space.valid(near)], rows]))
    return rows[seen.unknown(rows)]


def ranked(rows: Rows, score: Score, limit: int = 512) -> Rows:
    """The best rows by score, best first."""
    return rows[np.argsort(-score(rows), kind="stable")[:limit]] if len(rows) else rows

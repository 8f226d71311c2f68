"""Which rows of a ranked list are measured together: good ones, no twins, and some that teach."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.space import Rows
from tilewright.tuner.guide import features_of, uncertainty_of
from tilewright.tuner.searcher import Score

__all__ = ["batch_of", "diverse"]


def diverse(rows: Rows, n: int, features: NDArray[Any] | None = None) -> NDArray[np.intp]:
    """Positions of n rows of a ranked list.

    Neighbours (one knob apart), and rows that the model cannot tell apart (equal features), are
    taken only when nothing else is left.
    """
    looks = rows if features is None else features
    kinds = np.unique(looks, axis=0, return_inverse=True)[1].reshape(-1)
    chosen: list[int] = []
    taken: set[int] = set()
    for gap, twins in ((2, False), (1, False), (1, True)):
        for k in range(len(rows)):
            if len(chosen) >= n:
                break
            if k in taken:
                continue
            if chosen:
                if not twins and (kinds[chosen] == kinds[k]).any():
                    continue
                if (rows[chosen] != rows[k]).sum(axis=1).min() < gap:
                    continue
            chosen.append(k)
            taken.add(k)
    return np.array(chosen, dtype=np.intp)


def batch_of(ranked: Rows, n: int, score: Score | None, *, uncertain_share: float = 0.0) -> Rows:
    """From rows in order of score: n diverse ones, a share of them where the model is least sure.

    The uncertain ones come from the better half of the list, last in the batch; there are none
    where a model does not know its uncertainty.
    """
    spread = uncertainty_of(score, ranked) if uncertain_share > 0 else np.zeros(len(ranked))
    n_unsure = max(1, round(n * uncertain_share)) if n >= 4 and spread.any() else 0
    first = ranked[diverse(ranked, n - n_unsure, features_of(score, ranked))]
    if not n_unsure:
        return first
    known = {r.tobytes() for r in first}
    better = [k for k in range((len(ranked) + 1) // 2) if ranked[k].tobytes() not in known]
    order = sorted(better, key=lambda k: (-spread[k], k))
    rest = ranked[order]
    unsure = rest[diverse(rest, n_unsure, features_of(score, rest))] if len(rest) else rest
    return np.concatenate([first, unsure])

"""How well a model ranks: the figures that the field reports, all within groups (tasks)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["kendall_tau", "pairwise_accuracy", "peak_at_k", "report"]

Vector = NDArray[Any]


def _groups(groups: Vector) -> Iterator[NDArray[np.intp]]:
    for g in np.unique(groups):
        index = np.flatnonzero(groups == g)
        if len(index) > 1:
            yield index


def pairwise_accuracy(score: Vector, y: Vector, groups: Vector) -> float:
    """Share of pairs with different truth that the scores order rightly; ties in score count half."""
    right = total = 0.0
    for i in _groups(groups):
        a, b = (
            np.sign(np.subtract.outer(score[i], score[i])),
            np.sign(np.subtract.outer(y[i], y[i])),
        )
        upper = np.triu(b != 0, 1)
        total += upper.sum()
        right += ((a == b) & upper).sum() + 0.5 * ((a == 0) & upper).sum()
    return float(right / total) if total else float("nan")


def peak_at_k(score: Vector, y: Vector, groups: Vector, k: int) -> float:
    """Mean over groups of (best truth among the k best scores) / (best truth)."""
    found = [
        y[i][np.argsort(-score[i], kind="stable")[:k]].max() / y[i].max()
        for i in _groups(groups)
        if y[i].max() > 0
    ]
    return float(np.mean(found)) if found else float("nan")


def kendall_tau(score: Vector, y: Vector, groups: Vector) -> float:
    """Mean over groups of Kendall's rank correlation (tau-a)."""
    out = []
    for i in _groups(groups):
        a, b = (
            np.sign(np.subtract.outer(score[i], score[i])),
            np.sign(np.subtract.outer(y[i], y[i])),
        )
        n = len(i)
        out.append(float((a * b).sum() / (n * (n - 1))))
    return float(np.mean(out)) if out else float("nan")


def report(score: Vector, y: Vector, groups: Vector) -> dict[str, float]:
    """The four figures that are published: pairwise, peak1, peak5, kendall."""
    return {
        "pairwise": pairwise_accuracy(score, y, groups),
        "peak1": peak_at_k(score, y, groups, 1),
        "peak5": peak_at_k(score, y, groups, 5),
        "kendall": kendall_tau(score, y, groups),
    }

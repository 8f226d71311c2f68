"""Drawing: each `plot_x(study)` draws what `x_info(study)` tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.costmodel.metrics import report
from tilewright.costmodel.model import CostModel
from tilewright.costmodel.pretrained import default_model
from tilewright.tuner.info import allocation_info, curve_info, ranking_info, trials_info
from tilewright.tuner.study import Study

__all__ = ["plot_allocation", "plot_curve", "plot_ranking", "plot_trials"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 4))[1]


def plot_curve(study: Study, ax: Any = None) -> Any:
    """Draw the best-so-far curve of a study; returns the matplotlib axes."""
    info, ax = curve_info(study), _axes(ax)
    ax.step(info["trial"], info["model_s"] * 1e3, where="post", linewidth=2)
    ax.set_xlabel("trials")
    ax.set_ylabel("sum of the best kernels, ms")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    return ax


def plot_trials(study: Study, ax: Any = None) -> Any:
    """Draw every trial as a share of the best speed of its task; failures are crosses at zero."""
    info, ax = trials_info(study), _axes(ax)
    for task, own in info.groupby("task", sort=False):
        good = own[own["status"] == "OK"]
        (line,) = ax.step(own["trial"], own["best_share"], where="post", label=str(task))
        ax.scatter(good["trial"], good["share"], s=12, alpha=0.5, color=line.get_color())
    failed = info[info["status"] != "OK"]
    ax.scatter(failed["trial"], failed["share"], s=24, marker="x", color="black", label="failed")
    ax.set(xlabel="trial", ylabel="share of the best speed", ylim=(-0.03, 1.03))
    ax.grid(alpha=0.3)
    if info["task"].nunique() <= 8:
        ax.legend(fontsize="small")
    return ax


def plot_allocation(study: Study, ax: Any = None) -> Any:
    """Draw each task's time by default, now and at its bound; the labels count its trials."""
    info, ax = allocation_info(study).sort_values("best_s"), _axes(ax)
    place = np.arange(len(info))
    ax.barh(place, info["default_s"] * 1e3, color="lightgray", label="default")
    ax.barh(place, info["best_s"] * 1e3, label="best")
    ax.barh(place, info["bound_s"] * 1e3, color="black", height=0.2, label="bound")
    ax.set_yticks(place, [f"{t} ({n})" for t, n in zip(info["task"], info["trials"])])
    ax.set(xlabel="ms of one run of the model", xscale="log")
    ax.legend(fontsize="small")
    return ax


def plot_ranking(
    study: Study, ax: Any = None, *, make: Callable[[], CostModel] = default_model
) -> Any:
    """Draw measured speed over the scores of a model that saw only the first half of the trials."""
    info, ax = ranking_info(study, make), _axes(ax)
    for task, own in info.groupby("task", sort=False):
        ax.scatter(own["score"], own["share"], s=14, alpha=0.7, label=str(task))
    groups = info["task"].astype("category").cat.codes.to_numpy()
    figures = report(info["score"].to_numpy(float), info["share"].to_numpy(float), groups)
    ax.set_title(", ".join(f"{k} {v:.2f}" for k, v in figures.items()))
    ax.set(xlabel="score", ylabel="measured, share of the best speed")
    ax.grid(alpha=0.3)
    return ax

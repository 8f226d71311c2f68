"""Drawing: each function takes data that an `_info` method gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_curve"]


def plot_curve(info: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the best-so-far curve of a study.

    Parameters
    ----------
    info : DataFrame
        From `Study.curve_info`.
    ax : matplotlib Axes, optional

    Returns
    -------
    The axes.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4))
    ax.step(info["trial"], info["model_s"] * 1e3, where="post", linewidth=2)
    ax.set_xlabel("trials")
    ax.set_ylabel("sum of the best kernels, ms")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    return ax

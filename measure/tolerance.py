"""How far a kernel's output may lie from the reference."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilewright.tensor.dtype import DType
from tilewright.tensor.workload import Workload

__all__ = ["compare", "tolerance"]

NEAR_EDGES = 0.02  # share of rounded numbers that may go the other way
_EPS = {
    DType.FLOAT64: 2.0**-52,
    DType.FLOAT32: 2.0**-23,
    DType.FLOAT16: 2.0**-10,
    DType.BFLOAT16: 2.0**-7,
}


def tolerance(workload: Workload) -> float:
    """Relative tolerance of a workload's float outputs: 16 eps * sqrt(longest reduction).

    Rounding errors of a sum in any order grow like the square root of its length (Higham,
    Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    length, eps = 1, 0.0
    for stage in workload.stages:
        n = 1
        for _, extent in stage.reduce_axes:
            n *= extent
        length = max(length, n)
        eps = max(eps, _EPS.get(stage.dtype, 0.0))
    return 16 * eps * math.sqrt(length)


def compare(
    found: NDArray[Any], expected: NDArray[Any], rtol: float, *, exact: bool = True
) -> str | None:
    """None if the arrays agree, else where and by how much they differ.

    Integers that are not `exact` (see `exact_outputs`) may lie one apart, at one place in fifty.
    """
    if expected.dtype == np.bool_:  # NumPy takes every byte but 0 for True
        found, expected = found.view(np.uint8), expected.view(np.uint8)
    if not np.issubdtype(expected.dtype, np.floating):
        bad = found != expected
        if not exact and bad.mean() <= NEAR_EDGES:
            bad = np.abs(found.astype(np.int64) - expected.astype(np.int64)) > 1
        if not bad.any():
            return None
        where = np.unravel_index(int(np.argmax(bad)), bad.shape)
        at = [int(i) for i in where]
        return f"{int(bad.sum())} of {bad.size} elements differ, first at {at}: {found[where]} instead of {expected[where]}"
    wide = found.astype(np.float64)
    with np.errstate(over="ignore"):  # what the output's type cannot hold is infinite there
        overflows = np.isinf(expected.astype(found.dtype).astype(np.float64))
    stored = np.where(overflows, np.copysign(np.inf, expected), expected)
    finite = stored[np.isfinite(stored)]
    largest = float(np.max(np.abs(finite), initial=0.0))
    scale = largest * np.sqrt(np.mean(np.square(finite / largest))) if largest > 0 else 0.0
    limits: Any = ml_dtypes.finfo  # it knows bfloat16 too, and has no types
    least = float(limits(found.dtype).smallest_normal)  # below it, digits are lost
    with np.errstate(invalid="ignore"):
        close = np.abs(wide - expected) <= rtol * (np.abs(expected) + scale) + least
        bad = ~(
            (close & np.isfinite(expected))  # infinity is not close to everything
            | (wide == stored)
            | (np.isnan(wide) & np.isnan(expected))
        )
    if not bad.any():
        return None
    where = np.unravel_index(int(np.argmax(bad)), bad.shape)
    at = [int(i) for i in where]
    with np.errstate(invalid="ignore"):
        worst = float(np.max(np.abs(wide - stored)[bad]))
    return (
        f"{int(bad.sum())} of {bad.size} elements are off by more than {rtol:.1e} (by up to {worst:.2g}), "
        f"first at {at}: {wide[where]:.7g} instead of {stored[where]:.7g}"
    )

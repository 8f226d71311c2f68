"""Plain NumPy versions of windowed operators, and a runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tilewright.tensor import Workload, te
from tilewright.tensor.evaluate import evaluate

Array = NDArray[Any]


def run(out: te.Compute, *arrays: Array) -> Array:
    """The operator's value in float64, from arrays in the order of the operands' use."""
    return evaluate(Workload.of(out), arrays, precision="double")[0]


def tensors(*arrays: Array) -> list[te.Placeholder]:
    """One placeholder an array."""
    return [te.placeholder(a.shape, a.dtype.name, name=f"x{n}") for n, a in enumerate(arrays)]


def windows(
    x: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Array:
    """All windows: (n, c, *places, *kernel)."""
    axes = tuple(range(2, x.ndim))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    view = sliding_window_view(x, reach, axis=axes)
    places = tuple(slice(None, None, s) for s in stride)
    steps = tuple(slice(None, None, d) for d in dilation)
    return np.asarray(view[(slice(None), slice(None), *places, *steps)])


def conv(
    x: Array,
    w: Array,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Array:
    """Convolution group by group."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *padding])
    dims = x.ndim - 2
    found = windows(x, w.shape[2:], stride, dilation)
    parts = []
    for part, weights in zip(np.split(found, groups, axis=1), np.split(w, groups, axis=0)):
        axes = [1, *range(2 + dims, 2 + 2 * dims)]
        parts.append(
            np.moveaxis(np.tensordot(part, weights, (axes, list(range(1, w.ndim)))), -1, 1)
        )
    return np.concatenate(parts, axis=1)

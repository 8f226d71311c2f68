"""The data on which candidates are run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor.expr import Expr, Read, walk
from tilewright.tensor.te import Placeholder
from tilewright.tensor.workload import Workload

__all__ = ["make_inputs"]


def make_inputs(workload: Workload) -> list[NDArray[Any]]:
    """Seeded by the workload's key: floats normal with deviation 0.5, bytes of any value, other integers small.

    Integers that index a tensor stay inside the dimension they index.
    """
    rng = np.random.default_rng(int(workload.key[:12], 16))
    limits = _index_limits(workload)
    out: list[NDArray[Any]] = []
    for p in workload.inputs:
        if p.dtype.is_float:
            out.append((rng.standard_normal(p.shape) * 0.5).astype(p.dtype.numpy))
        elif p.dtype.is_int and p.dtype.n_bytes == 1 and p not in limits:
            out.append(rng.integers(0, 256, p.shape).astype(np.uint8).view(p.dtype.numpy))
        elif p.dtype.is_int:
            out.append(rng.integers(0, limits.get(p, 8), p.shape).astype(p.dtype.numpy))
        else:
            out.append(rng.integers(0, 2, p.shape).astype(p.dtype.numpy))
    return out


def _index_limits(workload: Workload) -> dict[Placeholder, int]:
    limits: dict[Placeholder, int] = {}
    for stage in workload.stages:
        for node in walk(stage.body):
            if isinstance(node, Read):
                for index, size in zip(node.indices, node.tensor.shape):
                    for p in _reads(index):
                        limits[p] = min(limits.get(p, size), size)
    return limits


def _reads(e: Expr) -> list[Placeholder]:
    return [n.tensor for n in walk(e) if isinstance(n, Read) and isinstance(n.tensor, Placeholder)]

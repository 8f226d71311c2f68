"""Aligned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALIGNMENT", "aligned_bytes", "aligned_empty"]

ALIGNMENT = 64


def aligned_bytes(n_bytes: int, alignment: int = ALIGNMENT) -> NDArray[np.uint8]:
    """Zeroed memory that starts at a multiple of `alignment` bytes."""
    raw = np.zeros(max(1, n_bytes) + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + max(1, n_bytes)]


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros whose data starts at a multiple of 64 bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return aligned_bytes(size)[:size].view(dtype).reshape(shape)

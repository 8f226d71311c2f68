"""Memory between guard pages, so that a kernel which writes outside of its arrays is caught."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Guarded"]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
GUARD = 1 << 20
BAND = 0xA5


class Guarded:
    """An array that ends less than 64 bytes before an unmapped page; the gap is a guard band.

    Parameters
    ----------
    shape, dtype
        Of the array.
    shared : bool
        Whether forked children write to the same memory.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], *, shared: bool) -> None:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        page = mmap.PAGESIZE
        rounded = -(-max(n_bytes, 1) // 64) * 64
        self._pages = -(-rounded // page) * page
        flags = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE)
        self._size = self._pages + 2 * GUARD
        base = _libc.mmap(None, self._size, 0, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"{self._size} bytes for a guarded array")
        self._base = int(base)
        self._inner = self._base + GUARD
        self._protect(mmap.PROT_READ | mmap.PROT_WRITE)
        start = self._inner + self._pages - rounded
        raw = np.ctypeslib.as_array((ctypes.c_uint8 * self._pages).from_address(self._inner))
        self._raw = raw
        self._first = start - self._inner
        self._n_bytes = n_bytes
        self._raw[:] = BAND
        self.array: NDArray[Any] = (
            raw[self._first : self._first + n_bytes].view(dtype).reshape(shape)
        )

    def _protect(self, mode: int) -> None:
        if _libc.mprotect(self._inner, self._pages, mode):
            raise OSError(ctypes.get_errno(), "mprotect")

    def freeze(self) -> None:
        """Make the memory read-only."""
        self._protect(mmap.PROT_READ)

    def poison(self) -> None:
        """Fill the array with NaN (or an unlikely integer) and renew the guard band."""
        self._raw[:] = BAND
        if self.array.dtype == np.bool_:
            return
        self.array[...] = np.nan if self.array.dtype.kind not in "iu" else 113

    def band_intact(self) -> bool:
        """Whether nothing was written beside the array."""
        after = self._raw[self._first + self._n_bytes :]
        return bool((self._raw[: self._first] == BAND).all() and (after == BAND).all())

    def close(self) -> None:
        """Unmap; the array must not be used any more."""
        _libc.munmap(self._base, self._size)

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.arena import ALIGNMENT, aligned_bytes, aligned_empty


@pytest.mark.parametrize("n_bytes", [0, 1, 63, 64, 65, 4096, 100_003])
def test_bytes_are_aligned_and_zero(n_bytes: int) -> None:
    memory = aligned_bytes(n_bytes)
    assert memory.ctypes.data % ALIGNMENT == 0
    assert len(memory) == max(1, n_bytes) and not memory.any()


@pytest.mark.parametrize("alignment", [64, 128, 4096])
def test_another_alignment_can_be_asked_for(alignment: int) -> None:
    assert aligned_bytes(10, alignment).ctypes.data % alignment == 0


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (4, 5, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_arrays_have_their_shape_and_type(shape: tuple[int, ...], dtype: str) -> None:
    array = aligned_empty(shape, np.dtype(dtype))
    assert array.shape == shape and array.dtype == dtype
    assert array.flags.c_contiguous and array.flags.writeable
    assert array.size == 0 or array.ctypes.data % ALIGNMENT == 0
    assert not array.any()


def test_arrays_do_not_share_memory() -> None:
    one, two = (aligned_empty((5,), np.dtype("float32")) for _ in range(2))
    one[:] = 1.0
    assert not two.any() and not np.shares_memory(one, two)

"""Element types."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from tilewright.errors import TensorError
from tilewright.tensor.dtype import DType, as_dtype


@pytest.mark.parametrize("dtype", DType)
def test_an_element_type_is_found_by_its_name_and_its_numpy_type(dtype: DType) -> None:
    assert as_dtype(dtype) is dtype
    assert as_dtype(dtype.value) is dtype
    assert as_dtype(dtype.numpy) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_python_types_are_the_numpy_ones() -> None:
    assert as_dtype(float) is DType.FLOAT64
    assert as_dtype(bool) is DType.BOOL
    assert as_dtype(np.float32) is DType.FLOAT32
    assert as_dtype(ml_dtypes.bfloat16) is DType.BFLOAT16


def test_sizes_and_kinds() -> None:
    assert [d.n_bytes for d in DType] == [8, 4, 2, 2, 8, 4, 1, 1, 1]
    assert [d for d in DType if d.is_float] == [
        DType.FLOAT64,
        DType.FLOAT32,
        DType.FLOAT16,
        DType.BFLOAT16,
    ]
    assert [d for d in DType if d.is_int] == [
        DType.INT64,
        DType.INT32,
        DType.INT8,
        DType.UINT8,
    ]
    assert str(DType.BFLOAT16) == "bfloat16"


@pytest.mark.parametrize("unknown", ["float8", np.complex64, "f4", object()])
def test_an_unknown_element_type_is_refused(unknown: object) -> None:
    with pytest.raises(TensorError, match=r"unknown element type; choose one of float64, float32"):
        as_dtype(unknown)  # type: ignore[arg-type]

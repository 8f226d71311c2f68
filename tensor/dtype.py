"""Element types."""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.errors import TensorError

__all__ = ["DType", "as_dtype"]


class DType(enum.Enum):
    """An element type; the value is its NumPy name.

    Examples
    --------
    >>> DType.FLOAT32.n_bytes
    4
    >>> as_dtype("float32") is DType.FLOAT32
    True
    """

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"

    def __str__(self) -> str:
        return self.value

    def __hash__(self) -> int:
        return id(self)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        found: np.dtype[Any] = np.dtype(
            ml_dtypes.bfloat16 if self is DType.BFLOAT16 else self.value
        )
        return found

    @property
    def n_bytes(self) -> int:
        """Size of one element in bytes."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point one."""
        return self.value.startswith(("float", "bfloat"))

    @property
    def is_int(self) -> bool:
        """Whether the type is an integer one (bool is not)."""
        return self.value.startswith(("int", "uint"))


def as_dtype(dtype: DType | str | type | np.dtype[Any]) -> DType:
    """Return the element type of that name.

    Raises
    ------
    TensorError
        If Tilewright has no such element type.
    """
    if isinstance(dtype, DType):
        return dtype
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        return DType(name)
    except (ValueError, TypeError):
        known = ", ".join(d.value for d in DType)
        raise TensorError(
            f"as_dtype({dtype!r}): unknown element type; choose one of {known}"
        ) from None

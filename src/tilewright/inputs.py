"""Random inputs for a compiled model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tilewright.graph import CompiledModel

__all__ = ["random_inputs"]


def random_inputs(model: CompiledModel, seed: int = 0) -> dict[str, NDArray[Any]]:
    """An array for each input: floats are normal, integers and booleans zero or one.

    Integers are often tokens or masks, for which zero and one are always allowed.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, NDArray[Any]] = {}
    for name, (shape, dtype) in model.inputs.items():
        if dtype.kind in "iub":
            out[name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            out[name] = rng.standard_normal(shape).astype(dtype)
    return out

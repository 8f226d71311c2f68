"""What each operator computes, as tensor expressions: the one definition behind shape inference,
constant folding, the reference interpreter and the kernels.
"""

from __future__ import annotations

from tilewright.graph.operators import (
    elementwise,
    indexing,
    linear,
    moves,
    quantized,
    resize,
    rows,
    windows,
)
from tilewright.graph.operators.call import ONNX_TYPES, VIEWS, Call, Kind, Table, view_shape

__all__ = ["INTERNAL", "ONNX_TYPES", "OPERATORS", "VIEWS", "Call", "Kind", "view_shape"]

OPERATORS: Table = {
    **elementwise.OPERATORS,
    **indexing.OPERATORS,
    **linear.OPERATORS,
    **moves.OPERATORS,
    **quantized.OPERATORS,
    **resize.OPERATORS,
    **rows.OPERATORS,
    **windows.OPERATORS,
}
INTERNAL = frozenset(
    ["DropoutMask", "MaxPoolPlaces", "TopKPlaces", "WinogradConv"]
)  # of the graph, not of ONNX

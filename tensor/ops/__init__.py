"""The operator library: functions from tensors to computes, with NumPy's and ONNX's meaning."""

from tilewright.tensor.ops.elementwise import broadcast_shape, elementwise
from tilewright.tensor.ops.layout import concat, expand, gather, pad, reshape, slice_, transpose
from tilewright.tensor.ops.linear import conv, conv2d, matmul, padded
from tilewright.tensor.ops.reduction import (
    layer_norm,
    log_softmax,
    mean,
    reduce,
    rms_norm,
    softmax,
)
from tilewright.tensor.ops.transposed import conv_transpose
from tilewright.tensor.ops.window import global_pool, pool

__all__ = [
    "broadcast_shape", "concat", "conv", "conv2d", "conv_transpose", "elementwise", "expand", "gather", "global_pool", "layer_norm",
    "log_softmax", "matmul", "mean", "pad", "padded", "pool", "reduce", "reshape", "rms_norm", "slice_", "softmax", "transpose",
]  # fmt: skip

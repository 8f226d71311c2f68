"""One application of an operator, as the modules of this folder get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError
from tilewright.graph.ir import Node
from tilewright.tensor import ops
from tilewright.tensor.dtype import as_dtype
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.te import Compute, Tensor

__all__ = ["ONNX_TYPES", "VIEWS", "Call", "Kind", "Lower", "Table", "view_shape"]

Kind: TypeAlias = str  # "elementwise", "anchor", "rows" or "move"
ONNX_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    16: "bfloat16",
}


@dataclass(frozen=True)
class Call:
    """One application of an operator: its operands as tensors, constants as arrays where known."""

    node: Node
    tensors: tuple[Tensor | None, ...]
    constants: tuple[NDArray[Any] | None, ...]
    name: str

    def attribute(self, key: str, default: Any = None) -> Any:
        """An attribute of the node."""
        return self.node.attribute(key, default)

    def tensor(self, n: int) -> Tensor:
        """Operand n."""
        if n >= len(self.tensors) or self.tensors[n] is None:
            raise GraphError(f"{self.node.op} {self.node.name}: input {n} is missing")
        return self.tensors[n]  # type: ignore[return-value]

    def has(self, n: int) -> bool:
        """Whether operand n is given."""
        return n < len(self.tensors) and self.tensors[n] is not None

    def operand(self, n: int) -> Tensor | Expr:
        """Operand n; a constant of one element as a number."""
        value = self.constants[n]
        if value is not None and value.size == 1:
            return Const(value.reshape(-1)[0].item(), as_dtype(value.dtype))
        return self.tensor(n)

    def numbers(self, n: int, attribute: str | None = None) -> list[int] | None:
        """A list of integers from an attribute or a constant operand; None if neither is given."""
        if attribute is not None and self.attribute(attribute) is not None:
            found = self.attribute(attribute)
            return [int(v) for v in (found if isinstance(found, tuple) else (found,))]
        if n >= len(self.tensors) or self.tensors[n] is None:
            return None
        value = self.constants[n]
        if value is None:
            raise GraphError(
                f"{self.node.op} {self.node.name}: input {n} must be a constant; fold or fix it in the model"
            )
        return [int(v) for v in value.reshape(-1)]

    @property
    def shape(self) -> tuple[int, ...]:
        """What all operands broadcast to."""
        return ops.broadcast_shape(*(t.shape for t in self.tensors if t is not None))


Lower: TypeAlias = Callable[[Call], Compute]
Table: TypeAlias = "dict[str, tuple[Kind, Lower]]"
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")


def view_shape(call: Call) -> tuple[int, ...]:
    """The shape that a view gives to its operand."""
    shape, node = call.tensor(0).shape, call.node
    rank = len(shape)
    match node.op:
        case "Identity" | "Dropout":
            return shape
        case "Flatten":
            axis = int(call.attribute("axis", 1))
            axis = axis + rank if axis < 0 else axis
            return (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        case "Squeeze":
            axes = call.numbers(1, "axes")
            gone = (
                {a % rank for a in axes}
                if axes is not None
                else {d for d, n in enumerate(shape) if n == 1}
            )
            return tuple(n for d, n in enumerate(shape) if d not in gone)
        case "Unsqueeze":
            axes = call.numbers(1, "axes") or []
            total = rank + len(axes)
            new = {a % total for a in axes}
            rest = iter(shape)
            return tuple(1 if d in new else next(rest) for d in range(total))
    wanted = call.numbers(1, "shape")
    if wanted is None:
        raise GraphError(f"Reshape {node.name}: no shape is given")
    out = [
        shape[d] if n == 0 and not call.attribute("allowzero", 0) else n
        for d, n in enumerate(wanted)
    ]
    if -1 in out:
        known = int(np.prod([n for n in out if n != -1]))
        out[out.index(-1)] = int(np.prod(shape)) // max(1, known)
    return tuple(out)

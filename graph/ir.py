"""The model graph: named values, nodes in topological order, constants as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor.dtype import DType

__all__ = ["Graph", "Node", "ValueInfo"]


@dataclass(frozen=True)
class ValueInfo:
    """A value's name, static shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Node:
    """An operator applied to values; an absent optional input is the empty name.

    `attributes` is sorted and hashable: lists are tuples.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    name: str = ""
    opset: int = 17

    def attribute(self, key: str, default: Any = None) -> Any:
        """The value of an attribute."""
        for k, v in self.attributes:
            if k == key:
                return v
        return default


@dataclass(frozen=True)
class Graph:
    """A model: every value has a static shape.

    Attributes
    ----------
    inputs : tuple of ValueInfo
    outputs : tuple of str
    nodes : tuple of Node
        In topological order.
    constants : dict
        Arrays by value name.
    values : dict
        Shape and type of every value by name.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: dict[str, NDArray[Any]]
    values: dict[str, ValueInfo]

    def producers(self) -> dict[str, Node]:
        """The node that makes each value."""
        return {o: n for n in self.nodes for o in n.outputs}

    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that read each value, each once."""
        out: dict[str, list[Node]] = {}
        for n in self.nodes:
            for i in dict.fromkeys(n.inputs):
                out.setdefault(i, []).append(n)
        return out

    def with_nodes(
        self, nodes: Iterable[Node], constants: dict[str, NDArray[Any]] | None = None
    ) -> Graph:
        """The graph with other nodes, and more constants."""
        values = dict(self.values)
        merged = dict(self.constants)
        for name, array in (constants or {}).items():
            merged[name] = array
            values[name] = ValueInfo(name, array.shape, _dtype(array))
        return replace(self, nodes=tuple(nodes), constants=merged, values=values)

    def rename(self, names: dict[str, str]) -> Graph:
        """Let readers of some values read others instead."""
        if not names:
            return self

        def final(name: str) -> str:
            while name in names:
                name = names[name]
            return name

        nodes = tuple(replace(n, inputs=tuple(map(final, n.inputs))) for n in self.nodes)
        return replace(self, nodes=nodes, outputs=tuple(map(final, self.outputs)))

    def __str__(self) -> str:
        lines = [f"{v.name}: {v.dtype}{list(v.shape)}" for v in self.inputs]
        for n in self.nodes:
            attributes = "".join(f", {k}={v}" for k, v in n.attributes)
            shapes = ", ".join(f"{o}: {list(self.values[o].shape)}" for o in n.outputs)
            lines.append(f"{shapes} = {n.op}({', '.join(n.inputs)}{attributes})")
        return "\n".join([*lines, f"return {', '.join(self.outputs)}"])


def _dtype(array: NDArray[Any]) -> DType:
    from tilewright.tensor.dtype import as_dtype

    return as_dtype(np.asarray(array).dtype)

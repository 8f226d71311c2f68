"""Algebraic simplification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Node
from tilewright.graph.operators import VIEWS

__all__ = ["simplify_algebra"]

IDEMPOTENT = ("Relu", "Abs", "Floor", "Ceil", "Round")


class _Rewriter:
    """The state of one sweep: nodes so far, new constants, values that stand for others."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, NDArray[Any]] = {}
        self.names: dict[str, str] = {}
        self.made: dict[str, Node] = {}

    def constant(self, name: str) -> NDArray[Any] | None:
        found = self.constants.get(name)
        return self.graph.constants.get(name) if found is None else found

    def splat(self, name: str) -> float | None:
        """The number that a constant holds everywhere, or None."""
        array = self.constant(name)
        if array is None or array.size == 0 or not (array == array.reshape(-1)[0]).all():
            return None
        return float(array.reshape(-1)[0])

    def same_shape(self, a: str, b: str) -> bool:
        return self.graph.values[a].shape == self.graph.values[b].shape

    def forward(self, node: Node, to: str) -> None:
        self.names[node.outputs[0]] = to


def _neutral(r: _Rewriter, n: Node) -> Node | None:
    """x + 0, x - 0, x * 1, x / 1, x ** 1."""
    value = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0, "Pow": 1.0}.get(n.op)
    if value is None:
        return n
    orders = ((0, 1), (1, 0)) if n.op in ("Add", "Mul") else ((0, 1),)
    for x, c in orders:
        if r.splat(n.inputs[c]) == value and r.same_shape(n.inputs[x], n.outputs[0]):
            r.forward(n, n.inputs[x])
            return None
    return n


def _identity(r: _Rewriter, n: Node) -> Node | None:
    """Operators that return their operand."""
    same_type = (
        n.op == "Cast" and r.graph.values[n.inputs[0]].dtype is r.graph.values[n.outputs[0]].dtype
    )
    if (
        n.op in ("Identity", "Dropout")
        or same_type
        or (n.op in VIEWS and r.same_shape(n.inputs[0], n.outputs[0]))
    ):
        r.forward(n, n.inputs[0])
        return None
    if n.op == "Expand" and r.same_shape(n.inputs[0], n.outputs[0]):
        r.forward(n, n.inputs[0])
        return None
    return n


def _views(r: _Rewriter, n: Node) -> Node | None:
    """A view of a view is one view; all kinds become Reshape."""
    if n.op not in VIEWS:
        return n
    source = n.inputs[0]
    before = r.made.get(source)
    while before is not None and before.op in VIEWS:
        source = before.inputs[0]
        before = r.made.get(source)
    shape = r.graph.values[n.outputs[0]].shape
    if r.graph.values[source].shape == shape:
        r.forward(n, source)
        return None
    return replace(n, op="Reshape", inputs=(source,), attributes=(("shape", shape),))


def _transposes(r: _Rewriter, n: Node) -> Node | None:
    if n.op != "Transpose":
        return n
    rank = len(r.graph.values[n.inputs[0]].shape)
    order = tuple(n.attribute("perm") or reversed(range(rank)))
    before = r.made.get(n.inputs[0])
    source = n.inputs[0]
    if before is not None and before.op == "Transpose":
        first = before.attribute("perm") or tuple(reversed(range(rank)))
        order, source = tuple(first[o] for o in order), before.inputs[0]
    if order == tuple(range(rank)):
        r.forward(n, source)
        return None
    shape = r.graph.values[source].shape
    moved = [o for o in order if shape[o] != 1]
    if moved == sorted(moved):  # only dimensions of one element move: the memory is the same
        return replace(
            n,
            op="Reshape",
            inputs=(source,),
            attributes=(("shape", tuple(shape[o] for o in order)),),
        )
    return replace(n, inputs=(source,), attributes=(("perm", order),))


def _division(r: _Rewriter, n: Node) -> Node | None:
    """x / c becomes x * (1/c), unless the quotient decides how numbers are rounded to integers."""
    if n.op != "Div" or n.attribute("exact"):
        return n
    divisor = r.constant(n.inputs[1])
    if divisor is None or not np.issubdtype(divisor.dtype, np.floating) or (divisor == 0).any():
        return n
    name = f"{n.inputs[1]}.reciprocal"
    r.constants[name] = (1.0 / divisor.astype(np.float64)).astype(divisor.dtype)
    return replace(n, op="Mul", inputs=(n.inputs[0], name))


def _repeated(r: _Rewriter, n: Node) -> Node | None:
    before = r.made.get(n.inputs[0]) if n.inputs else None
    if n.op in IDEMPOTENT and before is not None and before.op == n.op:
        r.forward(n, n.inputs[0])
        return None
    return n


RULES: tuple[Callable[[_Rewriter, Node], Node | None], ...] = (
    _identity, _views, _transposes, _division, _neutral, _repeated,
)  # fmt: skip


def simplify_algebra(graph: Graph) -> Graph:
    """Remove what does nothing, join views and transposes, turn divisions by constants into products."""
    r = _Rewriter(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        current: Node | None = replace(node, inputs=tuple(r.names.get(i, i) for i in node.inputs))
        keep = node.outputs[0] in graph.outputs
        for rule in RULES:
            assert current is not None
            result = rule(r, current)
            if result is None and keep:  # an output keeps its name: leave the node
                r.names.pop(node.outputs[0], None)
                continue
            current = result
            if current is None:
                break
        if current is not None:
            nodes.append(current)
            r.made[current.outputs[0]] = current
    return graph.with_nodes(nodes, r.constants).rename({})

"""Nodes under other names, and the branch that a constant condition takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tilewright.errors import GraphError

if TYPE_CHECKING:
    import onnx

__all__ = ["branch", "renamed"]


def renamed(node: onnx.NodeProto, name: str, rename: Callable[[str], str]) -> onnx.NodeProto:
    """A copy of a node with its values renamed, also those that its subgraphs read from outside."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.name = name
    copy.input[:] = [rename(i) if i else "" for i in node.input]
    copy.output[:] = [rename(o) if o else "" for o in node.output]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            graph = attribute.g
            own = {o for n in graph.node for o in n.output}
            own |= {t.name for t in graph.initializer} | {i.name for i in graph.input}

            def outside(value: str, own: set[str] = own) -> str:
                return value if value in own else rename(value)

            inner = [renamed(n, n.name, outside) for n in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
            for o in graph.output:
                o.name = outside(o.name)
    return copy


def branch(
    raw: onnx.NodeProto, name: str, constants: dict[str, NDArray[Any]]
) -> list[onnx.NodeProto]:
    """The nodes that an `If` with a constant condition stands for.

    Raises
    ------
    GraphError
        If the condition depends on data.
    """
    import onnx

    condition = constants.get(raw.input[0])
    if condition is None:
        raise GraphError(
            f"load_onnx: If {name} depends on data ({raw.input[0]}); its condition must be a constant"
        )
    wanted = "then_branch" if condition.any() else "else_branch"
    graph: onnx.GraphProto = next(a.g for a in raw.attribute if a.name == wanted)
    made = {o for n in graph.node for o in n.output} | {t.name for t in graph.initializer}

    def rename(value: str) -> str:
        return f"{name}.{value}" if value in made else value

    out = [
        onnx.helper.make_node("Constant", [], [rename(t.name)], f"{name}.{t.name}", value=t)
        for t in graph.initializer
    ]
    out += [renamed(n, f"{name}.{n.name or f'{n.op_type}{k}'}", rename) for k, n in enumerate(graph.node)]  # fmt: skip
    out += [
        onnx.helper.make_node("Identity", [rename(inside.name)], [own], f"{name}.{own}")
        for own, inside in zip(raw.output, graph.output)
        if own
    ]
    return out

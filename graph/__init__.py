"""Models: reading, simplifying, fusing, compiling, running."""

if __name__ != "tilewright.graph":
    raise ImportError("import this folder as tilewright.graph; it is no top-level package")

from tilewright.graph.compile import compile_graph, extract_tasks
from tilewright.graph.fusion import FusedGraph, Group, fuse
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Graph, Node, ValueInfo
from tilewright.graph.model import CompiledModel
from tilewright.graph.onnx_import import load_onnx
from tilewright.graph.passes import simplify

__all__ = [
    "CompiledModel", "FusedGraph", "Graph", "Group", "Node", "ValueInfo", "compile_graph", "extract_tasks", "fuse",
    "interpret", "load_onnx", "simplify",
]  # fmt: skip

"""Operators by a line of text, such as ``matmul:512x512x512``: for the command line only.

A specification is a name, a colon, then shapes and options by commas. `OPERATORS` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    import onnx

    from tilewright.tensor import Workload

__all__ = ["OPERATORS", "OpSpec", "Operator", "parse"]

Array: TypeAlias = "np.ndarray[Any, Any]"
Shape: TypeAlias = "tuple[int, ...]"


@dataclass(frozen=True)
class OpSpec:
    """An operator with its peers.

    Parameters
    ----------
    workload : Workload
    numpy : callable or None
        The same computation by NumPy, or None where NumPy has no fast way to do it.
    onnx_node : tuple of str and dict
        Operator type and attributes of the ONNX node that computes the same.
    """

    workload: Workload
    numpy: Callable[..., Array] | None
    onnx_node: tuple[str, Mapping[str, Any]]

    def onnx_model(self, arrays: Mapping[str, Array]) -> onnx.ModelProto:
        """The ONNX model of the operator; constant inputs become its initializers."""
        from onnx import TensorProto, helper, numpy_helper

        kind, attributes = self.onnx_node
        w = self.workload

        def info(t: Any) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(t.name, TensorProto.FLOAT, list(t.shape))

        node = helper.make_node(kind, [t.name for t in w.inputs], [w.outputs[0].name], **attributes)
        graph = helper.make_graph(
            [node],
            w.name,
            [info(t) for t in w.inputs if not t.const],
            [info(w.outputs[0])],
            [numpy_helper.from_array(arrays[t.name], t.name) for t in w.inputs if t.const],
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


@dataclass(frozen=True)
class Arguments:
    """The parts of a specification after its name."""

    text: str
    shapes: tuple[Shape, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def integer(self, name: str, default: int) -> int:
        """The value of a whole-number option."""
        text = self.options.get(name, str(default))
        if not text.isdecimal():
            raise TilewrightError(f"--op {self.text}: {name}={text} is no whole number")
        return int(text)


@dataclass(frozen=True)
class Operator:
    """What `--op` knows about one name."""

    syntax: str
    ranks: tuple[tuple[int, ...], ...]  # per shape, the ranks that it may have
    options: tuple[str, ...]
    build: Callable[[Arguments], OpSpec]


def parse(text: str) -> OpSpec:
    """Read a specification.

    Raises
    ------
    TilewrightError
        If the name, a shape or an option is unknown or malformed.

    Examples
    --------
    >>> parse("matmul:64x32x16").workload.outputs[0].shape
    (64, 32)
    """
    name, _, rest = text.partition(":")
    operator = OPERATORS.get(name)
    if operator is None:
        known = "; ".join(o.syntax for o in OPERATORS.values())
        raise TilewrightError(f"--op {text}: no operator {name!r}; choose one of {known}")
    shapes: list[Shape] = []
    options: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = part.partition("=")
        if re.fullmatch(r"\d+(x\d+)*", part) and not options:
            shapes.append(tuple(map(int, part.split("x"))))
        elif key in operator.options:
            options[key] = value if equals else "1"
        else:
            raise TilewrightError(f"--op {text}: cannot read {part!r}; write {operator.syntax}")
    fits = len(shapes) == len(operator.ranks) and all(
        len(shape) in ranks and min(shape) > 0 for shape, ranks in zip(shapes, operator.ranks)
    )
    if not fits:
        raise TilewrightError(f"--op {text}: the shapes do not fit; write {operator.syntax}")
    return operator.build(Arguments(text, tuple(shapes), options))


def _matmul(args: Arguments) -> OpSpec:
    *batch, m, n, k = args.shapes[0]
    from tilewright.tensor import ops, te

    a = te.placeholder((*batch, m, k), name="A")
    b = te.placeholder((*batch, k, n), name="B", const="const" in args.options)
    out = ops.matmul(a, b, name="C")
    return OpSpec(_named(out, args), np.matmul, ("MatMul", {}))


def _conv2d(args: Arguments) -> OpSpec:
    from tilewright.tensor import ops, te

    stride, pad, groups = args.integer("s", 1), args.integer("p", 0), args.integer("g", 1)
    x = te.placeholder(args.shapes[0], name="X")
    w = te.placeholder(args.shapes[1], name="W", const=True)
    out = ops.conv2d(x, w, stride=stride, padding=pad, groups=groups, name="Y")
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "group": groups}

    def peer(x: Array, w: Array) -> Array:
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
        windows = windows[:, :, ::stride, ::stride]
        return np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)

    return OpSpec(_named(out, args), peer if groups == 1 else None, ("Conv", attributes))


def _softmax(args: Arguments) -> OpSpec:
    from tilewright.tensor import ops, te

    x = te.placeholder(args.shapes[0], name="X")
    out = ops.softmax(x, axis=-1, name="Y")

    def peer(x: Array) -> Array:
        e: Array = np.exp(x - x.max(axis=-1, keepdims=True))
        e /= e.sum(axis=-1, keepdims=True)
        return e

    return OpSpec(_named(out, args), peer, ("Softmax", {"axis": -1}))


def _layer_norm(args: Arguments) -> OpSpec:
    from tilewright.tensor import ops, te

    x = te.placeholder(args.shapes[0], name="X")
    size = args.shapes[0][-1:]
    scale, bias = (te.placeholder(size, name=n, const=True) for n in ("scale", "bias"))
    out = ops.layer_norm(x, scale, bias, eps=1e-5, name="Y")

    def peer(x: Array, scale: Array, bias: Array) -> Array:
        centred: Array = x - x.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        centred *= 1 / np.sqrt(variance + np.float32(1e-5))
        centred *= scale
        centred += bias
        return centred

    return OpSpec(_named(out, args), peer, ("LayerNormalization", {"epsilon": 1e-5}))


def _relu(args: Arguments) -> OpSpec:
    from tilewright.tensor import te

    x = te.placeholder(args.shapes[0], name="X")
    out = te.compute(x.shape, lambda *i: te.maximum(x[i], 0.0), name="Y")
    return OpSpec(_named(out, args), lambda x: np.maximum(x, np.float32(0)), ("Relu", {}))


def _add(args: Arguments) -> OpSpec:
    from tilewright.tensor import te

    a, b = (te.placeholder(args.shapes[0], name=n) for n in ("A", "B"))
    out = te.compute(a.shape, lambda *i: a[i] + b[i], name="Y")
    return OpSpec(_named(out, args), np.add, ("Add", {}))


def _named(out: Any, args: Arguments) -> Workload:
    from tilewright.tensor import Workload

    name, _, rest = args.text.partition(":")
    return Workload.of(out, f"{name}[{rest},f32]")


_ANY = (1, 2, 3, 4)

OPERATORS: Mapping[str, Operator] = {
    "matmul": Operator("matmul:[B x]MxNxK[,const]", ((3, 4),), ("const",), _matmul),
    "conv2d": Operator(
        "conv2d:NxCxHxW,OxIxKHxKW[,s=STRIDE][,p=PAD][,g=GROUPS]",
        ((4,), (4,)),
        ("s", "p", "g"),
        _conv2d,
    ),
    "softmax": Operator("softmax:DIMS", (_ANY,), (), _softmax),
    "layer_norm": Operator("layer_norm:DIMS", (_ANY,), (), _layer_norm),
    "relu": Operator("relu:DIMS", (_ANY,), (), _relu),
    "add": Operator("add:DIMS", (_ANY,), (), _add),
}

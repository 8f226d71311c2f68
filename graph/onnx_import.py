"""Read ONNX models.

Every value gets a static shape; whatever depends on constants alone is computed on the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError, TensorError, UnsupportedOperatorError
from tilewright.graph.branches import branch
from tilewright.graph.definitions import DEFINED, definition
from tilewright.graph.ir import Graph, Node, ValueInfo
from tilewright.graph.lowering import evaluate_node, infer
from tilewright.graph.operators import INTERNAL, ONNX_TYPES, OPERATORS, VIEWS
from tilewright.graph.operators.empty import empty_slice
from tilewright.graph.outputs import SEVERAL, one_each
from tilewright.tensor.dtype import as_dtype

if TYPE_CHECKING:
    import onnx

__all__ = ["load_onnx"]

_STATIC = ("Constant", "ConstantOfShape", "EyeLike", "Range", "Shape", "Size")
KNOWN = {*OPERATORS, *VIEWS, *_STATIC, *SEVERAL, *DEFINED, "If"} - INTERNAL


def load_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Graph:
    """Read a model.

    Parameters
    ----------
    model : path, bytes or ModelProto
        Opset 7 or later.
    shapes : mapping, optional
        Shapes of inputs whose dimensions are open. An open first dimension is a batch of one.

    Raises
    ------
    UnsupportedOperatorError
        If there are operators that Tilewright lacks; the message names every such node.
    GraphError
        If the model cannot be read or an input's shape is open.
    """
    import onnx

    proto = _read(model)
    opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
    _check_operators(proto, opset)
    constants: dict[str, NDArray[Any]] = {
        t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer
    }
    inputs = tuple(
        _input(i, dict(shapes or {})) for i in proto.graph.input if i.name not in constants
    )
    unknown = set(shapes or {}) - {i.name for i in inputs}
    if unknown:
        raise GraphError(
            f"load_onnx: no input named {sorted(unknown)[0]!r}; the inputs are {', '.join(i.name for i in inputs)}"
        )
    values = {i.name: i for i in inputs}
    for name, array in constants.items():
        values[name] = ValueInfo(name, array.shape, as_dtype(array.dtype))
    nodes: list[Node] = []
    for n, raw in enumerate(proto.graph.node):
        name = raw.name or f"{raw.op_type}#{n}"
        _take(raw, opset, name, values, constants, nodes)
    outputs = tuple(o.name for o in proto.graph.output)
    for o in outputs:
        if o not in values:
            raise GraphError(f"load_onnx: no node makes the output {o!r}")
    return Graph(inputs, outputs, tuple(nodes), constants, values)


def _read(model: Any) -> onnx.ModelProto:
    import onnx

    if isinstance(model, onnx.ModelProto):
        return model
    try:
        return (
            onnx.load_from_string(model)
            if isinstance(model, bytes)
            else onnx.load(os.fspath(model))
        )
    except FileNotFoundError:
        raise GraphError(f"load_onnx({os.fspath(model)!r}): no such file") from None
    except Exception as error:  # protobuf raises several kinds, all meaning the same
        raise GraphError(f"load_onnx: not an ONNX model: {error}") from None


def _check_operators(proto: onnx.ModelProto, opset: int) -> None:
    versions = {o.domain or "ai.onnx": o.version for o in proto.opset_import}
    missing = []
    for n, node in enumerate(proto.graph.node):
        domain = node.domain or "ai.onnx"
        known = node.op_type in KNOWN
        if domain != "ai.onnx" or not known:
            version = versions.get(domain, "?")
            missing.append(
                f"  {node.op_type} (domain {domain}, version {version}) at node {node.name or f'#{n}'}"
            )
    if missing:
        raise UnsupportedOperatorError(
            f"load_onnx: {len(missing)} nodes use operators that are not implemented:\n"
            + "\n".join(missing)
        )
    if opset < 7:
        raise GraphError(f"load_onnx: the model has opset {opset}; convert it to 7 or later")


def _input(info: onnx.ValueInfoProto, shapes: dict[str, Sequence[int]]) -> ValueInfo:
    kind = ONNX_TYPES.get(info.type.tensor_type.elem_type)
    if kind is None:
        raise GraphError(
            f"load_onnx: input {info.name} has an element type that is not implemented"
        )
    dims = info.type.tensor_type.shape.dim
    given = shapes.get(info.name)
    if given is not None:
        fixed = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None for d in dims]
        if len(given) != len(fixed) or any(f is not None and f != g for f, g in zip(fixed, given)):
            raise GraphError(
                f"load_onnx: input {info.name} has shape {_dims(dims)} in the model, which {list(given)} does not fit"
            )
        return ValueInfo(info.name, tuple(int(g) for g in given), as_dtype(kind))
    out = []
    for k, d in enumerate(dims):
        if d.HasField("dim_value") and d.dim_value > 0:
            out.append(int(d.dim_value))
        elif d.HasField("dim_value") and d.dim_value == 0:
            raise GraphError(
                f"load_onnx: input {info.name} has the shape {[n.dim_value for n in dims]}, which holds no elements; "
                "give another"
            )
        elif k == 0:
            out.append(1)
        else:
            raise GraphError(
                f"load_onnx: input {info.name} has the open shape {_dims(dims)}; give it, e.g. {info.name}=1,3,48,192"
            )
    return ValueInfo(info.name, tuple(out), as_dtype(kind))


def _dims(dims: Any) -> str:
    return (
        "["
        + ", ".join(
            str(d.dim_value) if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param or "?"
            for d in dims
        )
        + "]"
    )


def _attributes(raw: onnx.NodeProto) -> tuple[tuple[str, Any], ...]:
    import onnx

    out = []
    for a in raw.attribute:
        value = onnx.helper.get_attribute_value(a)
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, (list, np.ndarray)) or (
            hasattr(value, "__iter__") and not isinstance(value, str)
        ):
            value = tuple(value)
        out.append((a.name, value))
    return tuple(sorted(out, key=lambda kv: kv[0]))


def _take(
    raw: onnx.NodeProto,
    opset: int,
    name: str,
    values: dict[str, ValueInfo],
    constants: dict[str, NDArray[Any]],
    nodes: list[Node],
) -> None:
    """Add a node in our terms: several for one with several outputs, or one defined by others."""
    if raw.op_type == "If":
        _check_made("If", name, raw.input, values)
        for inner in branch(raw, name, constants):
            _take(inner, opset, inner.name, values, constants, nodes)
        return
    if raw.op_type in DEFINED or (raw.op_type == "LayerNormalization" and any(raw.output[1:])):
        _check_made(raw.op_type, name, raw.input, values)
        body, version = definition(raw, opset, name, values)
        for inner in body:
            _take(inner, version, inner.name, values, constants, nodes)
        return
    node = Node(raw.op_type, tuple(raw.input), tuple(raw.output), _attributes(raw), name, opset)
    _check_made(node.op, name, node.inputs, values)
    for one in one_each(node, values, constants):
        _add(one, values, constants, nodes)


def _check_made(op: str, name: str, inputs: Iterable[str], values: dict[str, ValueInfo]) -> None:
    for i in inputs:
        if i and i not in values:
            raise GraphError(f"load_onnx: {op} {name} reads {i!r}, which nothing makes before it")


def _add(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]], nodes: list[Node]
) -> None:
    """Append a node, or compute it now."""
    node = _without_empty(node, constants)
    known = all(i in constants for i in node.inputs if i)
    nothing = _nothing(node, values, constants)
    if nothing is not None:
        array: NDArray[Any] = nothing
    elif node.op in _STATIC:
        array = _static(node, values, constants)
    elif known and node.inputs:
        array = evaluate_node(node, values, constants)
    else:
        try:
            for info in infer(node, values, constants):
                values[info.name] = info
        except TensorError as error:
            raise GraphError(f"load_onnx: {node.op} {node.name}: {error}") from None
        nodes.append(node)
        return
    name = node.outputs[0]
    constants[name] = array
    values[name] = ValueInfo(name, array.shape, as_dtype(array.dtype))


def _nothing(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]]
) -> NDArray[Any] | None:
    """The result of a slice that takes nothing: a constant, whatever it is taken from."""
    if node.op != "Slice" or any(i and i not in constants for i in node.inputs[1:]):
        return None
    info = values[node.inputs[0]]
    shape = empty_slice(node, info.shape, [constants[i] if i else None for i in node.inputs[1:]])
    return None if shape is None else np.zeros(shape, info.dtype.numpy)


def _without_empty(node: Node, constants: dict[str, NDArray[Any]]) -> Node:
    """A node without its constant operands of no elements: an empty list of axes, nothing to join."""
    empty = [i for i in node.inputs if i in constants and constants[i].size == 0]
    if not empty or all(i in constants for i in node.inputs if i) or node.op in _STATIC:
        return node
    if node.op == "Concat":
        return replace(node, inputs=tuple(i for i in node.inputs if i not in empty))
    if node.op == "Reshape":  # to a scalar
        return replace(node, inputs=node.inputs[:1], attributes=(*node.attributes, ("shape", ())))
    inputs = node.inputs[:1] + tuple("" if i in empty else i for i in node.inputs[1:])
    return replace(node, inputs=inputs)


def _static(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]]
) -> NDArray[Any]:
    match node.op:
        case "Shape":
            start, end = node.attribute("start", 0), node.attribute("end")
            return np.array(values[node.inputs[0]].shape[start:end], np.int64)
        case "Size":
            return np.array(int(np.prod(values[node.inputs[0]].shape)), np.int64)
        case "Constant":
            for key, kind in (
                ("value_float", np.float32),
                ("value_floats", np.float32),
                ("value_int", np.int64),
                ("value_ints", np.int64),
            ):
                if node.attribute(key) is not None:
                    return np.array(node.attribute(key), kind)
            value = node.attribute("value")
            if value is None:
                raise GraphError(
                    f"load_onnx: Constant {node.name} holds a kind of value that is not implemented"
                )
            return np.asarray(value)
        case "EyeLike":
            return _eye(node, values[node.inputs[0]])
    missing = [i for i in node.inputs if i not in constants]
    if missing:
        raise GraphError(
            f"load_onnx: {node.op} {node.name} depends on data ({missing[0]}); its shape must be static"
        )
    if node.op == "Range":
        start, stop, step = (constants[i].item() for i in node.inputs)
        return np.arange(start, stop, step, dtype=constants[node.inputs[0]].dtype)
    fill = node.attribute("value", np.zeros(1, np.float32))
    return np.full(tuple(int(v) for v in constants[node.inputs[0]]), fill[0], fill.dtype)


def _eye(node: Node, like: ValueInfo) -> NDArray[Any]:
    code = node.attribute("dtype")
    kind = like.dtype if code is None else as_dtype(ONNX_TYPES[int(code)])
    if len(like.shape) != 2:
        raise GraphError(
            f"load_onnx: EyeLike {node.name} needs two dimensions, not {list(like.shape)}"
        )
    return np.eye(*like.shape, int(node.attribute("k", 0)), dtype=kind.numpy)

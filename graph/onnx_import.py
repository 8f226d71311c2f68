"""Read ONNX models.

Every value gets a static shape; whatever depends on constants alone is computed on the way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import GraphError, TensorError, UnsupportedOperatorError
from tilewright.graph.dynamic_quantize import dynamic_quantize
from tilewright.graph.ir import Graph, Node, ValueInfo
from tilewright.graph.lowering import evaluate_node, infer
from tilewright.graph.operators import INTERNAL, ONNX_TYPES, OPERATORS, VIEWS
from tilewright.tensor.dtype import as_dtype

if TYPE_CHECKING:
    import onnx

__all__ = ["load_onnx"]

_STATIC = ("Constant", "ConstantOfShape", "Shape", "Size", "Range")
_SPLIT = ("Split", "DynamicQuantizeLinear")  # written as several nodes


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
        for node in _expand(raw, opset, n, values, constants):
            _add(node, values, constants, nodes)
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
        known = node.op_type in OPERATORS.keys() - INTERNAL or node.op_type in (
            *VIEWS,
            *_STATIC,
            *_SPLIT,
        )
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


def _expand(
    raw: onnx.NodeProto,
    opset: int,
    n: int,
    values: dict[str, ValueInfo],
    constants: dict[str, NDArray[Any]],
) -> list[Node]:
    """The node in our terms: several for operators with several outputs."""
    name = raw.name or f"{raw.op_type}#{n}"
    outputs = tuple(raw.output)
    node = Node(raw.op_type, tuple(raw.input), outputs, _attributes(raw), name, opset)
    if raw.op_type == "Split":
        return _split(node, values, constants)
    if raw.op_type == "DynamicQuantizeLinear":
        return dynamic_quantize(node, values, constants)
    used = tuple(o for o in outputs if o)
    if len(used) > 1 and raw.op_type not in (
        "Dropout",
        "BatchNormalization",
        "LayerNormalization",
        "MaxPool",
    ):
        raise GraphError(
            f"load_onnx: {raw.op_type} {name} has {len(used)} outputs, of which one is implemented"
        )
    return [Node(node.op, node.inputs, outputs[:1], node.attributes, name, opset)]


def _split(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]]
) -> list[Node]:
    shape = values[node.inputs[0]].shape
    axis = int(node.attribute("axis", 0)) % len(shape)
    sizes = node.attribute("split")
    if sizes is None and len(node.inputs) > 1 and node.inputs[1]:
        sizes = constants[node.inputs[1]].tolist()
    if sizes is None:
        step = -(-shape[axis] // len(node.outputs))
        sizes = [min(step, shape[axis] - step * k) for k in range(len(node.outputs))]
    out, start = [], 0
    for o, size in zip(node.outputs, sizes):
        attributes = (("axes", (axis,)), ("ends", (start + int(size),)), ("starts", (start,)))
        out.append(Node("Slice", node.inputs[:1], (o,), attributes, node.name, node.opset))
        start += int(size)
    return out


def _add(
    node: Node, values: dict[str, ValueInfo], constants: dict[str, NDArray[Any]], nodes: list[Node]
) -> None:
    """Append a node, or compute it now."""
    for i in node.inputs:
        if i and i not in values:
            raise GraphError(
                f"load_onnx: {node.op} {node.name} reads {i!r}, which nothing makes before it"
            )
    known = all(i in constants for i in node.inputs if i)
    if node.op in _STATIC:
        array: NDArray[Any] = _static(node, values, constants)
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

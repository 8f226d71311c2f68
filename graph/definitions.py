"""Operators that the ONNX standard defines by others: they are read as those.

The bodies come from the installed `onnx` package, for the opset and the types of the node at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.errors import GraphError
from tilewright.graph.branches import renamed
from tilewright.graph.ir import ValueInfo
from tilewright.graph.operators import ONNX_TYPES

if TYPE_CHECKING:
    import onnx

__all__ = ["DEFINED", "definition"]

DEFINED = (
    "AffineGrid",
    "Attention",
    "BlackmanWindow",
    "CastLike",
    "CausalConvWithState",
    "CenterCropPad",
    "HammingWindow",
    "HannWindow",
    "MeanVarianceNormalization",
    "NegativeLogLikelihoodLoss",
    "RotaryEmbedding",
    "Shrink",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
    "Swish",
)


def definition(
    raw: onnx.NodeProto, opset: int, prefix: str, values: Mapping[str, ValueInfo]
) -> tuple[list[onnx.NodeProto], int]:
    """The nodes that define a node, and the opset that they belong to.

    Parameters
    ----------
    raw : NodeProto
        Of an operator of `DEFINED`, or one whose schema has a body.
    prefix : str
        What the names of its inner values begin with.
    values : mapping
        Shape and type of every operand.

    Raises
    ------
    GraphError
        If the standard has no definition of the operator in this opset.
    """
    import onnx

    try:
        schema: Any = onnx.defs.get_schema(raw.op_type, opset, "")
    except onnx.defs.SchemaError:
        raise GraphError(
            f"load_onnx: opset {opset} has no {raw.op_type}, which {raw.name or prefix} uses"
        ) from None
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        types = [_type(values[i] if i else None) for i in raw.input]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        body.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(
                max(versions), raw.SerializeToString(), types
            )
        )
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            body.ParseFromString(schema.get_function_with_opset_version(max(versions)))
        else:
            body.CopyFrom(schema.function_body)
    if not body.node:
        raise GraphError(
            f"load_onnx: {raw.op_type} {raw.name or prefix}: opset {opset} has no definition of it "
            "for these attributes and types"
        )
    version = max((o.version for o in body.opset_import if not o.domain), default=opset)
    return _named(raw, body, schema, prefix), version


def _type(info: ValueInfo | None) -> bytes:
    import onnx

    kind = onnx.TypeProto()
    if info is not None:
        code = next(k for k, v in ONNX_TYPES.items() if v == str(info.dtype))
        kind = onnx.helper.make_tensor_type_proto(code, info.shape)
    found: bytes = kind.SerializeToString()
    return found


def _named(
    raw: onnx.NodeProto, body: onnx.FunctionProto, schema: Any, prefix: str
) -> list[onnx.NodeProto]:
    """The body with the node's operands, results and attributes in place of the formal ones."""
    names = {"": "", **dict.fromkeys(body.input, "")}
    names.update(zip(body.input, raw.input))
    names.update((formal, own) for formal, own in zip(body.output, raw.output) if own)
    given = {a.name: a for a in raw.attribute}
    for key, default in schema.attributes.items():
        if key not in given and default.default_value.name:
            given[key] = default.default_value

    def rename(value: str) -> str:
        return names.get(value, f"{prefix}.{value}")

    out = []
    for n, inner in enumerate(body.node):
        node = renamed(inner, f"{prefix}.{inner.op_type}{n}", rename)
        attributes = list(node.attribute)
        del node.attribute[:]
        for a in attributes:
            source = given.get(a.ref_attr_name) if a.ref_attr_name else a
            if source is not None:
                node.attribute.add().CopyFrom(source)
                node.attribute[-1].name = a.name
        out.append(node)
    return out

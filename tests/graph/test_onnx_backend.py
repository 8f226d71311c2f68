"""The standard's own node tests: each is computed rightly or refused with a clear error.

What is refused stands in the tables below, so that the list cannot grow unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.graph import backend

from tilewright.codegen.target import Target
from tilewright.errors import GraphError, TilewrightError
from tilewright.graph import compile_graph, fuse, interpret, load_onnx, simplify
from tilewright.graph.onnx_import import KNOWN
from tilewright.graph.operators import ONNX_TYPES

# files of cases that speak of other things than tensors: control flow, sequences, strings, training, randomness
OUTSIDE = frozenset(
    [
        "adagrad", "adam", "bernoulli", "image_decoder", "label_encoder", "loop", "momentum", "regex_full_match",
        "scan", "sequence_map", "string_concat", "string_split", "splittosequence",
        "optionalgetelement", "optionalhaselement", "sequenceinsert", "stringnormalizer", "tfidfvectorizer", "ai_onnx_ml",
    ]
)  # fmt: skip

# operators that are not implemented: every case of them is refused with their name
UNSUPPORTED = frozenset(
    [
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
        "BitwiseXor", "Col2Im", "Compress", "DFT", "DeformConv", "Det", "FlexAttention",
        "GRU", "GridSample", "LSTM", "LinearAttention", "MaxUnpool", "MelWeightMatrix", "NonMaxSuppression",
        "NonZero", "RNN", "ReverseSequence", "RoiAlign", "STFT", "Scatter", "TensorScatter",
        "Unique",
    ]
)  # fmt: skip

# cases of implemented operators that are refused: what the error says
REFUSED = {
    r"test_batchnorm_.*_training_mode": "training is not implemented",
    r"test_training_dropout_(default|default_mask)": "training is not implemented",
    r"test_training_dropout(_mask)?": "training is not implemented",
    r"test_(de)?quantizelinear_blocked.*": "indices for a tensor of rank",
    r"test_if(_seq|_opt)?": "its condition must be a constant",
    r"test_not_\dd": "the model has opset 1; convert it to 7 or later",
    r"test_resize_.*(exclude_outside|antialias)": "antialias and exclude_outside are not implemented",
    r"test_resize_tf_crop_and_resize.*": "'tf_crop_and_resize' are not implemented",
}

# the standard divides by the unrounded size of the result, ONNX Runtime and we by the size itself
DIFFERENT = frozenset(
    [
        "test_resize_downsample_scales_linear_align_corners",
        "test_resize_downsample_scales_cubic_align_corners",
    ]
)

MODULES = [m for m in backend.modules() if m not in OUTSIDE]
# files whose cases take seconds to make or to compute
LARGE = frozenset(
    ["attention", "averagepool", "lppool", "maxpool", "negativeloglikelihoodloss", "softmax_cross_entropy_loss"]
)  # fmt: skip


def interpreted(case: backend.TestCase) -> list[NDArray[Any]]:
    proto, inputs, _ = backend.fixed(case)
    graph = load_onnx(proto)
    found = interpret(graph, inputs)
    return [found[o] for o in graph.outputs]


def compiled(case: backend.TestCase) -> list[NDArray[Any]]:
    proto, inputs, _ = backend.fixed(case)
    graph = load_onnx(proto)
    found = compile_graph(fuse(simplify(graph)), Target.host(1)).run(inputs)
    return [found[o] for o in graph.outputs]


def complaint(case: backend.TestCase, run: Callable[[Any], list[NDArray[Any]]]) -> str | None:
    """What is wrong with a case; None if it is computed rightly or refused as the tables say."""
    names = {n.op_type for n in backend.model(case).graph.node}
    law = next((text for p, text in REFUSED.items() if re.fullmatch(p, case.name)), None)
    if names & UNSUPPORTED:
        law = "not implemented"
    elif law is None and not _plain(case):
        law = "element type that is not implemented|no such element type|no element type for code"
    elif law is None and _without_elements(case):
        law = "holds no elements"
    try:
        found = run(case)
    except TilewrightError as error:
        if law is None or not re.search(law, str(error)):
            return f"{case.name}: {type(error).__name__}: {error}"
        return None
    if law is not None:
        return f"{case.name}: the tables say that it is refused"
    if case.name in DIFFERENT:
        return None
    _, _, expected = backend.fixed(case)
    for f, e in zip(found, expected, strict=True):
        if f.dtype != e.dtype or f.shape != e.shape:
            return f"{case.name}: {f.dtype}{f.shape} instead of {e.dtype}{e.shape}"
        rtol, atol = max(case.rtol, 1e-3), max(case.atol, 1e-6)
        if e.dtype.name == "float16":
            rtol = 2e-3  # two steps of its numbers: the standard rounds between operators
        if e.dtype.name == "bfloat16":
            rtol, atol = 2e-2, 4e-3
        wide = [a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in (f, e)]
        if not np.allclose(wide[0], wide[1], rtol=rtol, atol=atol, equal_nan=True):
            return f"{case.name}: {f} instead of {e}"
    return None


def _plain(case: backend.TestCase) -> bool:
    """Whether all inputs and results are tensors of element types that Tilewright has."""
    values = [*backend.model(case).graph.input, *backend.model(case).graph.output]
    return all(v.type.tensor_type.elem_type in ONNX_TYPES for v in values)


def _without_elements(case: backend.TestCase) -> bool:
    proto, _, _ = backend.fixed(case)
    dims = [d for i in proto.graph.input for d in i.type.tensor_type.shape.dim]
    return any(d.HasField("dim_value") and d.dim_value == 0 for d in dims)


def own_cases(module: str) -> list[backend.TestCase]:
    return [c for c in backend.cases(module) if "_expanded" not in c.name]


@pytest.mark.parametrize(
    "module", [pytest.param(m, marks=[pytest.mark.slow] * (m in LARGE)) for m in MODULES]
)
def test_a_case_is_computed_rightly_or_refused_clearly(module: str) -> None:
    found = [complaint(c, interpreted) for c in own_cases(module)]
    assert [f for f in found if f] == []


def test_no_operator_is_called_unsupported_that_the_importer_knows() -> None:
    assert not UNSUPPORTED & KNOWN


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_a_compiled_case_is_computed_rightly_or_refused_clearly(module: str) -> None:
    cases = [c for c in own_cases(module) if not _half(c)]
    found = [complaint(c, compiled) for c in cases]
    assert [f for f in found if f] == []


@pytest.mark.slow
def test_a_case_in_terms_of_other_operators_is_computed_too() -> None:
    chosen = (
        "attention",
        "layernormalization",
        "rotaryembedding",
        "celu",
        "elu",
        "rangeop",
        "gelu",
    )
    ran = 0
    for module in chosen:
        for case in backend.cases(module):
            if "_expanded" in case.name and "Loop" not in str(backend.model(case).graph.node):
                try:
                    expected = backend.fixed(case)[2]
                    found = interpreted(case)
                except GraphError as error:
                    assert re.search("must be a constant|not implemented|must be static", str(error))  # fmt: skip
                    continue
                ran += 1
                for f, e in zip(found, expected, strict=True):
                    wide = f.astype(np.float64), e.astype(np.float64)
                    np.testing.assert_allclose(*wide, rtol=2e-2, atol=1e-2, err_msg=case.name)
    assert ran > 40


def _half(case: backend.TestCase) -> bool:
    """Whether a case computes in half precision, for which not all conversions are compiled."""
    return any(v.type.tensor_type.elem_type == 10 for v in (*backend.model(case).graph.input, *backend.model(case).graph.output))  # fmt: skip

"""Specifications of operators on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import TilewrightError
from tilewright.opspec import OPERATORS, parse

SPECS = [
    "matmul:8x6x4",
    "matmul:2x8x6x4",
    "matmul:8x6x4,const",
    "conv2d:1x4x9x7,6x4x3x3,s=2,p=1",
    "conv2d:1x4x9x7,4x1x3x3,p=1,g=4",
    "softmax:5x7",
    "layer_norm:3x16",
    "relu:4x5",
    "add:3x4x5",
]


def arrays_of(spec: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        t.name: rng.standard_normal(t.shape).astype(np.float32) for t in parse(spec).workload.inputs
    }


@pytest.mark.parametrize("spec", SPECS)
def test_an_operator_agrees_with_its_numpy_and_onnx_peers(spec: str) -> None:
    import onnxruntime

    from tilewright.tensor.evaluate import evaluate

    op, arrays = parse(spec), arrays_of(spec)
    (wanted,) = evaluate(op.workload, list(arrays.values()))
    if op.numpy is not None:
        np.testing.assert_allclose(op.numpy(*arrays.values()), wanted, rtol=1e-4, atol=1e-5)
    session = onnxruntime.InferenceSession(op.onnx_model(arrays).SerializeToString())
    feed = {t.name: arrays[t.name] for t in op.workload.inputs if not t.const}
    np.testing.assert_allclose(session.run(None, feed)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_tested_specification(name: str) -> None:
    assert any(s.startswith(f"{name}:") for s in SPECS)


def test_the_workload_is_named_after_the_specification() -> None:
    assert parse("matmul:8x6x4").workload.name == "matmul[8x6x4,f32]"


def test_a_grouped_convolution_has_no_numpy_peer() -> None:
    assert parse("conv2d:1x4x9x7,4x1x3x3,g=4").numpy is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("matmull:8x6x4", "--op matmull:8x6x4: no operator 'matmull'; choose one of matmul:"),
        ("matmul", "--op matmul: the shapes do not fit; write matmul:"),
        ("matmul:8x6", "--op matmul:8x6: the shapes do not fit; write matmul:"),
        ("matmul:8x0x4", "--op matmul:8x0x4: the shapes do not fit; write matmul:"),
        ("matmul:8xax4", "--op matmul:8xax4: cannot read '8xax4'; write matmul:"),
        ("conv2d:1x4x9x7", "--op conv2d:1x4x9x7: the shapes do not fit; write conv2d:"),
        ("softmax:4x4,axis=1", "--op softmax:4x4,axis=1: cannot read 'axis=1'; write softmax:"),
        ("conv2d:1x4x9x7,4x4x3x3,s=a", "--op conv2d:1x4x9x7,4x4x3x3,s=a: s=a is no whole number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_syntax(spec: str, message: str) -> None:
    with pytest.raises(TilewrightError) as error:
        parse(spec)
    assert str(error.value).startswith(message)

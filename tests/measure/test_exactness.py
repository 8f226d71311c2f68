"""Which integers must be equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.measure.exactness import exact_outputs
from tilewright.measure.tolerance import compare
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.expr import Expr
from tilewright.tensor.te import Compute

x = te.placeholder((4, 50), name="x")
q = te.placeholder((4, 50), "int8", name="q")


def each(f: Callable[[Expr], Expr], of: te.Tensor = x) -> Compute:
    return ops.elementwise("y", f, of)


def rounded(of: te.Tensor) -> Compute:
    return each(lambda v: te.cast(te.round(v / 0.3), "int8"), of)


CASES: dict[str, tuple[Compute, bool]] = {
    "a rounded quotient": (rounded(x), True),
    "a clipped quotient with a zero point": (
        each(lambda v: te.cast(te.minimum(te.maximum(te.round(v / 0.3) + 5.0, 0.0), 255.0), "uint8")),
        True,
    ),
    "a sum of integers": (ops.reduce(q, "sum", [1], accumulate="int32"), True),
    "a scaled sum of integers": (
        each(lambda v: te.cast(te.round(te.cast(v, "float32") * 0.7), "int8"), ops.reduce(q, "sum", [1], name="s", accumulate="int32")),
        True,
    ),
    "the largest": (rounded(ops.reduce(x, "max", [1], name="m")), True),
    "a comparison of inputs": (each(lambda v: v < 0.5), True),
    "a comparison of quotients": (each(lambda v: v / 0.3 < 0.5), False),
    "a rounded sum of floats": (rounded(ops.reduce(x, "sum", [1], name="s")), False),
    "a rounded exponential": (each(lambda v: te.cast(te.exp(v), "int32")), False),
    "a rounded polynomial": (each(lambda v: te.cast(v * v + v, "int32")), False),
    "a stage that is not rounded": (rounded(ops.elementwise("t", lambda v: v * 0.1, x)), False),
    "a float": (each(lambda v: v), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_rounding_may_change_is_not_exact(name: str) -> None:
    y, exact = CASES[name]
    assert exact_outputs(Workload.of(y)) == (exact,)


def test_inexact_integers_may_lie_one_apart_at_few_places() -> None:
    expected = np.arange(200)
    found = expected.copy()
    found[7] += 1
    assert compare(found, expected, 0.0, exact=False) is None
    assert compare(found, expected, 0.0) is not None
    found[7] += 1
    assert compare(found, expected, 0.0, exact=False) is not None
    assert compare(expected + 1, expected, 0.0, exact=False) is not None

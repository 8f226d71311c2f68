"""Intrinsics: patterns as objects, and how traces describe them."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Dot, Interleave, as_intrinsic
from tilewright.tensor import DType, te
from tilewright.tensor.expr import Expr

BYTES = Dot(DType.UINT8, DType.INT8, DType.INT32, 4)
HALVES = Dot(DType.BFLOAT16, DType.BFLOAT16, DType.FLOAT32, 2)


@pytest.mark.parametrize("what", [BYTES, HALVES, Interleave(4)])
def test_an_intrinsic_is_what_its_argument_describes(what: Dot | Interleave) -> None:
    assert as_intrinsic(what.argument()) == what
    assert as_intrinsic(list(what.argument())) == what
    assert as_intrinsic(what) is what


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dot(DType.INT32, DType.INT8, DType.INT32, 4), "Dot(int32, int8, int32, 4): no instruction computes this; use 8-bit integers into int32 by 2 or 4, or bfloat16 into float32 by 2"),
        (lambda: Dot(DType.INT8, DType.INT8, DType.INT32, 3), "Dot(int8, int8, int32, 3): no instruction computes this; use 8-bit integers into int32 by 2 or 4, or bfloat16 into float32 by 2"),
        (lambda: Interleave(3), "Interleave(3): choose 2, 4 or 8"),
        (lambda: as_intrinsic(["vpdpbusd"]), "tensorize: ['vpdpbusd'] describes no intrinsic; write e.g. ['dot', 'uint8', 'int8', 'int32', 4] or ['interleave', 4]"),
        (lambda: as_intrinsic(["dot", "int4", "int8", "int32", 4]), "tensorize: as_dtype('int4'): unknown element type; choose one of float64, float32, float16, bfloat16, int64, int32, int8, uint8, bool"),
    ],
)  # fmt: skip
def test_what_no_instruction_computes_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        make()
    assert str(error.value) == message


def test_an_intrinsic_is_available_where_one_of_its_features_is() -> None:
    assert BYTES.available(frozenset(["+avx2", "+avx512vnni"]))
    assert BYTES.available(frozenset(["+neon", "+dotprod"]))
    assert not BYTES.available(frozenset(["+avx2", "+avx512bw"]))
    assert Dot(DType.INT8, DType.INT8, DType.INT32, 2).available(frozenset(["+avx2"]))
    assert HALVES.available(frozenset(["+avx512bf16"])) and not HALVES.available(frozenset())


def test_factors_are_found_in_either_order() -> None:
    a, b = te.placeholder((4,), "uint8", name="a"), te.placeholder((4,), "int8", name="b")
    x, y = te.cast(a[0], "int32"), te.cast(b[0], "int32")
    assert BYTES.factors(x * y) == BYTES.factors(y * x) == (a[0], b[0])
    others: list[Expr] = [x * x, x * y * 2, x * y + 1, x, x * te.cast(b[0] * b[1], "int32") * y]
    assert [BYTES.factors(e) for e in others] == [None] * len(others)

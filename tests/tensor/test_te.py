"""Placeholders, computes and reductions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Read, Reduce, Var

a = te.placeholder((4, 6), name="a")
b = te.placeholder((6, 5), name="b")


def test_a_compute_names_its_axes_after_the_arguments() -> None:
    c = te.compute((4, 6), lambda row, column: a[row, column] * 2.0, name="c")
    assert [v.name for v in c.axes] == ["row", "column"]
    assert (c.shape, c.dtype, c.ndim, c.size) == ((4, 6), DType.FLOAT32, 2, 24)
    assert c.reduce_axes == ()
    assert str(c.body) == "a[row, column] * 2.0"


def test_a_compute_of_any_rank_numbers_its_axes() -> None:
    c = te.compute((4, 6), lambda *i: a[i], name="c")
    assert [v.name for v in c.axes] == ["i0", "i1"]
    assert te.compute((), lambda: a[0, 0], name="s").axes == ()


def test_axes_can_be_named_apart_from_the_arguments() -> None:
    c = te.compute((4, 6), lambda *i: a[i], name="c", axes=["m", "n"])
    assert str(c.body) == "a[m, n]"


def test_a_reduction_knows_its_axes() -> None:
    k = te.reduce_axis(6, "k")
    c = te.compute((4, 5), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="c")
    assert isinstance(c.body, Reduce)
    assert c.reduce_axes == ((Var("k"), 6),)
    assert str(c.body) == "sum(a[i, k] * b[k, j], axis=[k])"


def test_reduce_axes_take_part_in_index_arithmetic() -> None:
    x = te.placeholder((10,), name="x")
    k = te.reduce_axis(3, "k")
    for f, text in [
        (lambda i: x[i + k], "x[i + k]"),
        (lambda i: x[k + i], "x[i + k]"),
        (lambda i: x[2 * k + i], "x[i + k*2]"),
        (lambda i: x[9 - k - i], "x[-i - k + 9]"),
    ]:
        c = te.compute((4,), lambda i, f=f: te.max(f(i), k), name="c")
        assert str(c.body) == f"max({text}, axis=[k])"


def test_tensors_are_compared_by_identity() -> None:
    assert te.placeholder((4,), name="a") != te.placeholder((4,), name="a")
    assert isinstance(a[0, 0], Read) and a[0, 0] == a[0, 0]


k = te.reduce_axis(6, "k")
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "rank": (lambda: a[0], r"a\[\.\.\.\]: 1 indices for a tensor of rank 2"),
    "index type": (
        lambda: te.placeholder((4,), name="x")[te.placeholder((1,), "int32", name="n")[0]],
        r"x\[n\[0\]\]: an index of type int32; cast it to int64",
    ),
    "shape": (lambda: te.placeholder((4, 0), name="x"), r"x: shape \(4, 0\) has a dimension below 1"),
    "extent": (lambda: te.reduce_axis(0, "k"), r"reduce_axis\(0, 'k'\): the extent is below 1"),
    "arity": (
        lambda: te.compute((4, 6), lambda i: a[i, 0], name="c"),
        r"compute\(c\): 1 arguments for a shape of rank 2",
    ),
    "axis names": (
        lambda: te.compute((4, 6), lambda *i: a[i], name="c", axes=["m", "m"]),
        r"compute\(c\): two axes have the same name",
    ),
    "inner reduction": (
        lambda: te.compute((4,), lambda i: te.sum(a[i, k], k) + 1.0, name="c"),
        r"compute\(c\): a reduction must be the whole body; split the compute",
    ),
    "clash": (
        lambda: te.compute((4,), lambda k: te.sum(a[k, te.reduce_axis(6).var], te.reduce_axis(6)), name="c"),
        r"compute\(c\): axis k is both spatial and reduced; rename one",
    ),
    "twins": (
        lambda: te.compute((4,), lambda i: te.sum(a[i, k], [k, te.reduce_axis(2, "k")]), name="c"),
        r"compute\(c\): two reduced axes are named k; rename one",
    ),
    "free": (
        lambda: te.compute((4,), lambda i: a[i, k], name="c"),
        r"compute\(c\): k is neither an axis nor reduced over; sum over it",
    ),
    "no axis": (lambda: te.sum(a[0, 0], []), r"sum\(\.\.\.\): no axis to reduce over"),
    "type": (lambda: te.placeholder((4,), "float8"), r"unknown element type"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_computes_are_refused(case: str) -> None:
    build, message = REFUSED[case]
    with pytest.raises(TensorError, match=message):
        build()

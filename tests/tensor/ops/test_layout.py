"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tensor.ops.reference import run, tensors

from tilewright.errors import TensorError
from tilewright.tensor import ops, te

rng = np.random.default_rng(0)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def counted(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.arange(float(np.prod(shape))).reshape(shape)


@given(shapes, st.randoms())
def test_transposes_are_numpys(shape: list[int], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    a = counted(*shape)
    np.testing.assert_array_equal(run(ops.transpose(tensors(a)[0], order), a), a.transpose(order))


FACTORS = [(24,), (4, 6), (6, 4), (2, 3, 4), (1, 24), (8, 1, 3), (2, 2, 6), (3, 8), (1, 2, 1, 12), (2, 12, 1)]  # fmt: skip


@given(st.sampled_from(FACTORS), st.sampled_from(FACTORS), st.integers(1, 3))
def test_reshapes_are_numpys(old: tuple[int, ...], new: tuple[int, ...], lead: int) -> None:
    a = counted(lead, *old)
    out = ops.reshape(tensors(a)[0], (lead, *new))
    np.testing.assert_array_equal(run(out, a), a.reshape(lead, *new))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ((3, 4), (3, 1, 4), "x[i0, i2]"),
        ((3, 1, 4), (3, 4), "x[i0, 0, i1]"),
        ((2, 12, 5), (2, 3, 4, 5), "x[i0, i1*4 + i2, i3]"),
        ((2, 3, 4, 5), (2, 12, 5), "x[i0, i1 // 4, i1 % 4, i2]"),
        ((6, 4), (4, 6), "x[(i0*6 + i1) // 4, (i0*6 + i1) % 4]"),
        ((2, 3), (6,), "x[i0 // 3, i0 % 3]"),
        ((1, 1), (), "x[0, 0]"),
    ],
)
def test_a_reshape_divides_only_where_dimensions_are_not_aligned(
    old: tuple[int, ...], new: tuple[int, ...], text: str
) -> None:
    assert str(ops.reshape(te.placeholder(old), new).body) == text


@given(shapes, st.data())
def test_concatenations_are_numpys(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    parts = []
    for n in sizes:
        mine = list(shape)
        mine[axis] = n
        parts.append(rng.standard_normal(mine))
    out = ops.concat(tensors(*parts), axis)
    # a select reads its first operand first, so inputs come in order
    np.testing.assert_array_equal(run(out, *parts), np.concatenate(parts, axis))


@given(shapes, st.data())
def test_slices_are_numpys(shape: list[int], data: st.DataObject) -> None:
    a = counted(*shape)
    starts, sizes, steps, places = [], [], [], []
    for n in shape:
        step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
        start = data.draw(st.integers(0, n - 1))
        room = n - 1 - start if step > 0 else start
        size = data.draw(st.integers(1, room // abs(step) + 1))
        starts.append(start)
        sizes.append(size)
        steps.append(step)
        places.append([start + k * step for k in range(size)])
    out = ops.slice_(tensors(a)[0], starts, sizes, steps)
    np.testing.assert_array_equal(run(out, a), a[np.ix_(*places)])


@given(shapes, st.sampled_from(["constant", "edge", "reflect"]), st.data())
def test_paddings_are_numpys(shape: list[int], mode: str, data: st.DataObject) -> None:
    a = counted(*shape)
    widths = [
        tuple(data.draw(st.integers(0, n - 1 if mode == "reflect" else 3)) for _ in "ba")
        for n in shape
    ]
    before, after = [b for b, _ in widths], [n for _, n in widths]
    out = ops.pad(tensors(a)[0], before, after, mode=mode, value=2.5)
    extra = {"constant_values": 2.5} if mode == "constant" else {}
    np.testing.assert_array_equal(run(out, a), np.pad(a, widths, mode, **extra))  # type: ignore[call-overload]


def test_a_negative_padding_crops() -> None:
    a = counted(4, 5)
    out = ops.pad(tensors(a)[0], [-1, 1], [1, -2], value=7.0)
    np.testing.assert_array_equal(
        run(out, a), np.pad(a[1:, :3], [(0, 1), (1, 0)], constant_values=7.0)
    )


@given(shapes, st.lists(st.integers(1, 3), max_size=2), st.data())
def test_gathers_are_numpys(shape: list[int], wanted: list[int], data: st.DataObject) -> None:
    a = counted(*shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    indices = rng.integers(-n, n, wanted).astype(data.draw(st.sampled_from(["int64", "int32"])))
    p, q = te.placeholder(a.shape, "float64", "x"), te.placeholder(wanted, indices.dtype, "n")  # type: ignore[arg-type]
    out = ops.gather(p, q, axis=axis)
    np.testing.assert_array_equal(run(out, a, np.asarray(indices)), np.take(a, indices, axis))


def test_expanding_broadcasts() -> None:
    a = counted(3, 1)
    np.testing.assert_array_equal(
        run(ops.expand(tensors(a)[0], (2, 3, 4)), a), np.broadcast_to(a, (2, 3, 4))
    )


x = te.placeholder((3, 4), name="x")
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "order": (lambda: ops.transpose(x, [0, 0]), r"no permutation of the dimensions"),
    "size": (lambda: ops.reshape(x, (5, 2)), r"reshape\(\[3, 4\] to \[5, 2\]\): 12 elements do not make 10"),
    "concat": (lambda: ops.concat([x, te.placeholder((3, 5), name="y")], 0), r"differ in another dimension"),
    "concat rank": (lambda: ops.concat([x, te.placeholder((3,), name="y")], 0), r"differ in another dimension"),
    "concat axis": (lambda: ops.concat([x, x], 2), r"axis 2 lies outside of the 2 dimensions"),
    "slice": (
        lambda: ops.slice_(x, [0, 1], [3, 3], [1, 2]),
        r"slice_\(\[3, 4\]\): dimension 1 has the indices 0 to 3, not 1 to 5",
    ),
    "slice rank": (lambda: ops.slice_(x, [0], [3, 3], [1, 2]), r"starts has 1 entries; give one for each of 2"),
    "mode": (lambda: ops.pad(x, [0, 0], [0, 0], mode="mirror"), r"unknown mode; choose constant, edge, reflect or wrap"),
    "reflect": (lambda: ops.pad(x, [3, 0], [0, 0], mode="reflect"), r"must be smaller than the dimension"),
    "gather axis": (lambda: ops.gather(x, x, axis=-3), r"axis -3 lies outside"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_moves_are_refused(case: str) -> None:
    build, message = REFUSED[case]
    with pytest.raises(TensorError, match=message):
        build()

"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tensor.ops import reference
from tests.tensor.ops.reference import run, tensors

from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te

rng = np.random.default_rng(0)
small = st.integers(1, 5)


@given(
    st.sampled_from([((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((1,), (1,)), ((2, 3), (2, 3))]),
    small, small, small, st.booleans(), st.booleans(),
)  # fmt: skip
def test_matrix_products_are_numpys(
    batch: tuple[tuple[int, ...], tuple[int, ...]], m: int, k: int, n: int, ta: bool, tb: bool
) -> None:
    a = rng.standard_normal((*batch[0], m, k))
    b = rng.standard_normal((*batch[1], k, n))
    left, right = (v.swapaxes(-1, -2) if t else v for v, t in ((a, ta), (b, tb)))
    p, q = tensors(left, right)
    out = ops.matmul(p, q, transpose_a=ta, transpose_b=tb)
    np.testing.assert_allclose(run(out, left, right), a @ b, rtol=1e-12, atol=1e-12)


def test_a_matrix_product_has_the_familiar_axes() -> None:
    a, b = te.placeholder((2, 4, 6), name="a"), te.placeholder((6, 5), name="b")
    out = ops.matmul(a, b, name="C")
    assert [v.name for v in out.axes] == ["b0", "i", "j"]
    assert str(out.body) == "sum(a[b0, i, k] * b[k, j], axis=[k])"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_convolutions_are_those_of_numpy(data: st.DataObject) -> None:
    dims = data.draw(st.integers(1, 3))

    def each(strategy: st.SearchStrategy[int]) -> list[int]:
        return [data.draw(strategy) for _ in range(dims)]

    groups, per_group, outs = (data.draw(st.integers(1, 3)) for _ in range(3))
    kernel, stride, dilation = each(st.integers(1, 3)), each(st.integers(1, 2)), each(st.integers(1, 2))  # fmt: skip
    padding = list(zip(each(st.integers(0, 2)), each(st.integers(0, 2))))
    spatial = [
        max(1, (k - 1) * d + 1 - b - a) + extra
        for k, d, (b, a), extra in zip(kernel, dilation, padding, each(st.integers(0, 3)))
    ]
    x = rng.standard_normal((2, groups * per_group, *spatial))
    w = rng.standard_normal((groups * outs, per_group, *kernel))
    p, q = tensors(x, w)
    out = ops.conv(p, q, stride=stride, padding=padding, dilation=dilation, groups=groups, name="Y")
    expected = reference.conv(x, w, stride, padding, dilation, groups)
    assert out.shape == expected.shape
    np.testing.assert_allclose(run(out, x, w), expected, rtol=1e-11, atol=1e-11)
    stages = [s.name for s in Workload.of(out).stages]
    assert stages == (["Y.pad", "Y"] if any(map(any, padding)) else ["Y"])


@pytest.mark.parametrize(
    ("channels", "weights", "groups", "text"),
    [
        (4, (6, 4, 1, 1), 1, "sum(x[n, ic, kh + oh, kw + ow] * w[oc, ic, kh, kw], axis=[ic, kh, kw])"),
        (4, (4, 1, 3, 3), 4, "sum(x[n, oc, kh + oh, kw + ow] * w[oc, 0, kh, kw], axis=[kh, kw])"),
        (4, (6, 2, 3, 3), 2, "sum(x[n, ic + oc // 3*2, kh + oh, kw + ow] * w[oc, ic, kh, kw], axis=[ic, kh, kw])"),
    ],
)  # fmt: skip
def test_a_convolution_has_the_form_of_its_groups(
    channels: int, weights: tuple[int, ...], groups: int, text: str
) -> None:
    x, w = te.placeholder((1, channels, 8, 8), name="x"), te.placeholder(weights, name="w")
    assert str(ops.conv2d(x, w, groups=groups).body) == text


@pytest.mark.parametrize("stride", [1, 2])
def test_conv2d_is_conv_in_two_dimensions(stride: int) -> None:
    x, w = rng.standard_normal((1, 3, 7, 9)), rng.standard_normal((4, 3, 3, 3))
    p, q = tensors(x, w)
    found = run(ops.conv2d(p, q, stride=stride, padding=1, dilation=2), x, w)
    expected = reference.conv(x, w, [stride] * 2, [(1, 1)] * 2, [2, 2], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


x, w = te.placeholder((1, 4, 8, 8), name="x"), te.placeholder((6, 4, 3, 3), name="w")
PAIR = [(0, 0), (0, 0)]
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "inner": (
        lambda: ops.matmul(te.placeholder((3, 4)), te.placeholder((5, 6))),
        r"matmul\(\[3, 4\], \[5, 6\]\): the inner sizes 4 and 5 differ",
    ),
    "vector": (
        lambda: ops.matmul(te.placeholder((4,)), te.placeholder((4, 6))),
        r"needs two dimensions or more; reshape first",
    ),
    "batch": (
        lambda: ops.matmul(te.placeholder((2, 3, 4)), te.placeholder((3, 4, 5))),
        r"dimension 0 has the sizes \[2, 3\]",
    ),
    "channels": (lambda: ops.conv2d(x, w, groups=2), r"groups=2\): the channels do not fit"),
    "rank": (lambda: ops.conv2d(x, te.placeholder((6, 4, 3), name="w")), r"needs one to three spatial dimensions"),
    "kernel": (
        lambda: ops.conv2d(x, te.placeholder((6, 4, 9, 9), name="w")),
        r"the kernel is larger than the padded input",
    ),
    "stride": (
        lambda: ops.conv(x, w, stride=[1], padding=PAIR),
        r"stride has 1 entries; give one for each of 2 dimensions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_operands_that_do_not_fit_are_refused(case: str) -> None:
    build, message = REFUSED[case]
    with pytest.raises(TensorError, match=message):
        build()


def test_integers_are_padded_with_zeros_too() -> None:
    a, b = rng.integers(-9, 9, (1, 2, 4, 5)).astype("int32"), rng.integers(-9, 9, (3, 2, 3, 3)).astype("int32")  # fmt: skip
    p, q = te.placeholder(a.shape, "int32", name="x"), te.placeholder(b.shape, "int32", name="w")
    found = run(ops.conv2d(p, q, padding=1), a, b)
    exact = reference.conv(a.astype(float), b.astype(float), [1, 1], [(1, 1)] * 2, [1, 1], 1)
    assert found.dtype == "int32" and (found == exact).all()
    turned = te.placeholder((2, 3, 3, 3), "int32", name="w")
    assert ops.conv_transpose(p, turned, stride=[2, 2], padding=PAIR).shape == (1, 3, 9, 11)

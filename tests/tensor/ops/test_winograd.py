"""Winograd's convolutions against the direct sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.ops.winograd import winograd_conv, winograd_weights

side = st.tuples(st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([2, 4]), st.integers(1, 2), st.integers(1, 4), st.integers(1, 4),
    st.integers(3, 11), st.integers(3, 11), side, side, st.integers(0, 99),
)  # fmt: skip
def test_tiles_of_any_number_give_the_direct_sum(
    m: int, n: int, c: int, k: int, h: int, w: int, above: tuple[int, int], left: tuple[int, int], seed: int
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal((n, c, h, w)), rng.standard_normal((k, c, 3, 3))
    p = te.placeholder(x.shape, "float64", name="x")
    direct = ops.conv(
        p, te.placeholder(g.shape, "float64", name="w"), stride=[1, 1], padding=[above, left]
    )
    u = te.placeholder((m + 2, m + 2, c, k), "float64", name="u")
    tiled = winograd_conv(p, u, m, padding=[above, left])
    expected = evaluate(Workload.of(direct), [x, g])[0]
    found = evaluate(Workload.of(tiled), [x, winograd_weights(g, m)])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("m", "most"), [(2, 5e-6), (4, 5e-5)])
def test_the_error_in_float32_is_what_the_docstring_says(m: int, most: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 32, 24, 24)).astype(np.float32)
    g = (rng.standard_normal((16, 32, 3, 3)) / np.sqrt(9 * 32)).astype(np.float32)
    p = te.placeholder(x.shape, name="x")
    direct = ops.conv(p, te.placeholder(g.shape, name="w"), stride=[1, 1], padding=[(1, 1)] * 2)
    tiled = winograd_conv(
        p, te.placeholder((m + 2, m + 2, 32, 16), name="u"), m, padding=[(1, 1)] * 2
    )
    exact = evaluate(Workload.of(direct), [x, g], precision="double")[0]
    found = evaluate(Workload.of(tiled), [x, winograd_weights(g, m)])[0]
    assert np.abs(found - exact).max() < most * exact.std()


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, u = te.placeholder((1, 3, 8, 8), name="x"), te.placeholder((4, 4, 3, 5), name="u")
    with pytest.raises(TensorError, match="choose one of 2, 4"):
        winograd_conv(x, u, 3, padding=[(1, 1)] * 2)
    with pytest.raises(TensorError, match="the shapes do not fit"):
        winograd_conv(x, u, 4, padding=[(1, 1)] * 2)
    with pytest.raises(TensorError, match="larger than the padded input"):
        winograd_conv(te.placeholder((1, 3, 2, 8), name="x"), u, 2, padding=[(0, 0)] * 2)
    half = te.placeholder((1, 3, 8, 8), "float16", name="x")
    with pytest.raises(TensorError, match="needs float32 or float64"):
        winograd_conv(half, u, 2, padding=[(1, 1)] * 2)

"""Convolutions with 3x3 kernels by Winograd's minimal filtering: fewer products, more sums.

References
----------
Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2015, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Expr
from tilewright.tensor.ops.linear import padded
from tilewright.tensor.te import Compute, Tensor

__all__ = ["TILES", "winograd_conv", "winograd_weights"]

_INPUT = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
_WEIGHTS = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}
_OUTPUT = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: (
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
}
TILES = tuple(_INPUT)  # outputs of one tile along each axis


def winograd_weights(w: NDArray[Any], m: int) -> NDArray[Any]:
    """Weights as `winograd_conv` wants them, computed in float64.

    Parameters
    ----------
    w : (c_out, c_in, *depth, 3, 3)
    m : {2, 4}
        Outputs of one tile along each axis.

    Returns
    -------
    array of shape (m + 2, m + 2, *depth, c_in, c_out) and the type of `w`
    """
    g = np.asarray(_WEIGHTS[_tile(m)])
    u: NDArray[Any] = np.einsum("pr,kc...rs,qs->pq...ck", g, w.astype(np.float64), g, optimize=True)
    return u.astype(w.dtype)


def _tile(m: int) -> int:
    if m not in TILES:
        raise TensorError(f"winograd(m={m}): choose one of {', '.join(map(str, TILES))}")
    return m


def _row(coefficients: Sequence[float], values: Sequence[Expr]) -> Expr:
    """A sum of multiples without the zeros, products by one left out."""
    out: Expr | None = None
    for c, v in zip(coefficients, values):
        if not c:
            continue
        term = v if abs(c) == 1 else v * abs(float(c))
        if out is None:
            out = term if c > 0 else -term
        else:
            out = out + term if c > 0 else out - term
    assert out is not None
    return out


def _rows(at: Expr, matrix: Sequence[Sequence[float]], values: Sequence[Expr]) -> Expr:
    """The product of row `at` of a matrix with a vector: one of the rows' sums is selected."""
    out = _row(matrix[-1], values)
    for n in reversed(range(len(matrix) - 1)):
        out = te.select(at < n + 1, _row(matrix[n], values), out)
    return out


def winograd_conv(
    x: Tensor, u: Tensor, m: int, *, padding: Sequence[tuple[int, int]], name: str = "Y"
) -> Compute:
    """Convolution with a 3x3 kernel (in the last two dimensions) and stride 1, in tiles of m x m results.

    Each tile takes (m + 2)**2 products of a channel instead of 9 m**2: 2.25 times fewer for m = 2, 4 times
    for m = 4. The error grows: against float64, about 2 and 10 times that of the direct sum in float32.

    Parameters
    ----------
    x : (n, c_in, *d, h, w), float32 or float64; at most one dimension d
    u : (m + 2, m + 2, *kd, c_in, c_out)
        From `winograd_weights`.
    m : {2, 4}
    padding : (before, after) for each spatial dimension
    """
    call, size = f"winograd_conv({list(x.shape)}, {list(u.shape)}, m={m})", _tile(m) + 2
    deep = len(x.shape) - 4  # dimensions besides the tiles'
    if deep not in (0, 1) or len(u.shape) != 4 + deep or u.shape[:2] != (size, size):
        raise TensorError(f"{call}: the shapes do not fit")
    if x.shape[1] != u.shape[-2] or len(padding) != 2 + deep:
        raise TensorError(f"{call}: the shapes do not fit")
    if x.dtype not in (DType.FLOAT32, DType.FLOAT64):
        raise TensorError(f"{call}: needs float32 or float64; the sums would lose too much")
    n, channels, kernel = x.shape[0], x.shape[1], (*u.shape[2 : 2 + deep], 3, 3)
    sizes = [s + b + a - k + 1 for s, (b, a), k in zip(x.shape[2:], padding, kernel)]
    if min(sizes) < 1:
        raise TensorError(f"{call}: the kernel is larger than the padded input")
    tiles = [-(-s // m) for s in sizes[deep:]]
    before, after = [b for b, _ in padding], [a for _, a in padding]
    for d in (deep, deep + 1):
        after[d] = tiles[d - deep] * m + 2 - x.shape[2 + d] - before[d]
    source = padded(x, before, after, 0.0, f"{name}.pad")
    tile = _tiles(source, m, tiles, name)
    c = te.reduce_axis(channels, "ic")
    along = [te.reduce_axis(k, "kd") for k in kernel[:deep]]

    def multiply(b: Expr, *at: Expr) -> Expr:
        d, (i, p, q, j, o) = at[:deep], at[deep:]
        here = [v + k.var for v, k in zip(d, along)]
        weight = u[(p, q, *(k.var for k in along), c.var, o)]
        return te.sum(tile[(b, *here, i, p, q, c.var, j)] * weight, [*along, c])

    lead = ["n", *["od"] * deep]
    product = te.compute(
        (n, *sizes[:deep], tiles[0], size, size, tiles[1], u.shape[-1]), multiply, f"{name}.product",
        axes=[*lead, "th", "p", "q", "tw", "oc"],
    )  # fmt: skip
    places = _results(product, m, sizes, name)

    def final(b: Expr, o: Expr, *at: Expr) -> Expr:
        return places[(b, *at, o)]

    return te.compute(
        (n, u.shape[-1], *sizes), final, name, axes=["n", "oc", *["od"] * deep, "oh", "ow"]
    )


def _tiles(source: Tensor, m: int, tiles: Sequence[int], name: str) -> Compute:
    """Transformed inputs, (n, *d, tiles of rows, p, q, c, tiles of columns), by way of the sums of rows."""
    size, bt, (n, channels, *depth) = m + 2, _INPUT[m], source.shape[:-2]
    deep = ["d"] * len(depth)

    def sum_rows(b: Expr, c: Expr, *at: Expr) -> Expr:
        *d, i, p, v = at
        return _rows(p, bt, [source[(b, c, *d, i * m + r, v)] for r in range(size)])

    rows = te.compute(
        (n, channels, *depth, tiles[0], size, tiles[1] * m + 2), sum_rows, f"{name}.rows",
        axes=["n", "c", *deep, "th", "p", "v"],
    )  # fmt: skip

    def sum_columns(b: Expr, *at: Expr) -> Expr:
        *d, i, p, q, c, j = at
        return _rows(q, bt, [rows[(b, c, *d, i, p, j * m + r)] for r in range(size)])

    return te.compute(
        (n, *depth, tiles[0], size, size, channels, tiles[1]), sum_columns, f"{name}.tile",
        axes=["n", *deep, "th", "p", "q", "c", "tw"],
    )  # fmt: skip


def _results(product: Tensor, m: int, sizes: Sequence[int], name: str) -> Compute:
    """Products transformed back, channels last: (n, *d, h, w, c_out)."""
    at, size = _OUTPUT[m], m + 2
    *lead, rows, _, _, columns, channels = product.shape
    deep = ["od"] * (len(lead) - 1)

    def back(*axes: Expr) -> Expr:
        *d, i, a, q, j, o = axes
        return _rows(a, at, [product[(*d, i, p, q, j, o)] for p in range(size)])

    half = te.compute(
        (*lead, rows, m, size, columns, channels), back, f"{name}.columns",
        axes=["n", *deep, "th", "a", "q", "tw", "oc"],
    )  # fmt: skip

    def result(*axes: Expr) -> Expr:
        *d, h, w, o = axes
        parts = [half[(*d, h // m, h % m, q, w // m, o)] for q in range(size)]
        return _rows(w % m, at, parts)

    return te.compute(
        (lead[0], *sizes, channels), result, f"{name}.places", axes=["n", *deep, "oh", "ow", "oc"]
    )

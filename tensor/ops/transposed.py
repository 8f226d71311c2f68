"""Transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.axes import check_lengths
from tilewright.tensor.ops.linear import padded
from tilewright.tensor.ops.precision import wide
from tilewright.tensor.te import Compute, Tensor

__all__ = ["conv_transpose"]


def conv_transpose(
    x: Tensor,
    w: Tensor,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    output_padding: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    name: str = "Y",
) -> Compute:
    """Transposed convolution of any number of spatial dimensions, channels first.

    Results whose places leave the same remainder when divided by the stride read the same weights,
    so each remainder (phase) is a convolution of its own without the zeros that a dilated input
    would multiply; a last stage interleaves the phases.

    Parameters
    ----------
    x : (n, c_in, *spatial)
    w : (c_in, c_out / groups, *kernel)
    stride, dilation : one integer a spatial dimension
    padding : (before, after) for each spatial dimension, cut from the result
    output_padding : one integer a spatial dimension, added behind the result
    groups : int

    Notes
    -----
    Result size: (n - 1) * stride - before - after + dilation * (k - 1) + 1 + output_padding.
    """
    dims = len(x.shape) - 2
    call = f"conv_transpose({list(x.shape)}, {list(w.shape)}, groups={groups})"
    if not 1 <= dims <= 3 or len(w.shape) != len(x.shape):
        raise TensorError(f"{call}: needs one to three spatial dimensions, the same number in both")
    more, dilation = output_padding or [0] * dims, dilation or [1] * dims
    check_lengths(call, dims, stride=stride, padding=padding, output_padding=more, dilation=dilation)  # fmt: skip
    c_in, per_group, *kernel = w.shape
    if x.shape[1] != c_in or c_in % groups:
        raise TensorError(f"{call}: the channels do not fit")
    if any(d != 1 for d in dilation):
        w = _spread(w, dilation, f"{name}.dilated")
        kernel = list(w.shape[2:])
    sizes = [
        (n - 1) * s - b - a + k + p
        for n, s, (b, a), k, p in zip(x.shape[2:], stride, padding, kernel, more)
    ]
    if min(sizes) < 1:
        raise TensorError(f"{call}: the padding cuts everything away")
    # y[o] = sum of x[i] * w[o + before - i * stride]; with o = stride * q + r and
    # m = (r + before) // stride the taps t of phase r are w[(r + before) % stride + stride * t] * x[q + m - t]
    taps = [-(-k // s) for k, s in zip(kernel, stride)]
    counts = [-(-n // s) for n, s in zip(sizes, stride)]
    ahead = [(s - 1 + b) // s for s, (b, _) in zip(stride, padding)]
    before = [t - 1 for t in taps]
    after = [max(0, q + m - n) for q, m, n in zip(counts, ahead, x.shape[2:])]
    nothing = te.identity("sum", x.dtype)
    source = padded(x, before, after, nothing, f"{name}.pad")
    full = [t * s for t, s in zip(taps, stride)]
    weights = padded(w, [0] * dims, [f - k for f, k in zip(full, kernel)], nothing, f"{name}.w")
    letters = "dhw"[-dims:]
    own = c_in // groups
    channel = te.reduce_axis(own, "ic")
    tap = [te.reduce_axis(t, f"t{c}") for t, c in zip(taps, letters)]

    def phase(n: Expr, oc: Expr, *place: Expr) -> Expr:
        remainders, quotients = place[:dims], place[dims:]
        moved = [r + b for r, (b, _) in zip(remainders, padding)]
        at = [
            q + m // s + (t - 1) - v.var
            for q, m, s, t, v in zip(quotients, moved, stride, taps, tap)
        ]
        of = [m % s + v.var * s for m, s, v in zip(moved, stride, tap)]
        ic = channel.var if groups == 1 else oc // per_group * own + channel.var
        inner = oc if groups == 1 else oc % per_group
        return te.sum(wide(source[(n, ic, *at)]) * wide(weights[(ic, inner, *of)]), [channel, *tap])

    names = ["n", "oc", *(f"r{c}" for c in letters), *(f"q{c}" for c in letters)]
    shape = (x.shape[0], per_group * groups, *stride, *counts)
    phases = te.compute(shape, phase, f"{name}.phases", axes=names)

    def interleave(n: Expr, oc: Expr, *place: Expr) -> Expr:
        low = [p % s if s > 1 else Const(0) for p, s in zip(place, stride)]
        return te.cast(phases[(n, oc, *low, *(p // s for p, s in zip(place, stride)))], x.dtype)

    axes = ["n", "oc", *(f"o{c}" for c in letters)]
    return te.compute((x.shape[0], per_group * groups, *sizes), interleave, name, axes=axes)


def _spread(w: Tensor, dilation: Sequence[int], name: str) -> Compute:
    """Weights with zeros between them: correct, though the zeros are multiplied too."""
    shape = (*w.shape[:2], *((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)))

    def body(i: Expr, o: Expr, *place: Expr) -> Expr:
        tests = [te.equal(p % d, 0) for p, d in zip(place, dilation) if d > 1]
        at = [p // d if d > 1 else p for p, d in zip(place, dilation)]
        return te.select(te.logical_and(*tests), w[(i, o, *at)], te.cast(0, w.dtype))

    return te.compute(shape, body, name)

"""Random configurations of every operator in `tensor.ops`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.operators.draws import REAL, Draw

from tilewright.tensor import ops, te
from tilewright.tensor.expr import Expr
from tilewright.tensor.te import Compute, Tensor

__all__ = ["OPERATORS"]

EXACT = ("int32", "int64", "int8", "uint8")
ANY = (*REAL, *EXACT, "bool")


def matmul(d: Draw) -> Compute:
    m, n, k = d.size(53), d.size(67), d.size(83)
    dtype = d.one((*REAL, *REAL, "int32", "int64"))
    batch = tuple(d.size(5) for _ in range(d.one((0, 0, 0, 1, 2))))
    left, right = (d.dropped(batch), batch) if d.flag() else (batch, d.dropped(batch))
    ta, tb = d.flag(0.3), d.flag(0.3)
    a = d.tensor("a", *left, *((k, m) if ta else (m, k)), dtype=dtype)
    b = d.tensor("b", *right, *((n, k) if tb else (k, n)), dtype=dtype, const=d.flag())
    out = ops.matmul(a, b, transpose_a=ta, transpose_b=tb)
    return epilogue(d, out, (n,), dtype)


def epilogue(d: Draw, out: Compute, bias: tuple[int, ...], dtype: str) -> Compute:
    """Often something to compute with the result of a reduction."""
    kind = d.integer(0, 4)
    if kind == 0:
        return ops.elementwise("z", lambda v: te.maximum(v, 0), out)
    if kind == 1:
        add = d.tensor("bias", *bias, dtype=dtype, const=True)
        return ops.elementwise("z", lambda v, b: te.maximum(v + b, 0), out, add)
    if kind == 2:
        other = d.tensor("other", *out.shape, dtype=dtype)
        return ops.elementwise("z", lambda v, o: v * 2 + o, out, other)
    return out


def _window(d: Draw, dims: int) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    kernel = [d.one((1, 1, 2, 3, 3, 4, 5)) for _ in range(dims)]
    stride = [d.one((1, 1, 1, 2, 3)) for _ in range(dims)]
    dilation = [d.one((1, 1, 1, 2, 3)) for _ in range(dims)]
    padding = [
        (d.integer(0, k - 1), d.integer(0, k - 1)) if d.flag(0.6) else (0, 0) for k in kernel
    ]
    return kernel, stride, dilation, padding


def _space(d: Draw, kernel: list[int], dilation: list[int]) -> list[int]:
    most = {1: 53, 2: 19, 3: 9}[len(kernel)]
    return [d.size(most) + f * (k - 1) for k, f in zip(kernel, dilation)]


def conv(d: Draw) -> Compute:
    dims = d.one((1, 2, 2, 2, 3))
    kernel, stride, dilation, padding = _window(d, dims)
    kind, groups = d.one(("plain", "plain", "grouped", "depthwise")), 1
    c_in, c_out = d.size(17), d.size(23)
    if kind == "grouped":
        groups = d.integer(2, 4)
        c_in, c_out = d.size(5) * groups, d.size(7) * groups
    elif kind == "depthwise":
        groups, multiplier = d.size(19), d.one((1, 1, 2))
        c_in, c_out = groups, groups * multiplier
    dtype = d.one((*REAL, *REAL, "int32"))
    x = d.tensor("x", d.one((1, 1, 2, 3)), c_in, *_space(d, kernel, dilation), dtype=dtype)
    w = d.tensor("w", c_out, c_in // groups, *kernel, dtype=dtype, const=d.flag(0.8))
    out = ops.conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return epilogue(d, out, (c_out, *[1] * dims), dtype)


def conv_transpose(d: Draw) -> Compute:
    dims = d.one((1, 2, 2, 3))
    kernel = [d.one((1, 2, 3, 4, 5)) for _ in range(dims)]
    stride = [d.one((1, 2, 2, 3)) for _ in range(dims)]
    more = [d.integer(0, s - 1) for s in stride]
    groups = d.one((1, 1, 2, 3))
    c_in, per_group = d.size(9) * groups, d.size(7)
    space = [d.size({1: 31, 2: 9, 3: 5}[dims], 2) for _ in range(dims)]
    cut = [(d.integer(0, min(1, k - 1)), d.integer(0, min(1, k - 1))) for k in kernel]
    dtype = d.one(REAL)
    x = d.tensor("x", d.one((1, 1, 2)), c_in, *space, dtype=dtype)
    w = d.tensor("w", c_in, per_group, *kernel, dtype=dtype, const=d.flag(0.8))
    out = ops.conv_transpose(x, w, stride=stride, padding=cut, output_padding=more, groups=groups)
    return epilogue(d, out, (per_group * groups, *[1] * dims), dtype)


def pool(d: Draw) -> Compute:
    dims = d.one((1, 2, 2, 3))
    kernel, stride, _, padding = _window(d, dims)
    padding = [(min(b, k // 2), min(a, k // 2)) for (b, a), k in zip(padding, kernel)]
    kind = d.one(("max", "average"))
    dtype = d.one(REAL) if kind == "average" else d.one((*REAL, "int32", "int8", "uint8"))
    x = d.tensor("x", d.one((1, 2)), d.size(9), *_space(d, kernel, [1] * dims), dtype=dtype)
    return ops.pool(
        x, kind, kernel=kernel, stride=stride, padding=padding, ceil_mode=d.flag(0.3), count_include_pad=d.flag(0.3)
    )  # fmt: skip


def global_pool(d: Draw) -> Compute:
    x = d.tensor(
        "x", d.one((1, 2, 3)), d.size(37), *d.shape(d.integer(1, 3), 300), dtype=d.one(REAL)
    )
    return ops.global_pool(x, d.one(("max", "average")))


def reduce(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    op = d.one(("sum", "prod", "max", "min"))
    dtype = d.one((*REAL, *EXACT) if op != "prod" else (*REAL, "int64"))
    x = d.tensor("x", *d.shape(rank, 300 if op == "prod" else 5000), dtype=dtype)
    return ops.reduce(x, op, d.axes(rank), keepdims=d.flag())


def mean(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    return ops.mean(
        d.tensor("x", *d.shape(rank), dtype=d.one(REAL)), d.axes(rank), keepdims=d.flag()
    )


def softmax(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    x = d.tensor("x", *d.shape(rank, 3000), dtype=d.one(REAL))
    axis = d.integer(-rank, rank - 1) if d.flag() else -1
    return d.one((ops.softmax, ops.softmax, ops.log_softmax))(x, axis=axis)


def norm(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    dtype, shape = d.one(REAL), d.shape(rank, 3000)
    axis = d.integer(1, rank) if d.flag() else 1
    own = shape[rank - axis :]
    scale = d.tensor("g", *own, dtype=dtype, const=True) if d.flag(0.7) else None
    x = d.tensor("x", *shape, dtype=dtype)
    if d.flag():
        return ops.rms_norm(x, scale, axis=-axis)
    bias = d.tensor("b", *own, dtype=dtype, const=True) if d.flag(0.7) else None
    return ops.layer_norm(x, scale, bias, axis=-axis)


def _smooth(d: Draw) -> Callable[..., Expr]:
    return d.one((
        lambda a, b: te.exp(a) * b, lambda a, b: te.tanh(a) + b, lambda a, b: te.erf(a) * b + a, lambda a, b: te.sigmoid(a - b),
        lambda a, b: te.log(te.abs(a) + 0.1) * b, lambda a, b: te.sqrt(te.abs(a)) - b, lambda a, b: te.sin(a) * te.cos(b),
        lambda a, b: (te.abs(a) + 0.5) ** b, lambda a, b: a / (te.abs(b) + 1.0), lambda a, b: te.floor(a * 3.0) + te.ceil(b * 3.0),
        lambda a, b: te.select(a < b, a * a, b), lambda a, b: te.rsqrt(te.abs(a) + 0.5) * b, lambda a, b: te.maximum(a, b) - te.minimum(a, 0.25),
    ))  # fmt: skip


def _exact(d: Draw) -> Callable[..., Expr]:
    return d.one((
        lambda a, b: a * b + a, lambda a, b: a - b, lambda a, b: te.maximum(a, b), lambda a, b: te.minimum(a, b) + 1,
        lambda a, b: te.select(a < b, a, b * 3), lambda a, b: a // 3 + b % 5, lambda a, b: te.select(te.logical_and(a < b, b < 5), b, a),
    ))  # fmt: skip


def elementwise(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 4), 4000)
    first, second = (shape, d.dropped(shape)) if d.flag() else (d.dropped(shape), shape)
    kind = d.one((*REAL, *REAL, *EXACT, "bool"))
    a, b = d.tensor("a", *first, dtype=kind), d.tensor("b", *second, dtype=kind)
    if kind == "bool":
        return ops.elementwise("y", lambda p, q: te.logical_or(p, te.logical_not(q)), a, b)
    return ops.elementwise("y", _exact(d) if kind in EXACT else _smooth(d), a, b)


def cast(d: Draw) -> Compute:
    x = d.tensor(
        "x",
        *d.shape(d.integer(1, 3), 3000),
        dtype=d.one(("float32", "float64", "int32", "int64", "int8", "uint8", "bool")),
    )
    to = d.one(("float32", "float64", "int32", "int64", "bool"))
    return ops.elementwise("y", lambda v: te.cast(v, to), x)


def transpose(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    return ops.transpose(d.tensor("x", *d.shape(rank), dtype=d.one(ANY)), d.order(rank))


def reshape(d: Draw) -> Compute:
    factors = [d.one((1, 2, 2, 3, 3, 5, 7)) for _ in range(5)]

    def grouped() -> list[int]:
        dims = [1] * d.integer(1, 4)
        for f in factors:
            dims[d.integer(0, len(dims) - 1)] *= f
        return dims

    return ops.reshape(d.tensor("x", *grouped(), dtype=d.one(ANY)), grouped())


def concat(d: Draw) -> Compute:
    rank = d.integer(1, 4)
    shape, axis, dtype = list(d.shape(rank, 1500)), d.integer(-rank, rank - 1), d.one(ANY)
    parts: list[Tensor] = []
    for n in range(d.integer(1, 4)):
        shape[axis] = d.size(19)
        parts.append(d.tensor(f"x{n}", *shape, dtype=dtype))
    return ops.concat(parts, axis)


def slice_(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 4))
    starts, sizes, steps = [], [], []
    for n in shape:
        step = d.one((1, 1, 2, 3, -1, -2))
        first = d.integer(0, n - 1)
        room = (n - 1 - first) // step if step > 0 else first // -step
        starts.append(first)
        steps.append(step)
        sizes.append(d.integer(max(1, room), room + 1))
    return ops.slice_(d.tensor("x", *shape, dtype=d.one(ANY)), starts, sizes, steps)


def pad(d: Draw) -> Compute:
    shape, mode = d.shape(d.integer(1, 4), 1500), d.one(("constant", "edge", "reflect"))
    most = [min(3, n - 1) if mode == "reflect" else 3 for n in shape]
    before, after = ([d.integer(0, m) for m in most] for _ in range(2))
    dtype = d.one((*REAL, "int32", "int64", "int8", "uint8"))
    return ops.pad(
        d.tensor("x", *shape, dtype=dtype), before, after, mode=mode, value=d.integer(0, 3)
    )


def gather(d: Draw) -> Compute:
    rank = d.integer(1, 3)
    x = d.tensor("x", *d.shape(rank, 2000), dtype=d.one(ANY), const=d.flag())
    places = d.shape(d.integer(0, 2), 40)
    i = d.tensor("i", *places, dtype=d.one(("int64", "int32")))
    return ops.gather(x, i, axis=d.integer(-rank, rank - 1))


def expand(d: Draw) -> Compute:
    shape = d.shape(d.integer(1, 4), 4000)
    return ops.expand(d.tensor("x", *d.dropped(shape), dtype=d.one(ANY)), shape)


OPERATORS: Mapping[str, Callable[[Draw], Compute]] = {
    f.__name__.rstrip("_"): f
    for f in (
        matmul, conv, conv_transpose, pool, global_pool, reduce, mean, softmax, norm, elementwise, cast, transpose,
        reshape, concat, slice_, pad, gather, expand,
    )
}  # fmt: skip

"""The reference evaluator against plain NumPy and plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tilewright.tensor.evaluate as module
from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te
from tilewright.tensor import expr as ex
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Expr

rng = np.random.default_rng(0)
Array = NDArray[Any]


def floats(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def run(out: te.Compute, *arrays: Array, double: bool = False) -> Array:
    return evaluate(Workload.of(out), arrays, precision="double" if double else "native")[0]


def test_a_matrix_product_is_numpys() -> None:
    a, b = floats(17, 31), floats(31, 13)
    out = ops.matmul(te.placeholder(a.shape, name="a"), te.placeholder(b.shape, name="b"))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(run(out, a, b, double=True), exact, rtol=1e-13)
    np.testing.assert_array_equal(run(out, a, b), exact.astype(np.float32))


def test_memory_order_does_not_matter() -> None:
    a, b = floats(6, 8), floats(8, 5)
    out = ops.matmul(te.placeholder(a.shape, name="a"), te.placeholder(b.shape, name="b"))
    strided = np.repeat(b, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(run(out, np.asfortranarray(a), strided), run(out, a, b))


def _loops(stage: te.Compute, data: dict[te.Tensor, Array]) -> Array:
    """A sum of a product of two reads, element by element."""
    body = stage.body
    assert isinstance(body, ex.Reduce) and isinstance(body.value, ex.Binary)
    out = np.zeros(stage.shape)
    extents = [n for _, n in body.axes]
    for place in np.ndindex(*stage.shape):
        for at in np.ndindex(*extents):
            known = dict(zip(stage.axes, place)) | {v: p for (v, _), p in zip(body.axes, at)}
            mapping = {v: ex.as_expr(n) for v, n in known.items()}
            product = 1.0
            for r in (body.value.a, body.value.b):
                assert isinstance(r, ex.Read)
                index = tuple(ex.const_value(ex.substitute(i, mapping)) for i in r.indices)
                product *= float(data[r.tensor][index])
            out[place] += product
    return out


K, L = te.reduce_axis(3, "k"), te.reduce_axis(2, "l")
A, B = te.placeholder((5, 6), name="a"), te.placeholder((7, 4), name="b")
PRODUCTS: dict[str, te.Compute] = {
    "window": te.compute((3,), lambda i: te.sum(A[i + L, 2 * K + 1] * B[2 * L + K, 0], [K, L])),
    "diagonal": te.compute((4,), lambda i: te.sum(A[i, i] * B[K, i], K)),
    "outer axis unused": te.compute((2, 3, 2), lambda h, i, j: te.sum(A[i, K] * B[K, 1], K)),
    "reduced axis unused": te.compute((3,), lambda i: te.sum(A[i, K] * B[K, 1], [K, L])),
    "descending": te.compute((3,), lambda i: te.sum(A[4 - i, K] * B[2 - K, 3 - i], K)),
    "divided": te.compute((4,), lambda i: te.sum(A[i // 2, K] * B[i % 3 + L, 0], [K, L])),
    "scalar": te.compute((), lambda: te.sum(A[K, L] * B[K, L], [K, L])),
    "square": te.compute((3,), lambda i: te.sum(A[i, K] * A[i, K], K)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_sum_of_products_is_that_of_loops(name: str) -> None:
    out = PRODUCTS[name]
    w = Workload.of(out)
    data: dict[te.Tensor, Array] = {p: floats(*p.shape) for p in w.inputs}
    found = evaluate(w, list(data.values()), precision="double")[0]
    np.testing.assert_allclose(found, _loops(out, data), rtol=1e-12, atol=1e-14)


def test_a_large_product_in_shares_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = floats(2, 3, 9, 10), floats(4, 3, 3, 3)
    out = ops.conv2d(te.placeholder(x.shape, name="x"), te.placeholder(w.shape, name="w"))
    whole = run(out, x, w)
    for slab in (1, 50, 700):
        monkeypatch.setattr(module, "SLAB", slab)
        np.testing.assert_allclose(run(out, x, w), whole, rtol=1e-6)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("slab", [1, 7, 40, 10_000])
def test_reductions_in_blocks_of_any_size_agree(
    op: str, slab: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLAB", slab)
    x = floats(3, 4, 5, 2)
    p = te.placeholder(x.shape, name="x")
    numpys: dict[str, Callable[..., Any]]
    numpys = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
    for axes in [(0,), (3,), (1, 2), (0, 1, 2, 3)]:
        out = ops.reduce(p, op, axes, keepdims=False)
        exact = numpys[op](x.astype(np.float64), axis=axes)
        np.testing.assert_allclose(run(out, x, double=True), exact, rtol=1e-12)


@pytest.mark.parametrize("slab", [1, 6, 23, 10_000])
def test_elementwise_stages_in_blocks_of_any_size_agree(
    slab: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLAB", slab)
    x = floats(3, 4, 5)
    out = ops.transpose(te.placeholder(x.shape, name="x"), [2, 0, 1])
    np.testing.assert_array_equal(run(out, x), x.transpose(2, 0, 1))


UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "abs": np.abs,
    "floor": np.floor, "ceil": np.ceil, "round": np.round, "neg": np.negative, "isnan": np.isnan,
    "rsqrt": lambda v: 1 / np.sqrt(v), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_unary_functions_are_numpys(op: str) -> None:
    x = np.array([0.0, 0.5, 1.5, 2.5, -0.5, -3.0, 80.0, -800.0, np.inf, -np.inf, np.nan])
    p = te.placeholder(x.shape, "float64", name="x")
    with np.errstate(all="ignore"):
        exact = UNARY[op](x)
    np.testing.assert_array_equal(run(ops.elementwise("y", lambda v: ex.unary(op, v), p), x), exact)


def test_every_unary_operation_has_a_case() -> None:
    assert set(UNARY) | {"not"} == ex.UNARY_OPS


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_wrap_and_divide_as_in_python(dtype: str) -> None:
    a = rng.integers(0, 100, 50).astype(dtype)
    b = rng.integers(1, 100, 50).astype(dtype)
    if dtype != "uint8":
        a, b = a - np.array(50, dtype), b * np.array(rng.choice([-1, 1], 50), dtype)
    p, q = te.placeholder((50,), dtype, name="a"), te.placeholder((50,), dtype, name="b")
    cases: list[tuple[Callable[..., Any], Array]] = [
        (lambda u, v: u - v, a - b),
        (lambda u, v: u * v * v + 3, a * b * b + np.array(3, dtype)),
        (lambda u, v: u // v, np.array([int(s) // int(t) for s, t in zip(a, b)], dtype)),
        (lambda u, v: u % v, np.array([int(s) % int(t) for s, t in zip(a, b)], dtype)),
        (lambda u, v: te.minimum(u, v), np.minimum(a, b)),
    ]
    for f, exact in cases:
        found = run(ops.elementwise("y", f, p, q), a, b)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, exact)


def test_integer_reductions_keep_their_type() -> None:
    x = np.array([[100, 100, 100], [-5, 3, 1]], np.int8)
    p = te.placeholder(x.shape, "int8", name="x")
    np.testing.assert_array_equal(
        run(ops.reduce(p, "sum", [1], keepdims=False), x), np.array([44, -1], np.int8)
    )
    np.testing.assert_array_equal(run(ops.reduce(p, "min", [0]), x), x.min(axis=0, keepdims=True))


def test_casts_truncate_and_round_to_the_type() -> None:
    x = np.array([1.9, -1.9, 0.0, 3.14159], np.float32)
    p = te.placeholder((4,), name="x")
    for dtype in ("int32", "bool", "float16", "bfloat16"):
        out = te.compute((4,), lambda i, dtype=dtype: te.cast(p[i], dtype))
        expected = x.astype(out.dtype.numpy)
        assert run(out, x).dtype == out.dtype.numpy
        np.testing.assert_array_equal(run(out, x), expected)


def test_literals_are_those_of_their_type() -> None:
    x = np.full(4, 0.1, np.float32)
    p = te.placeholder((4,), name="x")
    assert run(te.compute((4,), lambda i: te.equal(p[i], 0.1)), x).all()


def test_stages_are_rounded_unless_double_is_asked_for() -> None:
    x = np.full(3, 1 / 3, np.float16)
    p = te.placeholder((3,), "float16", name="x")
    third = ops.elementwise("t", lambda v: v * v, p)
    out = ops.elementwise("y", lambda v: v * v, third)
    exact = x.astype(np.float64) ** 4
    assert run(out, x, double=True).dtype == np.float64
    np.testing.assert_array_equal(run(out, x, double=True), exact)
    stage = (x.astype(np.float64) ** 2).astype(np.float16)
    found = run(out, x)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, (stage.astype(np.float64) ** 2).astype(np.float16))


def test_a_select_guards_reads_out_of_bounds() -> None:
    x = floats(6)
    p = te.placeholder((6,), name="x")
    out = te.compute(
        (10,),
        lambda i: te.select(te.logical_and(i >= 2, i < 8), te.select(i < 7, p[i - 2], p[i - 7]), 9.0),
    )  # fmt: skip
    expected = np.concatenate([[9, 9], x[:5], x[:1], [9, 9]]).astype(np.float32)
    np.testing.assert_array_equal(run(out, x), expected)


@pytest.mark.parametrize("shift", [1, -1])
def test_an_unguarded_read_out_of_bounds_is_refused(shift: int) -> None:
    p = te.placeholder((6,), name="x")
    out = te.compute((6,), lambda i: te.select(i < 6 + shift, p[i + shift], 0.0) + p[i])
    with pytest.raises(TensorError, match=r"x is read outside of its 6 elements in dimension 0"):
        run(out, floats(6))


def test_tensors_of_rank_zero_are_read_and_made() -> None:
    s, x = te.placeholder((), name="s"), te.placeholder((3,), name="x")
    out = ops.elementwise("y", lambda u, v: u * v, s, x)
    a = floats(3)
    np.testing.assert_array_equal(run(out, np.array(2.0, np.float32), a), 2 * a)
    k = te.reduce_axis(3)
    total = te.compute((), lambda: te.sum(x[k], k))
    assert run(total, a).shape == ()


def test_all_outputs_are_returned_in_order() -> None:
    x = te.placeholder((3,), name="x")
    y = ops.elementwise("y", te.exp, x)
    z = ops.elementwise("z", lambda v: v + 1.0, y)
    a = floats(3)
    first, second = evaluate(Workload((x,), (z, y)), [a])
    np.testing.assert_array_equal(second, np.exp(a.astype(np.float64)).astype(np.float32))
    np.testing.assert_array_equal(first, second + np.float32(1))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], r"evaluate: 0 arrays for 1 inputs"),
        ([np.zeros((3, 2), np.float32)], r"input x is float32\[2, 3\], got float32\[3, 2\]"),
        ([np.zeros((2, 3))], r"input x is float32\[2, 3\], got float64\[2, 3\]"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: list[Array], message: str) -> None:
    w = Workload.of(ops.elementwise("y", te.exp, te.placeholder((2, 3), name="x")))
    with pytest.raises(TensorError, match=message):
        evaluate(w, arrays)


# ------------------------------------------------- random expressions against plain Python

X, N = te.placeholder((3, 4), "float64", name="x"), te.placeholder((5,), "int64", name="n")
XS = np.arange(12.0).reshape(3, 4) / 4 - 1
NS = np.array([3, -1, 0, 7, -4])
Place = tuple[int, int]
Int = tuple[Expr, Callable[[Place], int]]
Float = tuple[Expr, Callable[[Place], float]]
AXES = (ex.Var("i0"), ex.Var("i1"))


def _number(n: int) -> Int:
    return ex.as_expr(n), lambda p: n


def _axis(d: int) -> Int:
    return AXES[d], lambda p: p[d]


def _int(op: str, a: Int, b: Int) -> Int:
    (ea, fa), (eb, fb) = a, b
    match op:
        case "add":
            return ea + eb, lambda p: fa(p) + fb(p)
        case "sub":
            return ea - eb, lambda p: fa(p) - fb(p)
        case "mul":
            return ea * eb, lambda p: fa(p) * fb(p)
        case "div":
            return ea // 3, lambda p: fa(p) // 3
        case "mod":
            return ea % 5, lambda p: fa(p) % 5
        case "min":
            return te.minimum(ea, eb), lambda p: min(fa(p), fb(p))
        case "max":
            return te.maximum(ea, eb), lambda p: max(fa(p), fb(p))
    return N[ea % 5], lambda p: int(NS[fa(p) % 5])


ints: st.SearchStrategy[Int] = st.recursive(
    st.one_of(st.integers(-3, 3).map(_number), st.integers(0, 1).map(_axis)),
    lambda inner: st.builds(
        _int, st.sampled_from(["add", "sub", "mul", "div", "mod", "min", "max", "read"]), inner, inner
    ),
    max_leaves=5,
)  # fmt: skip


def _read(a: Int, b: Int) -> Float:
    return X[a[0] % 3, b[0] % 4], lambda p: float(XS[a[1](p) % 3, b[1](p) % 4])


def _float(op: str, a: Float, b: Float, n: Int) -> Float:
    (ea, fa), (eb, fb), (en, fn) = a, b, n
    match op:
        case "add":
            return ea + eb, lambda p: fa(p) + fb(p)
        case "sub":
            return ea - eb, lambda p: fa(p) - fb(p)
        case "mul":
            return ea * eb, lambda p: fa(p) * fb(p)
        case "max":
            return te.maximum(ea, eb), lambda p: max(fa(p), fb(p))
        case "abs":
            return te.abs(ea), lambda p: abs(fa(p))
        case "cast":
            return ea + te.cast(en, "float64"), lambda p: fa(p) + fn(p)
        case "select":
            return te.select(en < 1, ea, eb), lambda p: fa(p) if fn(p) < 1 else fb(p)
    # in bounds only where the condition holds
    where = te.logical_and(en >= 0, en < 3)
    return (
        te.select(where, X[en, 0], eb),
        lambda p: float(XS[fn(p), 0]) if 0 <= fn(p) < 3 else fb(p),
    )


expressions: st.SearchStrategy[Float] = st.recursive(
    st.builds(_read, ints, ints),
    lambda inner: st.builds(
        _float, st.sampled_from(["add", "sub", "mul", "max", "abs", "cast", "select", "guard"]), inner, inner, ints
    ),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(expressions, st.sampled_from([None, "sum", "max", "min"]))
def test_random_expressions_have_the_value_of_plain_python(pair: Float, op: str | None) -> None:
    expr, value = pair
    grid = [[value((i, j)) for j in range(3)] for i in range(4)]
    if op is None:
        out = te.compute((4, 3), lambda *i: ex.substitute(expr, dict(zip(AXES, i))), name="y")
        expected = np.array(grid)
    else:
        r = te.reduce_axis(3, "r")
        f = {"sum": te.sum, "max": te.max, "min": te.min}[op]
        out = te.compute((4,), lambda i: f(ex.substitute(expr, {AXES[0]: i, AXES[1]: r.var}), r), name="y")  # fmt: skip
        pythons: dict[str, Callable[[list[float]], float]]
        pythons = {"sum": math.fsum, "max": max, "min": min}
        expected = np.array([pythons[op](row) for row in grid])
    w = Workload.of(out)
    found = evaluate(w, [XS if p is X else NS for p in w.inputs])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def test_what_is_rounded_to_an_integer_is_rounded_to_its_own_type_first() -> None:
    x = te.placeholder((200_000,), name="x")
    w = Workload.of(
        te.compute((200_000,), lambda i: te.cast(te.round(x[i] * 0.7), "int32"), name="y")
    )
    data = np.random.default_rng(0).uniform(-255, 255, 200_000).astype(np.float32)
    data[:400] = ((np.arange(400) + 0.5) / np.float32(0.7)).astype(np.float32)  # next to the middle
    expected = np.round(data * np.float32(0.7)).astype(np.int32)  # float32 arithmetic
    wide = np.round(data.astype(np.float64) * np.float32(0.7)).astype(np.int32)
    assert (wide != expected).any()
    for precision in ("native", "double"):
        np.testing.assert_array_equal(evaluate(w, [data], precision=precision)[0], expected)

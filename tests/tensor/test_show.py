"""The text of expressions: valid Python that groups as the expression does."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tensor import expr as ex
from tilewright.tensor import te
from tilewright.tensor.expr import Expr, Var, as_expr

i, j = Var("i"), Var("j")
x, y = (te.placeholder((8,), name=n)[i] for n in "xy")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i * 64 + j * 8 - 3, "i*64 + j*8 - 3"),
        (-i, "-i"),
        (i // 2 * 4, "i // 2*4"),
        ((i + 1) // 2, "(i + 1) // 2"),
        (-(i // 2), "-(i // 2)"),
        ((-i) // 2, "-i // 2"),
        ((i // 2) * (j % 3), "i // 2*(j % 3)"),
        (((i // 2) * j) % 3, "i // 2*j % 3"),
        (ex.minimum(i, 4), "min(4, i)"),
        (x + y * 2.0, "x[i] + y[i] * 2.0"),
        ((x + y) * 2.0, "(x[i] + y[i]) * 2.0"),
        (x - (y - 1.0), "x[i] - (y[i] - 1.0)"),
        ((-x) ** 2.0, "(-x[i]) ** 2.0"),
        (-(x**2.0), "-x[i] ** 2.0"),
        (as_expr(-2.0) ** x, "(-2.0) ** x[i]"),
        ((x**y) ** 2.0, "(x[i] ** y[i]) ** 2.0"),
        (x ** (y**2.0), "x[i] ** y[i] ** 2.0"),
        (te.exp(-x), "exp(-x[i])"),
        (te.select(i < 4, x, 0.0), "select(i < 4, x[i], 0.0)"),
        (te.cast(i, "float32"), "float32(i)"),
        (te.logical_and(i < 4, j <= 2), "i < 4 and j <= 2"),
        (te.sum(x, te.reduce_axis(4, "k")), "sum(x[i], axis=[k])"),
    ],
)
def test_an_expression_prints_as_python(expr: Expr, text: str) -> None:
    assert str(expr) == text


Pair = tuple[Expr, Callable[[int, int], int]]


def _binary(op: str, a: Pair, b: Pair) -> Pair:
    (ea, fa), (eb, fb) = a, b
    match op:
        case "+":
            return ea + eb, lambda p, q: fa(p, q) + fb(p, q)
        case "-":
            return ea - eb, lambda p, q: fa(p, q) - fb(p, q)
        case "*":
            return ea * eb, lambda p, q: fa(p, q) * fb(p, q)
        case "//":
            return ea // 3, lambda p, q: fa(p, q) // 3
        case "%":
            return ea % 5, lambda p, q: fa(p, q) % 5
    return ex.minimum(ea, eb), lambda p, q: min(fa(p, q), fb(p, q))


_leaves = st.one_of(
    st.just((i, lambda p, q: p)),
    st.just((j, lambda p, q: q)),
    st.integers(-4, 4).map(lambda n: (as_expr(n), lambda p, q: n)),
)
_pairs: st.SearchStrategy[Pair] = st.recursive(
    _leaves,
    lambda inner: st.builds(_binary, st.sampled_from(["+", "-", "*", "//", "%", "min"]), inner, inner),
    max_leaves=8,
)  # fmt: skip


@given(_pairs)
def test_the_text_of_an_integer_expression_evaluates_to_its_value(pair: Pair) -> None:
    expr, value = pair
    code = compile(ast.parse(str(expr), mode="eval"), "text", "eval")
    for p, q in [(0, 0), (7, 2), (-5, 11), (13, -9)]:
        assert eval(code, {"min": min, "i": p, "j": q}) == value(p, q)

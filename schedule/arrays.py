"""Expressions of knobs, compiled to straight-line array code.

A population is a matrix with one column a knob; an expression becomes one NumPy statement a node,
shared subexpressions once. This is what makes constraints, features and the analytic model run at
hundreds of thousands of candidates a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor.expr import Binary, Cast, Const, Expr, Knob, Min, Poly, Select, Unary

__all__ = ["compile_exprs"]

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
          "and": "&", "or": "|"}  # fmt: skip
_CALLS = {"min": "np.minimum", "max": "np.maximum", "mod": "np.fmod"}
_UNARY = {"log": "np.log2", "sqrt": "np.sqrt", "floor": "np.floor", "ceil": "np.ceil", "neg": "-"}

CHUNK = 2048


class _Code:
    def __init__(self, knobs: Sequence[Knob]) -> None:
        self.names: dict[Expr, str] = {}
        self.lines: list[str] = []
        self.columns = {k: f"x[{n}]" for n, k in enumerate(knobs)}

    def visit(self, e: Expr) -> str:
        if isinstance(e, Const):
            return repr(float(e.value)) if not isinstance(e.value, bool) else repr(e.value)
        if isinstance(e, Cast):
            return self.visit(e.a)
        name = self.names.get(e)
        if name is None:
            text = self._text(e)
            name = self.names[e] = f"t{len(self.names)}"
            self.lines.append(f"    {name} = {text}")
        return name

    def _text(self, e: Expr) -> str:
        match e:
            case Knob():
                return self.columns[e]
            case Poly(terms, const):
                parts = []
                for atoms, c in terms:
                    product = " * ".join(map(self.visit, atoms))
                    parts.append(product if c == 1 else f"{float(c)!r} * {product}")
                if const:
                    parts.append(repr(float(const)))
                return " + ".join(parts)
            case Min(args):
                text = self.visit(args[0])
                for a in args[1:]:
                    text = f"np.minimum({text}, {self.visit(a)})"
                return text
            case Binary("ceildiv", a, b):
                return f"np.ceil({self.visit(a)} / {self.visit(b)})"
            case Binary("floordiv", a, b):
                return f"np.floor({self.visit(a)} / {self.visit(b)})"
            case Binary(op, a, b) if op in _INFIX:
                return f"({self.visit(a)}) {_INFIX[op]} ({self.visit(b)})"
            case Binary(op, a, b):
                return f"{_CALLS[op]}({self.visit(a)}, {self.visit(b)})"
            case Unary(op, a):
                return f"{_UNARY[op]}({self.visit(a)})"
            case Select(c, a, b):
                return f"np.where({self.visit(c)}, {self.visit(a)}, {self.visit(b)})"
        raise AssertionError(type(e))


def compile_exprs(
    exprs: Sequence[Expr], knobs: Sequence[Knob], dtype: Any = np.float32
) -> Callable[[NDArray[np.float64]], NDArray[Any]]:
    """Compile expressions of knobs to one array function.

    Parameters
    ----------
    exprs : sequence of Expr
        Without loop variables. Integers are computed exactly up to 2**53.
    knobs : sequence of Knob
        The columns of the matrix.

    Returns
    -------
    callable
        From the knobs' values, shape (n, n_knobs), to shape (n, n_exprs) of type `dtype`.
    """
    code = _Code(knobs)
    results = [code.visit(e) for e in exprs]
    lines = ["def f(x, out):", *code.lines]
    lines += [f"    out[:, {n}] = {r}" for n, r in enumerate(results)] or ["    pass"]
    scope: dict[str, Any] = {"np": np}
    exec(compile("\n".join(lines), "<expressions>", "exec"), scope)  # our own generated text
    body = scope["f"]

    def run(values: NDArray[np.float64]) -> NDArray[Any]:
        n = len(values)
        out = np.empty((n, len(exprs)), dtype=dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            for start in range(0, n, CHUNK):
                block = np.ascontiguousarray(values[start : start + CHUNK].T, dtype=np.float64)
                body(block, out[start : start + CHUNK])
        return out

    return run

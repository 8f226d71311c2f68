"""Print expressions as Python text."""

from __future__ import annotations

from tilewright.tensor.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Knob,
    Load,
    Min,
    Poly,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
)

__all__ = ["show"]

_INFIX = {
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "div": ("/", 5),
    "floordiv": ("//", 5),
    "mod": ("%", 5),
    "pow": ("**", 7),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "eq": ("==", 3),
    "ne": ("!=", 3),
    "and": ("and", 2),
    "or": ("or", 1),
}


def show(expr: Expr, level: int = 0) -> str:
    """The text of an expression; `level` is the binding strength of what surrounds it."""
    match expr:
        case Const(value):
            return f"({value!r})" if level > 6 and value < 0 else repr(value)
        case Var(name) | Knob(name):
            return name
        case Poly():
            return _poly(expr, level)
        case Min(args):
            return f"min({', '.join(map(show, args))})"
        case Binary(op, a, b) if op in _INFIX:
            sign, strength = _INFIX[op]
            right = int(op != "pow")  # powers group to the right, all others to the left
            text = f"{show(a, strength + 1 - right)} {sign} {show(b, strength + right)}"
            return f"({text})" if strength < level else text
        case Binary(op, a, b):
            return f"{op}({show(a)}, {show(b)})"
        case Unary("neg", a):
            return f"(-{show(a, 6)})" if level > 6 else f"-{show(a, 6)}"
        case Unary(op, a):
            return f"{op}({show(a)})"
        case Select(c, a, b):
            return f"select({show(c)}, {show(a)}, {show(b)})"
        case Cast(a, dtype):
            return f"{dtype}({show(a)})"
        case Read(tensor, indices):
            return f"{tensor.name}[{', '.join(map(show, indices))}]"
        case Load(buffer, indices):
            return f"{buffer}[{', '.join(map(show, indices))}]"
        case Reduce(op, value, axes):
            names = ", ".join(v.name for v, _ in axes)
            return f"{op}({show(value)}, axis=[{names}])"
    raise AssertionError(type(expr))


def _poly(expr: Poly, level: int) -> str:
    parts: list[str] = []
    for atoms, coefficient in expr.terms:
        # only a quotient that opens a term needs no brackets: i // 2*3, but -(i // 2), j*(i // 2)
        first = 6 if not parts and coefficient < 0 else 5
        product = "*".join(show(a, 6 if n else first) for n, a in enumerate(atoms))
        size = abs(coefficient)
        text = product if size == 1 else f"{product}*{size}"
        if parts:
            parts.append(f" {'+' if coefficient > 0 else '-'} {text}")
        else:
            parts.append(text if coefficient > 0 else f"-{text}")
    if expr.const:
        parts.append(f" {'+' if expr.const > 0 else '-'} {abs(expr.const)}")
    text = "".join(parts)
    single = len(parts) == 1
    return f"({text})" if level > (5 if single else 4) else text

"""Integer ranges of expressions while code is being made: what is known of each loop variable."""

from __future__ import annotations

import math

from tilewright.tensor.expr import Binary, Const, Expr, Min, Poly, Select, Var

__all__ = ["Ranges", "bounds", "pick_min", "resolve"]

Ranges = dict[Var, tuple[int, int]]
_ANY = (-math.inf, math.inf)
Bound = tuple[float, float]


def _times(a: Bound, b: Bound) -> Bound:
    if math.inf in (a[1], b[1]) or -math.inf in (a[0], b[0]):
        return _ANY
    products = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(products), max(products)


def bounds(e: Expr, ranges: Ranges) -> Bound:
    """Least and greatest value of an integer expression."""
    match e:
        case Const(value):
            return (int(value), int(value)) if math.isfinite(value) else _ANY
        case Var():
            return ranges.get(e, _ANY)
        case Poly(terms, const):
            low: float = const
            high: float = const
            for atoms, c in terms:
                term: Bound = (c, c)
                for a in atoms:
                    term = _times(term, bounds(a, ranges))
                low, high = low + term[0], high + term[1]
            return low, high
        case Min(args):
            each = [bounds(a, ranges) for a in args]
            return min(b[0] for b in each), min(b[1] for b in each)
        case Binary("floordiv" | "ceildiv" as op, a, b):
            la, ha = bounds(a, ranges)
            lb, hb = bounds(b, ranges)
            if lb != hb or lb <= 0 or math.inf in (ha, -la):
                return _ANY
            if op == "floordiv":
                return la // lb, ha // lb
            return -(-la // lb), -(-ha // lb)
        case Binary("mod", a, b):
            la, ha = bounds(a, ranges)
            lb, hb = bounds(b, ranges)
            if lb != hb or lb <= 0:
                return _ANY
            if math.inf not in (ha, -la) and la // lb == ha // lb:
                return la % lb, ha % lb
            return 0, lb - 1
        case Binary("min", a, b):
            x, y = bounds(a, ranges), bounds(b, ranges)
            return min(x[0], y[0]), min(x[1], y[1])
        case Binary("max", a, b):
            x, y = bounds(a, ranges), bounds(b, ranges)
            return max(x[0], y[0]), max(x[1], y[1])
        case Select(_, a, b):
            x, y = bounds(a, ranges), bounds(b, ranges)
            return min(x[0], y[0]), max(x[1], y[1])
    return _ANY


def pick_min(e: Min, ranges: Ranges) -> Expr | None:
    """The argument that is never above the others, if that can be told."""
    for a in e.args:
        if all(bounds(a - b, ranges)[1] <= 0 for b in e.args if b is not a):
            return a
    return None


def resolve(e: Expr, ranges: Ranges) -> int | None:
    """The value of an expression that has just one in these ranges."""
    low, high = bounds(e, ranges)
    if low == high:
        return int(low)
    if isinstance(e, Min):
        picked = pick_min(e, ranges)
        return None if picked is None else resolve(picked, ranges)
    return None

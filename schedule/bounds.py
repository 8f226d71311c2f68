"""Symbolic bounds of index expressions over loops, and divisions that come out even.

All loop variables start at zero and all knobs are at least one, so the sign of a term is the sign
of its integer coefficient. Upper bounds are lists of alternatives whose minimum is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.schedule.program import For
from tilewright.tensor.expr import (
    Binary,
    Const,
    Expr,
    Knob,
    Min,
    Poly,
    Var,
    children,
    minimum,
    substitute,
)

__all__ = [
    "Interval", "Loops", "divide", "interval", "loop_ranges", "lower_bound", "nonnegative",
    "upper_bounds", "var_free",
]  # fmt: skip

Loops = Sequence[tuple[Var, Expr]]


@dataclass(frozen=True, slots=True)
class Interval:
    """Values from `low` to the least of `highs`, both included."""

    low: Expr
    highs: tuple[Expr, ...]

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Alternatives for the number of values."""
        return tuple(h - self.low + 1 for h in self.highs)

    @property
    def extent(self) -> Expr:
        """Number of values."""
        return least(self.extents)


def loop_ranges(loops: Sequence[For]) -> list[tuple[Var, Expr]]:
    """Variables and extents of loops, outermost first, fused ones by their parts."""
    out: list[tuple[Var, Expr]] = []
    for loop in loops:
        out.extend(loop.parts or ((loop.var, loop.extent),))
    return out


def least(args: Sequence[Expr]) -> Expr:
    """The minimum as an expression."""
    out = args[0]
    for a in args[1:]:
        out = minimum(out, a)
    return out


def _mentions(expr: Expr, var: Var) -> bool:
    kind = type(expr)
    if kind is Const or kind is Knob:
        return False
    if kind is Var:
        return expr == var
    return any(_mentions(c, var) for c in children(expr))


def var_free(expr: Expr) -> bool:
    """Whether an expression holds no loop variable (knobs may occur)."""
    kind = type(expr)
    if kind is Const or kind is Knob:
        return True
    return kind is not Var and all(map(var_free, children(expr)))


def _direction(expr: Expr, var: Var) -> int | None:
    """Sign of the derivative by `var`: 1, -1, 0, or None if it cannot be told."""
    if not _mentions(expr, var):
        return 0
    match expr:
        case Var():
            return 1
        case Poly(terms):
            signs: set[int] = set()
            for atoms, coefficient in terms:
                for atom in atoms:
                    d = _direction(atom, var)
                    if d is None:
                        return None
                    if d:
                        signs.add(d if coefficient > 0 else -d)
            return signs.pop() if len(signs) == 1 else None
        case Min(args):
            ds = {_direction(a, var) for a in args} - {0}
            return ds.pop() if len(ds) == 1 else None
        case Binary("floordiv" | "ceildiv", a, b) if not _mentions(b, var):
            return _direction(a, var)
    return None


def _alternatives(extent: Expr) -> tuple[Expr, ...]:
    return extent.args if isinstance(extent, Min) else (extent,)


def lower_bound(expr: Expr, loops: Loops) -> Expr | None:
    """The least value of an index while `loops` run, or None if it cannot be told."""
    for var, extent in reversed(loops):
        match _direction(expr, var):
            case 0:
                pass
            case 1:
                expr = substitute(expr, {var: Const(0)})
            case -1:
                expr = substitute(expr, {var: _alternatives(extent)[0] - 1})
            case _:
                return None
    return expr


def upper_bounds(expr: Expr, loops: Loops) -> tuple[Expr, ...]:
    """Upper bounds of an index while `loops` run; empty if none can be told."""
    highs: list[Expr] = [expr]
    for var, extent in reversed(loops):
        new: list[Expr] = []
        for e in highs:
            match _direction(e, var):
                case 0:
                    new.append(e)
                case 1:
                    new.extend(substitute(e, {var: a - 1}) for a in _alternatives(extent))
                case -1:
                    new.append(substitute(e, {var: Const(0)}))
        highs = prune(new)
    return tuple(highs)


def interval(expr: Expr, loops: Loops) -> Interval | None:
    """Bounds of an index while `loops` run (outermost first), or None if they cannot be told."""
    low, highs = lower_bound(expr, loops), upper_bounds(expr, loops)
    return Interval(low, highs) if low is not None and highs else None


def _relaxed(expr: Expr) -> Expr:
    """A lower bound without round-ups: T*ceildiv(R, T) is at least R."""
    if not isinstance(expr, Poly):
        return expr
    out: Expr = Const(expr.const)
    for atoms, c in expr.terms:
        term: Expr = Const(c)
        for a in atoms:
            term = term * a
        for a in atoms:
            if c > 0 and isinstance(a, Binary) and a.op == "ceildiv":
                rest = list(atoms)
                rest.remove(a)
                if a.b in rest:
                    rest.remove(a.b)
                    term = Const(c) * a.a
                elif isinstance(a.b, Const) and c % int(a.b.value) == 0:
                    term = Const(c // int(a.b.value)) * a.a
                else:
                    continue
                for r in rest:
                    term = term * r
                break
        out = out + term
    return out


def nonnegative(expr: Expr) -> bool:
    """Whether an expression is provably at least zero (sufficient, not necessary)."""
    if isinstance(expr, Const):
        return expr.value >= 0
    if isinstance(expr, Min):
        return all(nonnegative(a) for a in expr.args)
    if isinstance(expr, (Var, Knob)):
        return True
    if isinstance(expr, Binary):
        if expr.op in ("floordiv", "ceildiv"):
            return nonnegative(expr.a)
        return expr.op == "mod"
    if isinstance(expr, Poly):
        for candidate in (expr, _relaxed(expr)):
            if isinstance(candidate, Poly):
                total = candidate.const
                good = True
                for atoms, c in candidate.terms:
                    if c < 0 or not all(nonnegative(a) for a in atoms):
                        good = False
                        break
                    if all(isinstance(a, Knob) for a in atoms):
                        total += c
                if good and total >= 0:
                    return True
            elif candidate is not expr and nonnegative(candidate):
                return True
    return False


def prune(alternatives: Sequence[Expr]) -> list[Expr]:
    """Drop alternatives of a minimum that another one never exceeds."""
    unique = list(dict.fromkeys(alternatives))
    keep: list[Expr] = []
    for i, e in enumerate(unique):
        beaten = any(
            nonnegative(e - f) and not (j > i and nonnegative(f - e))
            for j, f in enumerate(unique)
            if j != i
        )
        if not beaten:
            keep.append(e)
    return keep or unique[:1]


def divide(expr: Expr, factor: Expr, loops: Loops) -> tuple[Expr, Expr]:
    """Quotient and remainder of an index by a tile size, simplified when the tiling is aligned."""
    if isinstance(factor, Const) and factor.value == 1:
        return expr, Const(0)
    terms = dict(expr.terms) if isinstance(expr, Poly) else {(expr,): 1}
    const = expr.const if isinstance(expr, Poly) else 0
    if isinstance(expr, Const):
        terms, const = {}, int(expr.value)
    quotient: Expr = Const(0)
    rest: Expr = Const(const)
    for atoms, c in terms.items():
        term, whole = _divide_term(atoms, c, factor)
        if whole is None:
            rest = rest + term
        else:
            quotient = quotient + whole
    span = interval(rest, loops)
    if (
        span is not None
        and nonnegative(span.low)
        and any(nonnegative(factor - 1 - h) for h in span.highs)
    ):
        return quotient, rest
    return expr // factor, expr % factor


def _divide_term(atoms: tuple[Expr, ...], c: int, factor: Expr) -> tuple[Expr, Expr | None]:
    term: Expr = Const(c)
    for a in atoms:
        term = term * a
    if isinstance(factor, Const):
        f = int(factor.value)
        if c % f:
            return term, None
        whole: Expr = Const(c // f)
        for a in atoms:
            whole = whole * a
        return term, whole
    needed = list(factor.terms[0][0]) if isinstance(factor, Poly) else [factor]
    scale = factor.terms[0][1] if isinstance(factor, Poly) else 1
    if isinstance(factor, Poly) and (len(factor.terms) != 1 or factor.const):
        return term, None
    rest = list(atoms)
    for n in needed:
        if n not in rest:
            return term, None
        rest.remove(n)
    if c % scale:
        return term, None
    whole = Const(c // scale)
    for a in rest:
        whole = whole * a
    return term, whole

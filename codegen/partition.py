"""Where to cut loops so that the extents inside are numbers and the conditions inside are known.

An inner extent such as ``min(T, N - v*T)`` is T up to some iteration of v and something else for
the few after it. Cutting v there gives a full body with constant bounds and a remainder body with
constant bounds. A condition on an index, such as that of padding, is cut where its truth changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.codegen.ranges import Ranges, bounds, pick_min
from tilewright.schedule.program import For, LoopKind, Stmt, Store, walk_stmts
from tilewright.tensor.expr import Binary, Expr, Load, Min, Select, Var, walk

__all__ = ["threshold"]

MOST_EACH = 16  # iterations of an unrolled loop that are looked at one by one


def _extents(
    body: tuple[Stmt, ...], above: tuple[tuple[Var, Expr], ...]
) -> Iterator[tuple[Expr, tuple[tuple[Var, Expr], ...]]]:
    for s in body:
        if isinstance(s, For):
            parts = s.parts or ((s.var, s.extent),)
            if not _may_vary(s):
                for _, e in parts:
                    yield e, above
            yield from _extents(s.body, (*above, *parts))


def _may_vary(s: For) -> bool:
    """Whether the code of a loop is the same for every number of iterations, so that it need not be known."""
    if s.kind is not LoopKind.SERIAL or s.parts:
        return False
    for inner in walk_stmts(s.body):
        parts = inner.parts or ((inner.var, inner.extent),) if isinstance(inner, For) else ()
        decides: list[Expr] = [n for _, e in parts for n in walk(e) if isinstance(n, Min)]
        if isinstance(inner, Store):
            decides = [n.cond for n in walk(inner.value) if isinstance(n, Select)]
        if any(n == s.var for e in decides for n in walk(e)):
            return False
    return True


def _mins(body: tuple[Stmt, ...], var: Var) -> list[tuple[Min, tuple[tuple[Var, Expr], ...]]]:
    out = []
    for e, above in _extents(body, ()):
        for node in walk(e):
            if isinstance(node, Min) and any(n == var for n in walk(node)):
                out.append((node, above))
    return out


def _resolved(mins: list[tuple[Min, tuple[tuple[Var, Expr], ...]]], ranges: Ranges) -> bool:
    for node, above in mins:
        inner = dict(ranges)
        for v, e in above:
            high = bounds(e, inner)[1]
            inner[v] = (0, max(0, int(high) - 1))
        if pick_min(node, inner) is None:
            return False
    return True


@dataclass(frozen=True)
class _Condition:
    """``gap >= edge``, in loops (outermost first) below the one that is to be cut."""

    gap: Expr
    edge: int
    above: tuple[For, ...]
    reduces: bool

    def decided(self, ranges: Ranges) -> bool:
        """Whether the ranges decide it, for each iteration of the unrolled loops on its own."""
        return self._decided(self.above, ranges)

    def _decided(self, left: tuple[For, ...], ranges: Ranges) -> bool:
        if not left:
            low, high = bounds(self.gap, ranges)
            return low >= self.edge or high < self.edge
        loop, rest = left[0], left[1:]
        inner = dict(ranges)
        trips: float = 1
        for v, e in loop.parts or ((loop.var, loop.extent),):
            trips = max(0, bounds(e, inner)[1])
            inner[v] = (0, max(0, int(min(trips, 1 << 40)) - 1))
        if loop.kind is not LoopKind.UNROLLED or loop.parts or trips > MOST_EACH:
            return self._decided(rest, inner)
        return all(self._decided(rest, {**inner, loop.var: (n, n)}) for n in range(int(trips)))


def _conditions(body: tuple[Stmt, ...], var: Var, above: tuple[For, ...]) -> Iterator[_Condition]:
    for s in body:
        if isinstance(s, For):
            yield from _conditions(s.body, var, (*above, s))
            continue
        for select in walk(s.value):
            if not isinstance(select, Select):
                continue
            for n in walk(select.cond):
                if isinstance(n, Binary) and n.op in ("lt", "le") and n.a.dtype.is_int:
                    gap = n.b - n.a
                    used = {v for v in walk(gap) if isinstance(v, Var)}
                    if var in used and not any(isinstance(v, Load) for v in walk(gap)):
                        inner = tuple(f for f in above if f.parts or f.var in used)
                        edge = 1 if n.op == "lt" else 0
                        yield _Condition(gap, edge, inner, s.reduce is not None)


def threshold(
    body: tuple[Stmt, ...],
    var: Var,
    low: int,
    high: int,
    ranges: Ranges,
    *,
    conditions: bool = True,
) -> int:
    """The first iteration of `var` in [low, high) up to which what is inside is not all known.

    That is: an extent is not at its full value, or a condition may hold or not. Returns `high`
    when nothing has to be cut; `low` when not even one iteration is known.
    """
    mins = _mins(body, var)
    tests = list(dict.fromkeys(_conditions(body, var, ()))) if conditions else []
    if any(isinstance(s, Store) and s.reduce for s in walk_stmts(body)):
        tests = [t for t in tests if t.reduces]  # the rest is not worth a copy of all that is here

    def known(stop: int) -> bool:
        here = {**ranges, var: (low, stop - 1)}
        return _resolved(mins, here) and all(t.decided(here) for t in tests)

    if known(high):
        return high
    lo, hi = low, high - 1  # [low, lo) is known; [low, hi+1) is not
    while lo < hi:
        mid = (lo + hi + 1) // 2
        if known(mid):
            lo = mid
        else:
            hi = mid - 1
    return lo

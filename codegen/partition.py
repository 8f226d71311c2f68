"""Where to cut loops so that the extents inside are numbers.

An inner extent such as ``min(T, N - v*T)`` is T up to some iteration of v and something else for
the few after it. Cutting v there gives a full body with constant bounds and a remainder body with
constant bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.codegen.ranges import Ranges, bounds, pick_min
from tilewright.schedule.program import For, Stmt
from tilewright.tensor.expr import Expr, Min, Var, walk

__all__ = ["threshold"]


def _extents(
    body: tuple[Stmt, ...], above: tuple[tuple[Var, Expr], ...]
) -> Iterator[tuple[Expr, tuple[tuple[Var, Expr], ...]]]:
    for s in body:
        if isinstance(s, For):
            parts = s.parts or ((s.var, s.extent),)
            for _, e in parts:
                yield e, above
            yield from _extents(s.body, (*above, *parts))


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


def threshold(body: tuple[Stmt, ...], var: Var, low: int, high: int, ranges: Ranges) -> int:
    """The first iteration of `var` in [low, high) for which an extent inside is not at its full value.

    Returns `high` when nothing has to be cut.
    """
    mins = _mins(body, var)
    if not mins or _resolved(mins, {**ranges, var: (low, high - 1)}):
        return high
    lo, hi = low, high - 1  # [low, lo) is resolved; [low, hi+1) is not
    while lo < hi:
        mid = (lo + hi + 1) // 2
        if _resolved(mins, {**ranges, var: (low, mid - 1)}):
            lo = mid
        else:
            hi = mid - 1
    return lo

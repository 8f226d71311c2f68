"""Primitives on loops: split, fuse, reorder, and the annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import Loops, divide, loop_ranges
from tilewright.schedule.program import For, LoopKind, Program, Stmt, Store, map_stmts, walk_stmts
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    Binary,
    Const,
    Expr,
    Load,
    Min,
    Poly,
    Var,
    as_expr,
    ceildiv,
    const_value,
    map_children,
    minimum,
    substitute,
    walk,
)

__all__ = [
    "find_loop", "fuse", "parallel", "reduces_into", "reduction_loops", "reorder", "split", "unroll",
    "vectorize",
]  # fmt: skip


def find_loop(program: Program, var: Var) -> For:
    """The loop of that variable."""
    for s in walk_stmts(program.body):
        if isinstance(s, For) and s.var == var:
            return s
    names = [s.var.name for s in walk_stmts(program.body) if isinstance(s, For)]
    raise ScheduleError(f"loop({var.name}): no such loop; there are {', '.join(names)}")


def loop_vars(loop: For) -> tuple[Var, ...]:
    """The variables that a loop defines for its body."""
    return tuple(v for v, _ in loop.parts) or (loop.var,)


def mentions(expr: Expr, variables: Sequence[Var]) -> bool:
    """Whether an expression uses one of the variables."""
    return any(node in variables for node in walk(expr) if isinstance(node, Var))


def replace_loop(
    program: Program, var: Var, f: Callable[[For], Stmt | tuple[Stmt, ...]]
) -> Program:
    """Rebuild one loop."""
    find_loop(program, var)
    return program.with_body(
        map_stmts(program.body, lambda s: f(s) if isinstance(s, For) and s.var == var else s)
    )


def substitute_body(body: tuple[Stmt, ...], mapping: dict[Var, Expr]) -> tuple[Stmt, ...]:
    """Replace loop variables in statements (extents, indices, values)."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Store):
            out.append(
                replace(
                    s,
                    indices=tuple(substitute(i, mapping) for i in s.indices),
                    value=substitute(s.value, mapping),
                    prefetches=tuple(p.map(lambda e: substitute(e, mapping)) for p in s.prefetches),
                )
            )
        else:
            out.append(
                replace(
                    s,
                    extent=substitute(s.extent, mapping),
                    parts=tuple((v, substitute(e, mapping)) for v, e in s.parts),
                    body=substitute_body(s.body, mapping),
                )
            )
    return tuple(out)


def reduction_loops(program: Program, block: str) -> tuple[For, ...]:
    """The loops that a block reduces over, outermost first.

    These are the loops around it that its indices do not use, except those that also hold a reader
    of its buffer: inside such a loop the buffer is private to the iteration.
    """
    path, store = program.path(block)
    if not store.reduce:
        return ()
    out = []
    for loop in path:
        if all(any(mentions(i, (v,)) for i in store.indices) for v in loop_vars(loop)):
            continue
        readers = (
            s
            for s in walk_stmts(loop.body)
            if isinstance(s, Store) and s.buffer != store.buffer and _loads(s.value, store.buffer)
        )
        if next(readers, None) is None:
            out.append(loop)
    return tuple(out)


def _loads(expr: Expr, buffer: str) -> bool:
    return any(isinstance(n, Load) and n.buffer == buffer for n in walk(expr))


def reduces_into(program: Program, loop: For) -> Store | None:
    """A store below a loop that the loop reduces into, or None."""
    for s in walk_stmts(loop.body):
        if (
            isinstance(s, Store)
            and s.reduce
            and any(r is loop for r in reduction_loops(program, s.block))
        ):
            return s
    return None


def refuse_carrying(program: Program, loop: Var, call: str) -> None:
    """Refuse a loop whose iterations must follow each other."""
    for b in program.buffers:
        if b.carried == loop:
            raise ScheduleError(
                f"{call}: each iteration fills {b.name} for the next one; do this before double_buffer"
            )


def split(
    program: Program, loop: Var, factors: Sequence[Expr | int]
) -> tuple[Program, tuple[Var, ...]]:
    """Tile a loop; `factors` are the sizes of the inner levels, outermost first.

    Factors need not divide the extent: the last tile is shorter.

    Examples
    --------
    ``split(i, [4])`` on an extent of 10::

        for i in range(10):             for i.0 in range(3):
            C[i] = A[i]           ->        for i.1 in range(min(4, 10 - i.0*4)):
                                                C[i.0*4 + i.1] = A[i.0*4 + i.1]
    """
    sizes = [as_expr(f) for f in factors]
    for f in sizes:
        value = const_value(f)
        if value is not None and value < 1:
            raise ScheduleError(
                f"split({loop.name}, {[str(s) for s in sizes]}): factor {value} is below 1; use 1 or more"
            )
    if not sizes:
        raise ScheduleError(
            f"split({loop.name}, []): no factors; give the sizes of the inner levels"
        )
    found = find_loop(program, loop)
    refuse_carrying(program, loop, f"split({loop.name})")
    if found.kind is not LoopKind.SERIAL or found.parts:
        what = "fused" if found.parts else found.kind.value
        raise ScheduleError(
            f"split({loop.name}): the loop is {what}; split before you fuse or annotate"
        )
    new = tuple(Var(f"{loop.name}.{n}") for n in range(len(sizes) + 1))
    spans: list[Expr] = []
    span: Expr = Const(1)
    for size in reversed(sizes):
        spans.insert(0, span)
        span = span * size
    rest, index = found.extent, new[0] * span
    extents = [ceildiv(rest, span)]
    outer = new[0] * span
    for var, size, inner in zip(new[1:], sizes, spans):
        length = const_value(size * inner)
        if length is not None and _is_multiple(found.extent, int(length)):
            extents.append(size)  # no tile of this length is cut off
            rest = rest - outer
        else:
            rest = rest - outer
            extents.append(minimum(size, ceildiv(rest, inner)))
        index, outer = index + var * inner, var * inner

    def rebuild(old: For) -> Stmt:
        body = substitute_body(old.body, {loop: index})
        if any(_divides(s) for s in walk_stmts(body)):
            body = map_stmts(body, lambda s: _divided(s, tuple(zip(new[1:], sizes))))
        for var, extent in zip(reversed(new), reversed(extents)):
            body = (For(var, extent, body),)
        return body[0]

    return replace_loop(program, loop, rebuild), new


def _is_multiple(extent: Expr, n: int) -> bool:
    """Whether a number divides an extent, whatever the variables in it."""
    match extent:
        case Const(value):
            return int(value) % n == 0
        case Min(args):
            return all(_is_multiple(a, n) for a in args)
        case Poly(terms, const):
            return const % n == 0 and all(c % n == 0 for _, c in terms)
    return n == 1


def _quotient(node: Expr) -> bool:
    """Whether a node divides a place; what is computed from data may wrap around, so it stays as it is."""
    return (
        isinstance(node, Binary)
        and node.op in ("floordiv", "mod")
        and node.dtype is DType.INT64
        and not any(isinstance(n, Load) for n in walk(node))
    )


def _divides(s: Stmt) -> bool:
    found = (s.extent,) if isinstance(s, For) else (*s.indices, s.value)
    return any(_quotient(n) for e in found for n in walk(e))


def _divided(s: Stmt, loops: Loops) -> Stmt:
    """Quotients and remainders by what a loop has been cut into, written without a division."""

    def go(e: Expr) -> Expr:
        e = map_children(e, go)
        if isinstance(e, Binary) and _quotient(e):
            quotient, rest = divide(e.a, e.b, loops)
            return quotient if e.op == "floordiv" else rest
        return e

    if isinstance(s, For):
        return replace(s, extent=go(s.extent), parts=tuple((v, go(n)) for v, n in s.parts))
    prefetches = tuple(p.map(go) for p in s.prefetches)
    return replace(s, indices=tuple(map(go, s.indices)), value=go(s.value), prefetches=prefetches)


def fuse(program: Program, loops: Sequence[Var]) -> tuple[Program, Var]:
    """Make one loop of nested ones; the parts stay visible to index arithmetic.

    Examples
    --------
    ``fuse(i, j)``::

        for i in range(2):                for i, j in grid(2, 3):
            for j in range(3):      ->        C[i, j] = A[i, j]
                C[i, j] = A[i, j]
    """
    names = ", ".join(v.name for v in loops)
    if len(loops) < 2:
        raise ScheduleError(f"fuse({names}): needs two loops or more")
    chain = [find_loop(program, loops[0])]
    for var in loops[1:]:
        inner = chain[-1].body
        if len(inner) != 1 or not isinstance(inner[0], For) or inner[0].var != var:
            raise ScheduleError(
                f"fuse({names}): {var.name} is not the only statement in {chain[-1].var.name}; reorder first"
            )
        chain.append(inner[0])
    if any(c.kind is not LoopKind.SERIAL for c in chain):
        raise ScheduleError(f"fuse({names}): a loop is annotated already; fuse before you annotate")
    parts = tuple(loop_ranges(chain))
    for k, (var, extent) in enumerate(parts):
        if mentions(extent, [v for v, _ in parts[:k]]):
            raise ScheduleError(
                f"fuse({names}): the extent {extent} of {var.name} depends on an outer one; fuse the outer levels only"
            )
    for s in walk_stmts(chain[-1].body):
        if isinstance(s, Store) and s.init is not None:
            reduced = [any(c is r for r in reduction_loops(program, s.block)) for c in chain]
            if any(reduced) and not all(reduced):
                raise ScheduleError(
                    f"fuse({names}): {s.block} reduces over some of the loops only; use decompose_reduction first"
                )
    total: Expr = Const(1)
    for _, e in parts:
        total = total * e
    fused = Var("*".join(v.name for v in loops))
    return (
        replace_loop(program, loops[0], lambda _: For(fused, total, chain[-1].body, parts=parts)),
        fused,
    )


def reorder(program: Program, loops: Sequence[Var]) -> Program:
    """Put nested loops into the given order, outermost first.

    Examples
    --------
    ``reorder(j, i)``::

        for i in range(2):                for j in range(3):
            for j in range(3):      ->        for i in range(2):
                C[i, j] = A[i, j]                 C[i, j] = A[i, j]
    """
    names = ", ".join(v.name for v in loops)
    wanted = set(loops)
    if len(wanted) != len(loops):
        raise ScheduleError(f"reorder({names}): a loop occurs twice")
    chain: list[For] = []
    found = [find_loop(program, v) for v in loops]
    top = next(
        (
            f
            for f in found
            if wanted <= {f.var} | {s.var for s in walk_stmts(f.body) if isinstance(s, For)}
        ),
        None,
    )
    if top is None:
        raise ScheduleError(f"reorder({names}): the loops are not nested in one another")
    node: Stmt = top
    while True:
        assert isinstance(node, For)
        chain.append(node)
        wanted.discard(node.var)
        if not wanted:
            break
        if len(node.body) != 1 or not isinstance(node.body[0], For):
            raise ScheduleError(
                f"reorder({names}): {node.var.name} holds several statements, so the loops are no perfect nest"
            )
        node = node.body[0]
    order = iter(loops)
    by_var = {c.var: c for c in chain}
    new = [by_var[next(order)] if c.var in set(loops) else c for c in chain]
    for old, c in zip(chain, new):
        if c is not old and c.kind is LoopKind.PARALLEL:
            raise ScheduleError(
                f"reorder({names}): {c.var.name} is parallel and must stay outermost"
            )
        if c is not old and old.kind in (LoopKind.VECTORIZED, LoopKind.TENSORIZED):
            raise ScheduleError(
                f"reorder({names}): {old.var.name} is {old.kind.value} and must stay innermost"
            )
    seen: list[Var] = []
    inside = {v for c in chain for v in loop_vars(c)}
    for c in new:
        for e in (c.extent, *(e for _, e in c.parts)):
            late = [
                n
                for n in walk(e)
                if isinstance(n, Var) and n in inside and n not in seen and n not in loop_vars(c)
            ]
            if late:
                raise ScheduleError(
                    f"reorder({names}): the extent {e} of {c.var.name} needs {late[0].name} outside of it"
                )
        seen.extend(loop_vars(c))

    def rebuild(_: For) -> Stmt:
        body = chain[-1].body
        for c in reversed(new):
            body = (replace(c, body=body),)
        return body[0]

    return replace_loop(program, chain[0].var, rebuild)


_CALL = {
    LoopKind.VECTORIZED: "vectorize",
    LoopKind.PARALLEL: "parallel",
    LoopKind.UNROLLED: "unroll",
}


def _annotate(program: Program, loop: Var, kind: LoopKind) -> Program:
    if find_loop(program, loop).kind is LoopKind.TENSORIZED:
        raise ScheduleError(
            f"{_CALL[kind]}({loop.name}): the loop is tensorized; annotate another one"
        )
    return replace_loop(program, loop, lambda s: replace(s, kind=kind))


def vectorize(program: Program, loop: Var) -> Program:
    """Turn the iterations of an innermost loop into vector lanes (of any number; tails are masked).

    Examples
    --------
    ``vectorize(j)``::

        for j in range(32):         for j in range(32):  # vectorized
            C[j] = A[j]       ->        C[j] = A[j]
    """
    found = find_loop(program, loop)
    refuse_carrying(program, loop, f"vectorize({loop.name})")
    if any(isinstance(s, For) for s in found.body):
        raise ScheduleError(
            f"vectorize({loop.name}): a loop is inside; reorder {loop.name} innermost"
        )
    if found.parts:
        raise ScheduleError(f"vectorize({loop.name}): the loop is fused; vectorize a plain one")
    return _annotate(program, loop, LoopKind.VECTORIZED)


def parallel(program: Program, loop: Var) -> Program:
    """Share the iterations of an outermost loop among threads.

    Examples
    --------
    ``parallel(i)``::

        for i in range(8):          for i in range(8):  # parallel
            C[i] = A[i]       ->        C[i] = A[i]
    """
    found = find_loop(program, loop)
    refuse_carrying(program, loop, f"parallel({loop.name})")
    store = reduces_into(program, found)
    if store is not None:
        raise ScheduleError(
            f"parallel({loop.name}): it reduces into {store.buffer}, a race; use rfactor first, or a spatial loop"
        )
    if not any(s is found for s in program.body):
        raise ScheduleError(
            f"parallel({loop.name}): not an outermost loop; reorder it outermost, or fuse it into that"
        )
    return _annotate(program, loop, LoopKind.PARALLEL)


def unroll(program: Program, loop: Var) -> Program:
    """Write a loop's iterations one after another.

    Examples
    --------
    ``unroll(i)``::

        for i in range(2):          for i in range(2):  # unrolled
            C[i] = A[i]       ->        C[i] = A[i]
    """
    if find_loop(program, loop).parts:
        raise ScheduleError(f"unroll({loop.name}): the loop is fused; unroll a plain one")
    return _annotate(program, loop, LoopKind.UNROLLED)

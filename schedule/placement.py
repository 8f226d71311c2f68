"""Primitives that move blocks: compute_at, reverse_compute_at, compute_inline."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.bounds import (
    Interval,
    Loops,
    interval,
    least,
    loop_ranges,
    lower_bound,
    nonnegative,
    upper_bounds,
    var_free,
)
from tilewright.schedule.loops import find_loop, reduces_into, replace_loop, substitute_body
from tilewright.schedule.nests import (
    drop_buffer,
    insert_before,
    loads_of,
    map_accesses,
    only_writer,
    own_nest,
    reads,
    remove_nest,
    set_buffer,
)
from tilewright.schedule.program import (
    Buffer,
    For,
    LoopKind,
    Program,
    Role,
    Stmt,
    Store,
    map_stmts,
    walk_stmts,
)
from tilewright.tensor.expr import Const, Expr, Load, Var, map_children, minimum, substitute

__all__ = ["compute_at", "compute_inline", "reverse_compute_at"]


def loops_to(program: Program, loop: Var) -> tuple[For, ...]:
    """The loops from the outermost down to `loop`, included."""

    def find(body: tuple[Stmt, ...], above: tuple[For, ...]) -> tuple[For, ...] | None:
        for s in body:
            if isinstance(s, For):
                if s.var == loop:
                    return (*above, s)
                found = find(s.body, (*above, s))
                if found:
                    return found
        return None

    find_loop(program, loop)
    path = find(program.body, ())
    assert path is not None
    return path


def _scalar_loop(program: Program, loop: Var, call: str) -> For:
    """The loop that a block is moved into."""
    found = find_loop(program, loop)
    if found.kind in (LoopKind.VECTORIZED, LoopKind.TENSORIZED):
        raise ScheduleError(f"{call}: {loop.name} is {found.kind.value}; move blocks before that")
    return found


def _inside(loop: For, block: str) -> tuple[list[tuple[Var, Expr]], Store]:
    """The ranges between a loop (excluded) and a block below it, and the store."""
    path, store = Program((), loop.body).path(block)
    return loop_ranges(path), store


def _clipped(span: Interval | None, size: Expr, outer: Loops) -> Interval:
    """The span if it provably lies inside the dimension, else the whole dimension."""
    whole = Interval(Const(0), (size - 1,))
    if span is None:
        return whole
    lowest = lower_bound(span.low, outer)
    if lowest is None or not nonnegative(lowest):
        return whole
    for high in span.highs:
        if any(nonnegative(size - 1 - h) for h in upper_bounds(high, outer)):
            return span
    return whole


def _union(a: Interval, b: Interval) -> Interval | None:
    low = a.low if nonnegative(b.low - a.low) else b.low if nonnegative(a.low - b.low) else None
    if low is None:
        return None
    # the end of an interval is the least of its highs
    if all(any(nonnegative(h - g) for g in a.highs) for h in b.highs):
        return Interval(low, b.highs)
    if all(any(nonnegative(g - h) for h in b.highs) for g in a.highs):
        return Interval(low, a.highs)
    return None


def _region(program: Program, buffer: Buffer, path: tuple[For, ...]) -> list[Interval]:
    """What of a buffer is read below the last loop of `path`, per dimension."""
    loop, outer = path[-1], loop_ranges(path)
    spans: list[Interval | None] = [None] * len(buffer.shape)
    first = True
    for s in walk_stmts(loop.body):
        if not isinstance(s, Store):
            continue
        for load in loads_of(s.value, buffer.name):
            inner, _ = _inside(loop, s.block)
            for d, (index, size) in enumerate(zip(load.indices, buffer.shape)):
                here = _clipped(interval(index, inner), size, outer)
                old = spans[d]
                joined = here if first else _union(old, here) if old else None
                spans[d] = joined or Interval(Const(0), (size - 1,))
            first = False
    return [s for s in spans if s is not None]


def _shrink(program: Program, buffer: Buffer, spans: list[Interval], loop: Var) -> Program:
    """Make a temporary just large enough for the region used inside a loop."""
    found = find_loop(program, loop)
    inside = set(id(s) for s in walk_stmts(found.body))
    for s in walk_stmts(program.body):
        uses = isinstance(s, Store) and (s.buffer == buffer.name or loads_of(s.value, buffer.name))
        if uses and id(s) not in inside:
            return program
    shape: list[Expr] = []
    lows: list[Expr] = []
    for span, size in zip(spans, buffer.shape):
        fixed = [e for e in span.extents if var_free(e)]
        shape.append(least(fixed) if fixed else size)
        lows.append(span.low if fixed else Const(0))
    program = set_buffer(program, replace(buffer, shape=tuple(shape)))
    body = map_accesses(
        program.body,
        buffer.name,
        lambda ix: (buffer.name, tuple(i - lo for i, lo in zip(ix, lows))),
    )
    return program.with_body(body)


def compute_at(program: Program, block: str, loop: Var) -> Program:
    """Compute what a loop's body needs of a producer right there.

    Examples
    --------
    ``compute_at(B, i)``::

        for i in range(8):                     for i in range(8):
            for j in range(8):                     for B.j in range(8):
                B[i, j] = A[i, j]        ->            B[0, B.j] = A[i, B.j]
        for C.i in range(8): ...                   for j in range(8):
                                                       C[i, j] = B[0, j]
    """
    call = f"compute_at({block}, {loop.name})"
    position, nest, store = own_nest(program, block, call)
    only_writer(program, store, call)
    buffer = program.buffer(store.buffer)
    if buffer.role is Role.OUTPUT:
        raise ScheduleError(
            f"{call}: {buffer.name} is an output; use reverse_compute_at to move it"
        )
    target = _scalar_loop(program, loop, call)
    for k, s in enumerate(program.body):
        if (
            k != position
            and reads((s,), buffer.name)
            and not any(x is target for x in walk_stmts((s,)))
        ):
            raise ScheduleError(
                f"{call}: {buffer.name} is also read outside of {loop.name}; choose a loop around all its readers"
            )
    if not reads(target.body, buffer.name):
        raise ScheduleError(f"{call}: nothing inside {loop.name} reads {buffer.name}")
    if any(target is s for s in walk_stmts((program.body[position],))):
        raise ScheduleError(f"{call}: the loop belongs to the block itself")
    readers = [
        s
        for s in walk_stmts(program.body)
        if isinstance(s, Store) and loads_of(s.value, buffer.name)
    ]
    within = [
        s
        for s in walk_stmts(target.body)
        if isinstance(s, Store) and loads_of(s.value, buffer.name)
    ]
    if len(readers) != len(within):
        raise ScheduleError(
            f"{call}: {buffer.name} is also read outside of {loop.name}; choose a loop around all its readers"
        )
    path = loops_to(program, loop)
    spans = _region(program, buffer, path)
    moved = _regenerate(nest, store, spans, buffer.shape)
    if buffer.role is Role.PACKED:
        buffer = replace(buffer, role=Role.TEMP)
        program = set_buffer(program, buffer)
    program = remove_nest(program, position)
    program = replace_loop(
        program, loop, lambda s: replace(s, body=insert_before(s.body, moved, buffer.name))
    )
    return _shrink(program, buffer, spans, loop)


def _regenerate(
    nest: tuple[For, ...], store: Store, spans: list[Interval], shape: tuple[Expr, ...]
) -> Stmt:
    """The nest over a region: spatial loops run over it, reduction loops stay."""
    shift: dict[Var, Expr] = {
        i: i + span.low for i, span in zip(store.indices, spans) if isinstance(i, Var)
    }
    extents = {loop.var: loop.extent for loop in nest}
    for index, span, size in zip(store.indices, spans, shape):
        if isinstance(index, Var):
            old_extent, extents[index] = extents[index], span.extent
            if old_extent != size:  # the end of a panel
                rest = substitute(old_extent, shift) - span.low
                extents[index] = minimum(span.extent, rest)
    body: tuple[Stmt, ...] = substitute_body((store,), shift)
    for old in reversed(nest):
        extent = extents[old.var]
        if old.var not in shift:
            extent = substitute(extent, shift)
        body = (replace(old, extent=extent, body=body),)
    return body[0]


def reverse_compute_at(program: Program, block: str, loop: Var) -> Program:
    """Compute a consumer inside its producer's loop, on the part that the loop's body has made.

    Examples
    --------
    ``reverse_compute_at(C, i)``::

        for i in range(8):                     for i in range(8):
            for j in range(8):                     for j in range(8):
                B[i, j] += ...           ->            B[0, j] += ...
        for C.i in range(8): ...                   for C.j in range(8):
                                                       C[i, C.j] = B[0, C.j]
    """
    call = f"reverse_compute_at({block}, {loop.name})"
    position, nest, store = own_nest(program, block, call)
    target = _scalar_loop(program, loop, call)
    path = loops_to(program, loop)
    if any(target is s for s in walk_stmts((program.body[position],))):
        raise ScheduleError(f"{call}: the loop belongs to the block itself")
    if store.reduce:
        raise ScheduleError(
            f"{call}: {block} is a reduction; only elementwise consumers move this way"
        )
    made = [
        s
        for s in walk_stmts(target.body)
        if isinstance(s, Store) and loads_of(store.value, s.buffer)
    ]
    if not made:
        raise ScheduleError(f"{call}: nothing inside {loop.name} writes what {block} reads")
    if program.buffer(store.buffer).role is not Role.PACKED:
        for s in made:
            if program.buffer(s.buffer).role is Role.PACKED:
                raise ScheduleError(
                    f"{call}: {s.buffer} is packed once, at load time; use compute_at on it first"
                )
    _finished(program, store, made, path[0], call)
    for s in made:
        full, _ = program.path(s.block)
        for outer in full[: len(path)]:
            hit = reduces_into(program, outer)
            if hit is not None and hit.buffer in {m.buffer for m in made}:
                raise ScheduleError(
                    f"{call}: {hit.buffer} is not finished inside {loop.name}, its reduction {outer.var.name} is outside; choose an outer loop"
                )
    spans = {s.buffer: _made(program, s, path) for s in made}
    axes = {f.var: f.extent for f in nest}
    extents, shift = _own_part(program, store, axes, spans, call)
    body: tuple[Stmt, ...] = substitute_body((store,), shift)
    for old in reversed(nest):
        body = (replace(old, extent=extents.get(old.var, old.extent), body=body),)
    program = remove_nest(program, position)
    moved = body[0]
    program = replace_loop(program, loop, lambda s: replace(s, body=(*s.body, moved)))
    for name, part in spans.items():
        if program.buffer(name).role is Role.TEMP:
            program = _shrink(program, program.buffer(name), part, loop)
    return program


def _finished(program: Program, store: Store, made: list[Store], root: For, call: str) -> None:
    """Refuse to move a block before something that it reads has been computed."""
    known = {s.block for s in made}
    earlier = True
    at_load = program.buffer(store.buffer).role is Role.PACKED
    for top in program.body:
        earlier = earlier and top is not root
        for s in walk_stmts((top,)):
            if not isinstance(s, Store) or earlier or s.block in known or s.block == store.block:
                continue
            if program.buffer(s.buffer).role is Role.PACKED and not at_load:
                continue  # finished at load time
            if loads_of(store.value, s.buffer):
                raise ScheduleError(
                    f"{call}: {store.block} also reads {s.buffer}, which is not finished there; move {s.block} first"
                )


def _made(program: Program, store: Store, path: tuple[For, ...]) -> list[Interval]:
    """What of its buffer a store writes below the last loop of `path`, per dimension."""
    inner, _ = _inside(path[-1], store.block)
    outer = loop_ranges(path)
    shape = program.buffer(store.buffer).shape
    return [_clipped(interval(i, inner), n, outer) for i, n in zip(store.indices, shape)]


def _own_part(
    program: Program,
    store: Store,
    axes: dict[Var, Expr],
    made: dict[str, list[Interval]],
    call: str,
) -> tuple[dict[Var, Expr], dict[Var, Expr]]:
    """Extents and new values of a consumer's axes so that it reads just what has been made."""
    extents: dict[Var, Expr] = {}
    shift: dict[Var, Expr] = {}
    for name, spans in made.items():
        shape = program.buffer(name).shape
        for load in loads_of(store.value, name):
            for index, span, size in zip(load.indices, spans, shape):
                moved, extent = index + span.low, span.extent
                if isinstance(index, Var):
                    if axes[index] != size:
                        raise ScheduleError(
                            f"{call}: {store.block} reads {axes[index]} of {size} along {index} of {name}; use compute_at on the producer"
                        )
                    if (shift.setdefault(index, moved), extents.setdefault(index, extent)) == (
                        moved,
                        extent,
                    ):
                        continue
                elif isinstance(index, Const) and (span.low == index or extent == size):
                    continue
                raise ScheduleError(
                    f"{call}: {store.block} reads {name} at {index}, not at its own axes; use compute_at on the producer"
                )
    return extents, shift


def compute_inline(program: Program, block: str) -> Program:
    """Put a producer's expression into its consumers and drop its buffer.

    Examples
    --------
    ``compute_inline(B)``::

        for i in range(8):
            B[i] = A[i] + 1.0        ->        for C.i in range(8):
        for C.i in range(8):                       C[C.i] = (A[C.i] + 1.0) * 2.0
            C[C.i] = B[C.i] * 2.0
    """
    call = f"compute_inline({block})"
    position, nest, store = own_nest(program, block, call)
    if store.reduce:
        raise ScheduleError(f"{call}: {block} is a reduction; use compute_at")
    buffer = program.buffer(store.buffer)
    if buffer.role not in (Role.TEMP, Role.PACKED):
        raise ScheduleError(
            f"{call}: {buffer.name} is an output; only intermediates can be inlined"
        )
    only_writer(program, store, call)
    extents = {loop.var: loop.extent for loop in nest}
    for index, size in zip(store.indices, buffer.shape):
        if extents.get(index, Const(1)) != size:  # type: ignore[call-overload]
            raise ScheduleError(f"{call}: {block} writes a part of {buffer.name} only")

    def go(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer == buffer.name:
            mapping = {v: go(i) for v, i in zip(store.indices, node.indices) if isinstance(v, Var)}
            return substitute(store.value, mapping)
        return map_children(node, go)

    program = remove_nest(program, position)
    body = map_stmts(
        program.body,
        lambda s: (
            replace(
                s,
                value=go(s.value),
                prefetches=tuple(p for p in s.prefetches if p.load.buffer != buffer.name),
            )
            if isinstance(s, Store) and loads_of(s.value, buffer.name)
            else s
        ),
    )
    return drop_buffer(program.with_body(body), buffer.name)

"""The primitive that marks loops to run as special instructions."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Dot, Intrinsic
from tilewright.schedule.loops import find_loop, mentions, reduction_loops, replace_loop
from tilewright.schedule.program import For, LoopKind, Program, Stmt, Store
from tilewright.tensor.expr import Const, Expr, Min, Var

__all__ = ["tensorize"]


def tensorize(program: Program, lane: Var, group: Var, intrinsic: Intrinsic) -> Program:
    """Run a loop as vector lanes, each of which takes a short inner loop in one instruction.

    Parameters
    ----------
    lane : Var
        The loop whose iterations become lanes, as with `vectorize`.
    group : Var
        The loop inside of it, of at most `intrinsic.group` iterations.
    intrinsic : Dot or Interleave
        What the two loops compute. The program's meaning stays that of the loops; a target without the
        instructions of a `Dot` refuses to compile it.

    Examples
    --------
    ``tensorize(j, k.1, Dot(DType.UINT8, DType.INT8, DType.INT32, 4))``::

        for k.0 in range(4):                              for k.0 in range(4):
            for j in range(16):                     ->        for j in range(16):  # vectorized
                for k.1 in range(4):                              for k.1 in range(4):  # dot 4 of uint8 x int8 into int32
                    C[j] += int32(A[k.0*4 + k.1]) * ...               C[j] += int32(A[k.0*4 + k.1]) * ...
    """
    call = f"tensorize({lane.name}, {group.name})"
    outer, inner = find_loop(program, lane), find_loop(program, group)
    if len(outer.body) != 1 or outer.body[0] is not inner:
        raise ScheduleError(
            f"{call}: {group.name} is not the only statement in {lane.name}; reorder it there"
        )
    if len(inner.body) != 1 or not isinstance(inner.body[0], Store):
        raise ScheduleError(f"{call}: {group.name} must hold a single block and no loop")
    for loop in (outer, inner):
        if loop.kind is not LoopKind.SERIAL or loop.parts:
            what = "fused" if loop.parts else loop.kind.value
            raise ScheduleError(f"{call}: {loop.var.name} is {what}; tensorize plain loops")
    if not _at_most(inner.extent, intrinsic.group):
        raise ScheduleError(
            f"{call}: the extent {inner.extent} of {group.name} may exceed {intrinsic.group}; "
            f"split it by {intrinsic.group} first"
        )
    store = inner.body[0]
    if isinstance(intrinsic, Dot):
        _check_dot(program, store, outer, inner, intrinsic, call)
    else:
        _check_interleave(program, store, lane, group, intrinsic.group, call)

    def rebuild(old: For) -> Stmt:
        marked = replace(inner, kind=LoopKind.TENSORIZED, intrinsic=intrinsic)
        return replace(old, kind=LoopKind.VECTORIZED, body=(marked,))

    return replace_loop(program, lane, rebuild)


def _at_most(extent: Expr, size: int) -> bool:
    choices = extent.args if isinstance(extent, Min) else (extent,)
    return any(isinstance(e, Const) and e.value <= size for e in choices)


def _check_dot(program: Program, store: Store, lane: For, group: For, dot: Dot, call: str) -> None:
    reduced = reduction_loops(program, store.block)
    if store.reduce != "sum" or not any(r is group for r in reduced):
        raise ScheduleError(
            f"{call}: {store.block} does not sum over {group.var.name}; {dot} needs that"
        )
    if any(r is lane for r in reduced):
        raise ScheduleError(
            f"{call}: {store.block} reduces over {lane.var.name}; choose a spatial loop for the lanes"
        )
    target = program.buffer(store.buffer)
    if target.dtype is not dot.accumulator or dot.factors(store.value) is None:
        raise ScheduleError(
            f"{call}: {store.block} adds {store.value} to {target.dtype}, which is not {dot}"
        )


def _check_interleave(
    program: Program, store: Store, lane: Var, group: Var, size: int, call: str
) -> None:
    shape = program.buffer(store.buffer).shape
    whole = len(shape) >= 2 and shape[-1] == Const(size)
    if store.reduce is not None or not whole or store.indices[-1] != group:
        raise ScheduleError(
            f"{call}: {store.block} does not write [..., {lane.name}, {group.name}] of a buffer whose "
            f"last dimension is {size}"
        )
    if any(mentions(i, (group,)) for i in store.indices[:-1]) or any(
        mentions(i, (lane,)) for i in store.indices[:-2]
    ):
        raise ScheduleError(
            f"{call}: {lane.name} and {group.name} must each move one of the last two indices of "
            f"{store.buffer}"
        )

"""From a workload to its first program: one loop nest a stage, in order."""

from __future__ import annotations

from tilewright.schedule.program import Buffer, For, Program, Role, Stmt, Store
from tilewright.tensor import expr as ex
from tilewright.tensor.expr import Const, Expr, Load, Read, Reduce, Var
from tilewright.tensor.te import Compute, Tensor, identity
from tilewright.tensor.workload import Workload

__all__ = ["lower"]


def lower(workload: Workload) -> Program:
    """The naive program of a workload: what every schedule starts from.

    An intermediate that depends on constants alone is `Role.PACKED`: computed once, at load time.
    """
    buffers: list[Buffer] = []
    for t in workload.inputs:
        buffers.append(_buffer(t, Role.CONST if t.const else Role.INPUT))
    buffers.extend(_buffer(t, Role.OUTPUT) for t in workload.outputs)
    temps = [t for t in workload.stages if t not in workload.outputs]
    buffers.extend(_buffer(t, Role.PACKED if t in workload.fixed else Role.TEMP) for t in temps)
    used: set[str] = set()
    body: list[Stmt] = [_nest(stage, used) for stage in workload.stages]
    return Program(tuple(buffers), tuple(body))


def _buffer(t: Tensor, role: Role) -> Buffer:
    return Buffer(t.name, tuple(Const(n) for n in t.shape), t.dtype, role)


def _loads(node: Expr) -> Expr:
    if isinstance(node, Read):
        return Load(node.tensor.name, tuple(map(_loads, node.indices)), node.dtype)
    return ex.map_children(node, _loads)


def _nest(stage: Compute, used: set[str]) -> Stmt:
    body = stage.body
    rename: dict[Expr, Expr] = {}
    for v in (*stage.axes, *(v for v, _ in stage.reduce_axes)):
        name = v.name if v.name not in used else f"{stage.name}.{v.name}"
        used.add(name)
        rename[v] = Var(name)
    indices = tuple(rename[v] for v in stage.axes)
    stmt: Stmt
    if isinstance(body, Reduce):
        value = ex.substitute(_loads(body.value), rename)
        neutral = identity(body.op, body.dtype)
        stmt = Store(stage.name, stage.name, indices, value, body.op, neutral)
        for v, n in reversed(body.axes):
            stmt = For(_var(rename[v]), Const(n), (stmt,))
    else:
        stmt = Store(stage.name, stage.name, indices, ex.substitute(_loads(body), rename))
    for v, n in zip(reversed(stage.axes), reversed(stage.shape)):
        stmt = For(_var(rename[v]), Const(n), (stmt,))
    return stmt


def _var(expr: Expr) -> Var:
    assert isinstance(expr, Var)
    return expr

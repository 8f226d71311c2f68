"""A workload: the tensor-expression DAG that one kernel computes, and its stable key."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.errors import TensorError
from tilewright.tensor import expr as ex
from tilewright.tensor.expr import Const, Expr, Load, Read, Reduce, Var
from tilewright.tensor.show import show
from tilewright.tensor.te import Compute, Placeholder, Tensor

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """What to compute.

    Parameters
    ----------
    inputs : tuple of Placeholder
        In calling order.
    outputs : tuple of Compute
        In calling order; every other compute is an intermediate.
    name : str
        Readable, such as ``matmul[512x512x512,f32]+bias+relu``. Not part of the key.

    Notes
    -----
    The *key* is a hash of the DAG with all names replaced by positions, so it is the same in
    every process and on every platform.
    """

    inputs: tuple[Placeholder, ...]
    outputs: tuple[Compute, ...]
    name: str = "workload"
    stages: tuple[Compute, ...] = field(init=False)

    def __post_init__(self) -> None:
        order: dict[Tensor, None] = {}
        for out in self.outputs:
            _visit(out, order)
        found = [t for t in order if isinstance(t, Placeholder)]
        missing = [t.name for t in found if t not in self.inputs]
        if missing:
            raise TensorError(
                f"Workload({self.name}): inputs lack the placeholder(s) {', '.join(missing)}"
            )
        stages = tuple(t for t in order if isinstance(t, Compute))
        names = [t.name for t in (*self.inputs, *stages)]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise TensorError(
                f"Workload({self.name}): the name(s) {', '.join(twice)} occur twice; rename one"
            )
        object.__setattr__(self, "stages", stages)

    @classmethod
    def of(cls, outputs: Compute | Sequence[Compute], name: str | None = None) -> Workload:
        """Collect the inputs of the outputs' DAG, in the order of first use."""
        outs = (outputs,) if isinstance(outputs, Compute) else tuple(outputs)
        order: dict[Tensor, None] = {}
        for out in outs:
            _visit(out, order)
        inputs = tuple(t for t in order if isinstance(t, Placeholder))
        return cls(inputs, outs, name or "+".join(o.name for o in outs))

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits that identify the computation, whatever its names."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:32]

    @cached_property
    def fixed(self) -> frozenset[Compute]:
        """The computes that depend on constants alone, so that they need be computed only once."""
        known: set[Tensor] = {t for t in self.inputs if t.const}
        for stage in self.stages:
            read = {n.tensor for n in ex.walk(stage.body) if isinstance(n, Read)}
            if read and read <= known:
                known.add(stage)
        return frozenset(t for t in known if isinstance(t, Compute))

    @cached_property
    def anchor(self) -> Compute | None:
        """The compute with the most reduction work, or None for a pure elementwise workload."""
        reductions = [s for s in self.stages if s.reduce_axes]
        return max(reductions, key=lambda s: (s not in self.fixed, _work(s)), default=None)

    @cached_property
    def anchor_key(self) -> str:
        """Key of the anchor alone, shared by workloads that differ in their epilogue only."""
        if self.anchor is None:
            return self.key
        return Workload.of(self.anchor, self.name).key

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations of one call (a multiply-add counts two; index arithmetic none)."""
        return sum(s.size * _reduced(s) * _ops(s.body) for s in self.stages)

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of all inputs and outputs: the least traffic of one call."""
        return sum(t.size * t.dtype.n_bytes for t in (*self.inputs, *self.outputs))

    def canonical(self) -> str:
        """The DAG as text with positional names: what `key` hashes."""
        names = {t: f"p{i}" for i, t in enumerate(self.inputs)}
        lines = [
            f"{names[t]}:{t.dtype}{list(t.shape)}{':const' if t.const else ''}" for t in self.inputs
        ]
        renamed: dict[Tensor, str] = {t: f"p{i}" for i, t in enumerate(self.inputs)}
        for i, stage in enumerate(self.stages):
            renamed[stage] = f"t{i}"
            lines.append(f"t{i}:{stage.dtype}{list(stage.shape)}={_canonical_body(stage, renamed)}")
        lines.append("->" + ",".join(renamed[o] for o in self.outputs))
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"{t.name} = placeholder({list(t.shape)}, {t.dtype})" for t in self.inputs]
        for s in self.stages:
            axes = ", ".join(f"{v.name} < {n}" for v, n in zip(s.axes, s.shape))
            lines.append(f"{s.name}[{axes}] = {show(s.body)}")
        return "\n".join(lines)


def _visit(tensor: Tensor, order: dict[Tensor, None]) -> None:
    stack: list[tuple[Tensor, bool]] = [(tensor, False)]
    while stack:
        t, done = stack.pop()
        if t in order:
            continue
        if done or isinstance(t, Placeholder):
            order[t] = None
            continue
        stack.append((t, True))
        reads = [n.tensor for n in ex.walk(t.body) if isinstance(n, Read)]
        stack.extend((r, False) for r in reversed(reads))


def _canonical_body(stage: Compute, names: dict[Tensor, str]) -> str:
    variables: dict[Expr, Expr] = {v: Var(f"a{i}") for i, v in enumerate(stage.axes)}
    axes = stage.reduce_axes
    variables |= {v: Var(f"r{i}") for i, (v, _) in enumerate(axes)}

    def go(node: Expr) -> Expr:
        if isinstance(node, Var):
            return variables[node]
        if isinstance(node, Read):
            return Load(names[node.tensor], tuple(map(go, node.indices)), node.dtype)
        if isinstance(node, Const) and not node.dtype.is_int:
            return node
        return ex.map_children(node, go)

    body = stage.body
    if isinstance(body, Reduce):
        extents = ",".join(f"r{i}<{n}" for i, (_, n) in enumerate(axes))
        return f"{body.op}({show(go(body.value))};{extents})"
    return show(go(body))


def _reduced(stage: Compute) -> int:
    out = 1
    for _, n in stage.reduce_axes:
        out *= n
    return out


def _ops(body: Expr) -> int:
    """Operations on data: nodes that are not index arithmetic."""
    match body:
        case Reduce(_, value):
            return 1 + _ops(value)
        case ex.Poly(terms, const, dtype) if dtype is not ex.INDEX:
            own = sum(len(m) - (abs(c) == 1) for m, c in terms) + len(terms) - (const == 0)
            return own + sum(_ops(a) for m, _ in terms for a in m)
        case ex.Binary(_, a, b) if a.dtype is not ex.INDEX:
            return 1 + _ops(a) + _ops(b)
        case ex.Unary(_, a):
            return 1 + _ops(a)
        case ex.Select(_, a, b):
            return _ops(a) + _ops(b)
        case ex.Cast(a):
            return _ops(a)
    return 0


def _work(stage: Compute) -> int:
    return stage.size * _reduced(stage) * max(1, _ops(stage.body))

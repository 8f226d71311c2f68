"""Run a concrete program step by step in Python: slow, simple, the oracle of schedule tests.

Temporaries start as NaN (floats) or a large odd number (integers), so that reading an element
before it is written shows; every index is checked against its buffer.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ScheduleError
from tilewright.schedule.loops import reduction_loops
from tilewright.schedule.nests import writes
from tilewright.schedule.program import For, Program, Role, Stmt
from tilewright.schedule.reduction import decompose_reduction
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Knob,
    Load,
    Min,
    Poly,
    Select,
    Unary,
    Var,
    const_value,
)

__all__ = ["interpret"]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "floordiv": operator.floordiv, "mod": operator.mod, "ceildiv": lambda a, b: -(-a // b), "min": min, "max": max,
    "lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": math.exp, "log": math.log, "tanh": math.tanh, "erf": math.erf, "sqrt": math.sqrt, "sin": math.sin,
    "cos": math.cos, "floor": math.floor, "ceil": math.ceil, "round": round, "abs": abs, "neg": operator.neg,
    "not": operator.not_, "isnan": math.isnan, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}  # fmt: skip
_REDUCE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "prod": operator.mul,
    "max": max,
    "min": min,
}


def interpret(program: Program, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Run a program.

    Parameters
    ----------
    program : Program
        Without knobs.
    arrays : sequence of arrays
        One for each input, in order.

    Returns
    -------
    list of arrays
        The outputs, in order.

    Raises
    ------
    ScheduleError
        If an index leaves its buffer.
    """
    for block, store in program.blocks().items():
        if store.init is not None:
            reduced = reduction_loops(program, block)
            if reduced:
                program = decompose_reduction(program, block, reduced[0].var)
    inputs = iter(arrays)
    memory: dict[str, NDArray[Any]] = {}
    for b in program.buffers:
        if b.role in (Role.INPUT, Role.CONST):
            memory[b.name] = np.asarray(next(inputs))
            continue
        shape = tuple(int(const_value(n) or 0) for n in b.shape)
        memory[b.name] = np.full(shape, np.nan if b.dtype.is_float else 113, dtype=b.dtype.numpy)
    packed = [b.name for b in program.buffers if b.role is Role.PACKED]
    at_load = [any(writes(s, name) for name in packed) for s in program.body]
    for first in (True, False):  # what is known at load time comes first, wherever it stands
        _run(tuple(s for s, early in zip(program.body, at_load) if early is first), {}, memory)
    return [memory[b.name] for b in program.buffers if b.role is Role.OUTPUT]


def _run(body: tuple[Stmt, ...], env: dict[Var, int], memory: dict[str, NDArray[Any]]) -> None:
    for s in body:
        if isinstance(s, For):
            _loop(s, env, memory)
            continue
        where = _index(s.buffer, s.indices, env, memory)
        value = evaluate(s.value, env, memory)
        if s.reduce is not None:
            old = s.init if s.init is None else evaluate(s.init, env, memory)
            value = _REDUCE[s.reduce](memory[s.buffer][where].item() if old is None else old, value)
        memory[s.buffer][where] = _wrapped(value, memory[s.buffer].dtype)


def _loop(s: For, env: dict[Var, int], memory: dict[str, NDArray[Any]]) -> None:
    for n in range(evaluate(s.extent, env, memory)):
        env[s.var] = n
        rest = n
        for v, e in reversed(s.parts):
            size = evaluate(e, env, memory)
            env[v] = rest % size
            rest //= size
        _run(s.body, env, memory)


def _wrapped(value: Any, dtype: np.dtype[Any]) -> Any:
    """Integers modulo the range of their type, as machines have them."""
    if dtype.kind not in "iu":
        return value
    least = int(np.iinfo(dtype).min)
    return (int(value) - least) % (1 << 8 * dtype.itemsize) + least


def _held(value: Any, dtype: DType) -> Any:
    """As a kernel holds it before it is rounded to an integer; halves are float32 in registers."""
    return value if dtype is DType.FLOAT64 else np.float32(value).item()


def _index(
    name: str, indices: tuple[Expr, ...], env: dict[Var, int], memory: dict[str, NDArray[Any]]
) -> tuple[int, ...]:
    where = tuple(int(evaluate(i, env, memory)) for i in indices)
    shape = memory[name].shape
    if not all(0 <= i < n for i, n in zip(where, shape)):
        raise ScheduleError(f"interpret: {name}{list(where)} is outside of its shape {list(shape)}")
    return where


def evaluate(e: Expr, env: dict[Var, int], memory: dict[str, NDArray[Any]]) -> Any:
    """The value of an expression."""
    match e:
        case Const(value):
            return value
        case Var():
            return env[e]
        case Poly(terms, const):
            total = const
            for atoms, c in terms:
                for a in atoms:
                    c = c * evaluate(a, env, memory)
                total = total + c
            return total
        case Min(args):
            return min(evaluate(a, env, memory) for a in args)
        case Binary("and", a, b):
            return evaluate(a, env, memory) and evaluate(b, env, memory)
        case Binary("or", a, b):
            return evaluate(a, env, memory) or evaluate(b, env, memory)
        case Binary(op, a, b):
            return _BINARY[op](evaluate(a, env, memory), evaluate(b, env, memory))
        case Unary("floor" | "ceil" | "round" as op, a):
            return _UNARY[op](_held(evaluate(a, env, memory), a.dtype))
        case Unary(op, a):
            return _UNARY[op](evaluate(a, env, memory))
        case Select(c, a, b):
            return evaluate(a if evaluate(c, env, memory) else b, env, memory)
        case Cast(a, dtype) if dtype.is_int:
            value = evaluate(a, env, memory)
            held = _held(value, a.dtype) if a.dtype.is_float else value
            return _wrapped(held, dtype.numpy)
        case Cast(a, dtype):
            return dtype.numpy.type(evaluate(a, env, memory)).item()
        case Load(buffer, indices):
            return memory[buffer][_index(buffer, indices, env, memory)].item()
        case Knob(name):
            raise ScheduleError(
                f"interpret: the program holds the open knob {name}; choose a row first"
            )
    raise AssertionError(type(e))

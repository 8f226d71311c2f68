"""Which integer outputs are the same in every correct kernel, to the last bit.

Floating-point sums depend on their order, and functions such as exp on their approximation. Where such a
value lies next to the edge between two integers, rounding it may go either way. One product, quotient or
sum of exact values is rounded alike everywhere, so what integers are usually scaled by is exact.
"""

from __future__ import annotations

from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Binary, Cast, Expr, Read, Reduce, Select, Unary, children
from tilewright.tensor.te import Compute, Tensor
from tilewright.tensor.workload import Workload

__all__ = ["exact_outputs"]

_SURE, _PENDING, _LOOSE = 0, 1, 2  # exact; exact once it is rounded to its type; neither
_SAME = ("min", "max", "neg", "abs", "not")


def exact_outputs(workload: Workload) -> tuple[bool, ...]:
    """Whether each output is exact (those of floating-point type never are)."""
    grades: dict[Tensor, int] = {}
    for stage in workload.stages:
        grades[stage] = _grade(stage.body, grades)
    return tuple(not o.dtype.is_float and grades[o] == _SURE for o in workload.outputs)


def _grade(e: Expr, known: dict[Tensor, int]) -> int:
    """How exact a value is."""
    if isinstance(e, Read):
        return max(_of_tensor(e.tensor, known), *(_grade(i, known) for i in e.indices), _SURE)
    below = max((_grade(c, known) for c in children(e)), default=_SURE)
    if below == _LOOSE:
        return _LOOSE
    match e:
        case Reduce(op, value):
            sums = value.dtype.is_float and op in ("sum", "prod")
            return _LOOSE if sums else below
        case Binary(op, a) if op not in _SAME and a.dtype.is_float:
            arithmetic = op in ("add", "sub", "mul", "div") and e.dtype is not DType.BOOL
            return _LOOSE if below == _PENDING or op == "pow" else _PENDING if arithmetic else _SURE
        case Unary(op) if op == "sqrt":
            return _LOOSE if below == _PENDING else _PENDING
        case Unary(op) if op in ("floor", "ceil", "round", "isnan"):
            return _SURE
        case Unary(op) if op not in _SAME:
            return _LOOSE
        case Cast():
            return _SURE
        case Select(c) if _grade(c, known) == _PENDING:
            return _LOOSE
    return below


def _of_tensor(t: Tensor, known: dict[Tensor, int]) -> int:
    return known[t] if isinstance(t, Compute) else _SURE

"""What special instructions compute: the patterns of two loops that `tensorize` marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.errors import ScheduleError, TensorError
from tilewright.tensor.dtype import DType, as_dtype
from tilewright.tensor.expr import Binary, Cast, Expr, Poly

__all__ = ["Dot", "Interleave", "Intrinsic", "as_intrinsic"]

_BYTES = (DType.INT8, DType.UINT8)


@dataclass(frozen=True, slots=True)
class Dot:
    """Each lane adds a short sum of products: ``acc[l] += sum of a[l, p] * b[l, p] for p < group``.

    Integers never saturate: sums wrap in the accumulator's type, as the plain loops do. Instructions
    such as vpdpbusd (uint8 x int8), vpdpbf16ps, sdot, udot and usdot compute it.

    Parameters
    ----------
    a, b : DType
        Of the factors; the order says nothing about which of them is which in a program.
    accumulator : DType
    group : int
        Products of one lane.

    Examples
    --------
    >>> print(Dot(DType.UINT8, DType.INT8, DType.INT32, 4))
    dot 4 of uint8 x int8 into int32
    """

    a: DType
    b: DType
    accumulator: DType
    group: int

    def __post_init__(self) -> None:
        whole = {self.a, self.b} <= set(_BYTES) and self.accumulator is DType.INT32
        half = self.a is self.b is DType.BFLOAT16 and self.accumulator is DType.FLOAT32
        if not (whole and self.group in (2, 4)) and not (half and self.group == 2):
            raise ScheduleError(
                f"Dot({self.a}, {self.b}, {self.accumulator}, {self.group}): no instruction computes this; "
                "use 8-bit integers into int32 by 2 or 4, or bfloat16 into float32 by 2"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The CPU features, as LLVM names them, any one of which has instructions for it."""
        if self.accumulator is DType.FLOAT32:
            return ("+avx512bf16", "+bf16")
        if self.group == 2:
            return ("+avx512bw", "+avx2")
        return ("+avx512vnni", "+avxvnni", "+dotprod")

    def available(self, features: frozenset[str]) -> bool:
        """Whether a target with these features (such as ``+avx512vnni``) has instructions for it."""
        return any(f in features for f in self.needs)

    def factors(self, value: Expr) -> tuple[Expr, Expr] | None:
        """The two factors, of types `a` and `b`, if the value is their product."""
        match value:
            case Poly(((monomial, 1),), 0) if len(monomial) == 2:
                x, y = monomial
            case Binary("mul", x, y):
                pass
            case _:
                return None
        if value.dtype is not self.accumulator or not (isinstance(x, Cast) and isinstance(y, Cast)):
            return None
        for one, other in ((x.a, y.a), (y.a, x.a)):
            if one.dtype is self.a and other.dtype is self.b:
                return one, other
        return None

    def argument(self) -> tuple[str | int, ...]:
        """How traces write it."""
        return ("dot", str(self.a), str(self.b), str(self.accumulator), self.group)

    def __str__(self) -> str:
        return f"dot {self.group} of {self.a} x {self.b} into {self.accumulator}"


@dataclass(frozen=True, slots=True)
class Interleave:
    """Rows become columns: ``out[l, p] = value[p][l]``, `group` values of a lane side by side.

    Examples
    --------
    >>> print(Interleave(4))
    interleave 4
    """

    group: int

    def __post_init__(self) -> None:
        if self.group not in (2, 4, 8):
            raise ScheduleError(f"Interleave({self.group}): choose 2, 4 or 8")

    def argument(self) -> tuple[str | int, ...]:
        """How traces write it."""
        return ("interleave", self.group)

    def __str__(self) -> str:
        return f"interleave {self.group}"


Intrinsic: TypeAlias = Dot | Interleave


def as_intrinsic(what: Intrinsic | Sequence[str | int]) -> Intrinsic:
    """The intrinsic itself, or the one that a trace describes.

    Raises
    ------
    ScheduleError
        If the description is of none.
    """
    if isinstance(what, (Dot, Interleave)):
        return what
    match tuple(what):
        case ("dot", str(a), str(b), str(accumulator), int(group)):
            try:
                return Dot(as_dtype(a), as_dtype(b), as_dtype(accumulator), group)
            except TensorError as error:
                raise ScheduleError(f"tensorize: {error}") from None
        case ("interleave", int(group)):
            return Interleave(group)
    raise ScheduleError(
        f"tensorize: {list(what)} describes no intrinsic; "
        "write e.g. ['dot', 'uint8', 'int8', 'int32', 4] or ['interleave', 4]"
    )

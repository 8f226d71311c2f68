"""Axis arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TensorError
from tilewright.tensor.expr import Const, Expr

__all__ = ["axis_index", "check_lengths", "leading"]


def axis_index(call: str, axis: int, rank: int) -> int:
    """The dimension that an axis means; negative ones count from the end.

    Raises
    ------
    TensorError
        If there is no such dimension.
    """
    if not -rank <= axis < rank:
        raise TensorError(f"{call}: axis {axis} lies outside of the {rank} dimensions")
    return axis % rank


def check_lengths(call: str, length: int, **sequences: Sequence[object]) -> None:
    """Refuse arguments that do not have one entry a dimension.

    Raises
    ------
    TensorError
        If a sequence has another length.
    """
    for name, values in sequences.items():
        if len(values) != length:
            raise TensorError(
                f"{call}: {name} has {len(values)} entries; give one for each of {length} dimensions"
            )


def leading(own: Sequence[int], axes: Sequence[Expr]) -> tuple[Expr, ...]:
    """Indices of the leading dimensions of an operand that is broadcast to some leading axes."""
    last = axes[len(axes) - len(own) :]
    return tuple(Const(0) if n == 1 else v for n, v in zip(own, last))

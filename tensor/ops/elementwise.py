"""Elementwise functions with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import TensorError
from tilewright.tensor import te
from tilewright.tensor.expr import Const, Expr, ExprLike, Var
from tilewright.tensor.te import Compute, Tensor

__all__ = ["broadcast_shape", "elementwise", "read"]


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape by NumPy's rules.

    Raises
    ------
    TensorError
        If the shapes do not broadcast.
    """
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for d in range(rank):
        sizes = {s[d - rank + len(s)] for s in shapes if d - rank + len(s) >= 0}
        large = sizes - {1}
        if len(large) > 1:
            raise TensorError(
                f"broadcast_shape{shapes}: dimension {d} has the sizes {sorted(large)}"
            )
        out.append(large.pop() if large else 1)
    return tuple(out)


def read(tensor: Tensor, axes: tuple[Expr, ...]) -> Expr:
    """The element of a tensor that is broadcast to the given axes."""
    offset = len(axes) - len(tensor.shape)
    index = tuple(Const(0) if n == 1 else axes[offset + d] for d, n in enumerate(tensor.shape))
    return tensor[index] if index else te_scalar(tensor)


def te_scalar(tensor: Tensor) -> Expr:
    """The only element of a tensor of rank zero."""
    from tilewright.tensor.expr import Read

    return Read(tensor, (), tensor.dtype)


def elementwise(
    name: str,
    f: Callable[..., ExprLike],
    *operands: Tensor | ExprLike,
    shape: tuple[int, ...] | None = None,
) -> Compute:
    """Apply a scalar function to broadcast operands.

    Parameters
    ----------
    name : str
    f : callable
        Takes one expression an operand.
    operands : tensors or scalars
    shape : tuple of int, optional
        Of the result, if larger than what the operands broadcast to.

    Examples
    --------
    >>> a, b = te.placeholder((2, 3), name="a"), te.placeholder((3,), name="b")
    >>> print(elementwise("c", lambda x, y: x + y, a, b).body)
    a[i0, i1] + b[i1]
    """
    tensors = [o for o in operands if not isinstance(o, (Expr, int, float, bool))]
    full = broadcast_shape(*(t.shape for t in tensors), *([shape] if shape is not None else []))

    def body(*axes: Var) -> ExprLike:
        return f(
            *(o if isinstance(o, (Expr, int, float, bool)) else read(o, axes) for o in operands)
        )

    return te.compute(full, body, name=name)

"""Einsum: products summed over the letters that the result lacks."""

from __future__ import annotations

from tilewright.errors import GraphError
from tilewright.graph.operators.call import Call
from tilewright.tensor import te
from tilewright.tensor.expr import Const, Expr
from tilewright.tensor.ops.precision import narrowed, wide
from tilewright.tensor.te import Compute, Tensor

__all__ = ["einsum"]


def einsum(call: Call) -> Compute:
    """Einstein's summation; a letter that occurs twice in a term takes the diagonal."""
    equation = str(call.attribute("equation")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    tensors = [call.tensor(n) for n in range(len(call.tensors))]
    whole = f"Einsum {call.node.name}: {equation!r}"
    misfit = GraphError(f"{whole} does not fit the shapes {[list(x.shape) for x in tensors]}")
    if len(terms) != len(tensors):
        raise misfit
    indices = [_letters(term, len(t.shape)) for term, t in zip(terms, tensors)]
    letters = list(dict.fromkeys(c for t in indices for c in t))
    dots = sorted((c for c in letters if c.isdigit()), key=int, reverse=True)
    if arrow:
        out = [c for part in right.partition("...") for c in (dots if part == "..." else part)]
    else:  # those that occur once, in alphabetical order
        out = dots + sorted(c for c in letters if c not in dots and left.count(c) == 1)
    sizes = _sizes(indices, tensors)
    if sizes is None or any(c not in sizes for c in out) or len(set(out)) < len(out):
        raise misfit
    reduced = {c: te.reduce_axis(sizes[c], f"r{c}") for c in letters if c not in out}

    def body(*axes: Expr) -> Expr:
        at: dict[str, Expr] = {**dict(zip(out, axes)), **{c: r.var for c, r in reduced.items()}}
        product: Expr | None = None
        for t, own in zip(tensors, indices):
            places = tuple(Const(0) if n == 1 else at[c] for c, n in zip(own, t.shape))
            value = wide(t[places] if own else _only(t))
            product = value if product is None else product * value
        assert product is not None
        return te.sum(product, list(reduced.values())) if reduced else product

    shape = [sizes[c] for c in out]
    return narrowed(shape, lambda *axes: body(*axes), call.name, tensors[0].dtype)


def _only(t: Tensor) -> Expr:
    from tilewright.tensor.ops.elementwise import read

    return read(t, ())


def _letters(term: str, rank: int) -> list[str]:
    """A letter for each dimension; those of the ellipsis are numbers, counted from the last."""
    before, dots, after = term.partition("...")
    if not dots:
        return list(term)
    hidden = max(0, rank - len(before) - len(after))
    return [*before, *(str(n) for n in reversed(range(hidden))), *after]


def _sizes(indices: list[list[str]], tensors: list[Tensor]) -> dict[str, int] | None:
    """The size of each letter; dimensions of the ellipsis broadcast."""
    sizes: dict[str, int] = {}
    for own, t in zip(indices, tensors):
        if len(own) != len(t.shape):
            return None
        for c, n in zip(own, t.shape):
            known = sizes.setdefault(c, n)
            if known != n and not (c.isdigit() and 1 in (n, known)):
                return None
            sizes[c] = max(known, n)
    return sizes

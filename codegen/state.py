"""What is known at the point where code is being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tilewright.codegen.irbuilder import FunctionBuilder
from tilewright.codegen.layout import Layout
from tilewright.codegen.ranges import Ranges
from tilewright.tensor.expr import Const, Expr, Poly, Var

__all__ = ["Lanes", "Linear", "State", "Value"]


@dataclass(frozen=True)
class Lanes:
    """The iterations of a vectorized loop that one instruction covers: `count` of `width` count."""

    var: Var
    base: int
    width: int
    count: int


@dataclass(frozen=True)
class Value:
    """A named result; width 1 is a scalar that stands for every lane."""

    name: str
    width: int


@dataclass(frozen=True)
class Linear:
    """An offset in elements: sum of coefficient times variable, a constant, and other terms."""

    terms: tuple[tuple[Var, int], ...]
    const: int
    others: tuple[tuple[Expr, int], ...]


@dataclass
class State:
    """Everything that changes while a function's body is written."""

    fb: FunctionBuilder
    layout: Layout
    vector_bits: int
    pointers: dict[str, str]
    names: dict[Var, str | int] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    order: dict[Var, int] = field(default_factory=dict)
    unrolled: dict[Var, int] = field(default_factory=dict)  # trips of the unrolled loops around
    writes: dict[str, int] = field(default_factory=dict)  # stores so far to each buffer
    copies: int = 1  # of the code being written, one for each part of the loops around
    accumulators: dict[str, list[Value]] = field(default_factory=dict)
    _memo: list[dict[object, str]] = field(default_factory=lambda: [{}])
    _linear: dict[tuple[str, tuple[Expr, ...]], Linear] = field(default_factory=dict)

    def define(self, var: Var, name: str | int, low: int, high: int) -> None:
        """Bind a loop variable to a name or number and its range."""
        self.names[var] = name
        self.ranges[var] = (low, high)
        self.order.setdefault(var, len(self.order))

    def recall(self, key: object) -> str | None:
        """A result that was computed before and still dominates this point."""
        for frame in reversed(self._memo):
            if key in frame:
                return frame[key]
        return None

    def recall_load(self, buffer: str, key: object) -> str | None:
        """What was read before in this very region, if nothing has been written to the buffer since."""
        return self._memo[-1].get((key, self.writes.get(buffer, 0)))

    def remember_load(self, buffer: str, key: object, name: str) -> str:
        """Keep what was read from a buffer."""
        return self.remember((key, self.writes.get(buffer, 0)), name)

    def remember(self, key: object, name: str) -> str:
        """Keep a result for later use in this region."""
        self._memo[-1][key] = name
        return name

    @contextmanager
    def copy(self, one_of_several: bool) -> Iterator[None]:
        """Code that is written for a part of a loop only; parts are three at most, as a rule."""
        old = self.copies
        self.copies = old * 3 if one_of_several else old
        try:
            yield
        finally:
            self.copies = old

    @contextmanager
    def region(self) -> Iterator[None]:
        """A block that may not run: what is computed inside is forgotten afterwards."""
        self._memo.append({})
        try:
            yield
        finally:
            self._memo.pop()

    def linear(self, buffer: str, indices: tuple[Expr, ...]) -> Linear:
        """The offset of an access, as far as it is linear in loop variables."""
        key = (buffer, indices)
        found = self._linear.get(key)
        if found is None:
            found = self._linear[key] = _linear(self.layout.places[buffer].strides, indices)
        return found


def _linear(strides: tuple[int, ...], indices: tuple[Expr, ...]) -> Linear:
    terms: dict[Var, int] = {}
    others: list[tuple[Expr, int]] = []
    const = 0
    for index, stride in zip(indices, strides):
        match index:
            case Const(value):
                const += int(value) * stride
            case Var():
                terms[index] = terms.get(index, 0) + stride
            case Poly(parts, constant):
                const += constant * stride
                for atoms, c in parts:
                    atom = atoms[0]
                    if len(atoms) == 1 and isinstance(atom, Var):
                        terms[atom] = terms.get(atom, 0) + c * stride
                    else:
                        product: Expr = Const(1)
                        for a in atoms:
                            product = product * a
                        others.append((product, c * stride))
            case _:
                others.append((index, stride))
    return Linear(tuple((v, c) for v, c in terms.items() if c), const, tuple(others))

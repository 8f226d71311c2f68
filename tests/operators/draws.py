"""Draws of small, awkward sizes: ones, primes, odd numbers, whole vectors and one more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tilewright.tensor import te
from tilewright.tensor.te import Placeholder

__all__ = ["REAL", "SIZES", "Draw"]

SIZES = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    11,
    13,
    15,
    16,
    17,
    19,
    23,
    29,
    31,
    32,
    33,
    37,
    47,
    48,
    53,
    64,
    65,
    67,
    83,
    101,
)
REAL = ("float32",) * 5 + ("float64",) * 2 + ("float16", "bfloat16")
T = TypeVar("T")


class Draw:
    """A seeded source of configurations."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.rng.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def flag(self, share: float = 0.5) -> bool:
        """True in so many cases."""
        return bool(self.rng.random() < share)

    def size(self, most: int = 40, least: int = 1) -> int:
        """An extent."""
        return self.one([n for n in SIZES if least <= n <= most])

    def shape(self, rank: int, elements: int = 6000) -> tuple[int, ...]:
        """Extents of a tensor with at most so many elements."""
        dims: list[int] = []
        for _ in range(rank):
            room = elements // int(np.prod(dims, dtype=np.int64)) if dims else elements
            dims.append(self.size(max(1, min(101, room))))
        self.rng.shuffle(dims)
        return tuple(dims)

    def order(self, rank: int) -> list[int]:
        """A permutation of dimensions."""
        return [int(d) for d in self.rng.permutation(rank)]

    def axes(self, rank: int) -> list[int]:
        """Some dimensions, at least one; some counted from the end."""
        chosen = self.order(rank)[: self.integer(1, rank)]
        return [d - rank if self.flag(0.3) else d for d in chosen]

    def tensor(
        self, name: str, *shape: int, dtype: str = "float32", const: bool = False
    ) -> Placeholder:
        """An input."""
        return te.placeholder(shape, dtype, name=name, const=const)

    def dropped(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to the given one: leading extents left out, others ones."""
        kept = list(shape[self.integer(0, len(shape)) if self.flag(0.4) else 0 :])
        return tuple(1 if self.flag(0.25) else n for n in kept)

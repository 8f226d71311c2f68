"""A static memory plan: where every value lives in one arena, with reuse."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.graph.fusion import FusedGraph
from tilewright.runtime.arena import ALIGNMENT

__all__ = ["MemoryPlan", "plan_memory"]

SLACK = 64
PAGE = 4096
"""Values of a page and more start at a page: a CPU compares the low twelve bits of addresses first, and a
store just behind (in these bits) of what is loaded next holds the load up."""


@dataclass(frozen=True)
class MemoryPlan:
    """Byte offsets of values that own memory, and the arena's size."""

    offsets: dict[str, int]
    n_bytes: int
    naive_bytes: int

    @property
    def reuse(self) -> float:
        """How many times smaller the arena is than one buffer a value."""
        return self.naive_bytes / max(1, self.n_bytes)


def plan_memory(fused: FusedGraph) -> MemoryPlan:
    """Place values greedily, largest first, where no value alive at the same time lies.

    Graph inputs are alive all the time, so that a call can be repeated on them; outputs to the end.
    """
    last = len(fused.groups)
    born: dict[str, int] = {i.name: -1 for i in fused.graph.inputs}
    dies: dict[str, int] = {i.name: last for i in fused.graph.inputs}
    for step, group in enumerate(fused.groups):
        for name in group.inputs:
            root = fused.root(name)
            if root in born:
                dies[root] = max(dies[root], step)
        born[group.output] = dies[group.output] = step
    for name in fused.graph.outputs:
        root = fused.root(name)
        if root in born:
            dies[root] = last
    sizes = {n: _size(fused, n) for n in born}
    offsets: dict[str, int] = {}
    for name in sorted(born, key=lambda n: (-sizes[n], born[n])):
        busy = sorted(
            (offsets[o], offsets[o] + sizes[o])
            for o in offsets
            if born[o] <= dies[name] and born[name] <= dies[o]
        )
        step = PAGE if sizes[name] >= PAGE else ALIGNMENT
        at = 0
        for start, stop in busy:
            if at + sizes[name] <= start:
                break
            at = max(at, -(-stop // step) * step)
        offsets[name] = at
    total = max((offsets[n] + sizes[n] for n in offsets), default=0)
    return MemoryPlan(offsets, total, sum(sizes.values()))


def _size(fused: FusedGraph, name: str) -> int:
    info = fused.graph.values[name]
    n_bytes = info.dtype.n_bytes
    for n in info.shape:
        n_bytes *= n
    return -(-(n_bytes + SLACK) // ALIGNMENT) * ALIGNMENT

"""Groups of nodes that become one kernel each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.alternatives import rewritten, with_weights
from tilewright.graph.ir import Graph, Node
from tilewright.graph.lowering import lower_node
from tilewright.graph.operators import OPERATORS, VIEWS
from tilewright.tensor import Workload, te
from tilewright.tensor.te import Compute, Tensor

__all__ = ["FusedGraph", "Group", "fuse"]

LIMIT = 24  # nodes of one group


@dataclass(frozen=True)
class Group:
    """One kernel: what it computes and which values it reads and writes.

    Attributes
    ----------
    inputs : tuple of str
        A value name for each input of the workload, in order; constants are among them.
    alternatives : tuple of Group
        Other workloads that compute the same, to within rounding.
    """

    workload: Workload
    inputs: tuple[str, ...]
    output: str
    nodes: tuple[Node, ...]
    alternatives: tuple[Group, ...] = ()

    @property
    def forms(self) -> tuple[Group, ...]:
        """The group itself, then its alternatives."""
        return (self, *self.alternatives)


@dataclass(frozen=True)
class FusedGraph:
    """A graph as groups in order, with the views between them.

    Attributes
    ----------
    graph : Graph
    groups : tuple of Group
    aliases : dict
        Values that are views: the name of the value whose memory they share.
    """

    graph: Graph
    groups: tuple[Group, ...]
    aliases: dict[str, str]

    def workloads(self) -> list[Workload]:
        """The distinct workloads, in order of first use."""
        return list({g.workload.key: g.workload for g in self.groups}.values())

    def weights(self) -> list[tuple[tuple[Workload, ...], int]]:
        """The distinct workloads, each followed by its alternatives, and how often one runs it."""
        counts = Counter(g.workload.key for g in self.groups)
        forms = {g.workload.key: tuple(f.workload for f in g.forms) for g in self.groups}
        return [(forms[key], n) for key, n in counts.items()]

    def choose(self, seconds: Callable[[Workload], float | None]) -> FusedGraph:
        """Let each group take the fastest form of which the time is known; without any, the plain one."""

        def pick(group: Group) -> Group:
            known = [
                (t, k) for k, f in enumerate(group.forms) if (t := seconds(f.workload)) is not None
            ]
            return group.forms[min(known)[1]] if known else group

        chosen = tuple(map(pick, self.groups))
        return replace(self, graph=with_weights(self.graph, chosen), groups=chosen)

    def root(self, name: str) -> str:
        """The value whose memory a value uses."""
        while name in self.aliases:
            name = self.aliases[name]
        return name


def fuse(graph: Graph, *, alternatives: bool = True) -> FusedGraph:
    """Put elementwise operators into the kernels that make their operands.

    Parameters
    ----------
    graph : Graph
    alternatives : bool
        Whether groups list other ways to compute the same, which round differently (Winograd's
        convolutions).
    """
    aliases = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op in VIEWS}
    consumers = graph.consumers()
    taken: set[int] = set()
    clusters: list[list[Node]] = []
    for node in graph.nodes:
        if node.op in VIEWS or id(node) in taken:
            continue
        cluster = _grow(graph, node, consumers, taken)
        taken.update(id(n) for n in cluster)
        clusters.append(cluster)
    groups = []
    for c in _ordered(graph, clusters, aliases):
        others = [_group(g, nodes) for g, nodes in rewritten(graph, c)] if alternatives else []
        groups.append(replace(_group(graph, c), alternatives=tuple(others)))
    return FusedGraph(graph, tuple(groups), aliases)


def _kind(node: Node) -> str:
    return OPERATORS[node.op][0]


def _grow(
    graph: Graph, seed: Node, consumers: dict[str, list[Node]], taken: set[int]
) -> list[Node]:
    """Absorb elementwise consumers as long as one value leaves the group."""
    cluster = [seed]
    inside = {seed.outputs[0]}
    best = 1
    shape = graph.values[seed.outputs[0]].shape
    while len(cluster) < LIMIT:
        reach = _reach(cluster, consumers)
        following = _candidate(graph, cluster, inside, reach, shape, consumers, taken)
        if following is None:
            break
        cluster.append(following)
        inside.add(following.outputs[0])
        leaving = [
            v
            for v in inside
            if v in graph.outputs or any(c not in cluster for c in consumers.get(v, []))
        ]
        if leaving == [following.outputs[0]]:
            best = len(cluster)
    return cluster[:best]


def _reach(cluster: list[Node], consumers: dict[str, list[Node]]) -> set[int]:
    """Nodes outside a cluster that depend on it."""
    members = {id(n) for n in cluster}
    found: set[int] = set()
    stack = [o for n in cluster for o in n.outputs]
    while stack:
        for c in consumers.get(stack.pop(), []):
            if id(c) not in members and id(c) not in found:
                found.add(id(c))
                stack.extend(c.outputs)
    return found


def _candidate(
    graph: Graph, cluster: list[Node], inside: set[str], reach: set[int], shape: tuple[int, ...],
    consumers: dict[str, list[Node]], taken: set[int],
) -> Node | None:  # fmt: skip
    made = {o: id(n) for n in graph.nodes for o in n.outputs}
    for value in [o for n in cluster for o in n.outputs]:
        for c in consumers.get(value, []):
            if c in cluster or id(c) in taken or c.op in VIEWS or _kind(c) != "elementwise":
                continue
            if graph.values[c.outputs[0]].shape != shape:
                continue
            others = [i for i in c.inputs if i and i not in inside and i not in graph.constants]
            if all(made.get(i) not in reach for i in others):
                return c
    return None


def _ordered(graph: Graph, clusters: list[list[Node]], aliases: dict[str, str]) -> list[list[Node]]:
    """Clusters so that each comes after what it reads."""

    def root(name: str) -> str:
        while name in aliases:
            name = aliases[name]
        return name

    owner = {o: k for k, c in enumerate(clusters) for n in c for o in n.outputs}
    needs = [
        {owner[root(i)] for n in c for i in n.inputs if root(i) in owner and owner[root(i)] != k}
        for k, c in enumerate(clusters)
    ]
    done: list[int] = []
    state = [0] * len(clusters)
    for start in range(len(clusters)):
        stack = [start]
        while stack:
            k = stack[-1]
            if state[k] == 2:
                stack.pop()
                continue
            state[k] = 1
            waiting = [d for d in sorted(needs[k]) if state[d] != 2]
            if waiting:
                assert all(state[d] == 0 for d in waiting), "cyclic groups"
                stack.extend(reversed(waiting))
            else:
                state[k] = 2
                done.append(k)
                stack.pop()
    return [clusters[k] for k in done]


# ------------------------------------------------------------------ workloads


def _merges(graph: Graph, cluster: list[Node]) -> list[bool]:
    """For each pair of neighbouring dimensions of the result: whether they can be one."""
    shape = graph.values[cluster[-1].outputs[0]].shape
    rank = len(shape)
    seed = cluster[0]
    pointwise = seed.op == "Conv" and _pointwise(graph, seed)
    if not pointwise and any(_kind(n) != "elementwise" for n in cluster):
        return [False] * max(0, rank - 1)
    if any(_names_axes(graph, n) for n in cluster):
        return [False] * max(0, rank - 1)
    names = {v for n in cluster for v in (*n.inputs, *n.outputs) if v}
    if pointwise:
        names -= {i for i in seed.inputs[1:] if i}
    shapes = [
        graph.values[v].shape
        for v in names
        if graph.constants.get(v) is None or graph.constants[v].size > 1
    ]
    out: list[bool] = []
    start = 0  # of the run of dimensions that are one so far
    for d in range(rank - 1):
        good = not pointwise or d >= 2
        for s in shapes:
            full = (1,) * (rank - len(s)) + s
            run, whole = full[start : d + 2], shape[start : d + 2]
            good = good and (run == whole or all(n == 1 for n in run))
        start = start if good else d + 1
        out.append(good)
    return out


def _names_axes(graph: Graph, n: Node) -> bool:
    """Whether what a node computes speaks of single dimensions."""
    if n.op in ("DequantizeLinear", "QuantizeLinear"):
        return math.prod(graph.values[n.inputs[1]].shape) > 1
    return n.op in ("BatchNormalization", "Expand")


def _pointwise(graph: Graph, n: Node) -> bool:
    kernel = graph.values[n.inputs[1]].shape[2:]
    return (
        len(kernel) >= 2
        and all(k == 1 for k in kernel)
        and all(s == 1 for s in n.attribute("strides", (1,)))
        and not any(n.attribute("pads", (0,)))
        and n.attribute("group", 1) == 1
    )


def _merged(shape: tuple[int, ...], merges: list[bool]) -> tuple[int, ...]:
    """A shape with neighbouring dimensions joined."""
    rank = len(merges) + 1
    if not any(merges) or not shape:
        return shape
    full = (1,) * (rank - len(shape)) + shape
    out = [full[0]]
    for d, join in enumerate(merges):
        if join:
            out[-1] *= full[d + 1]
        else:
            out.append(full[d + 1])
    return tuple(out)


def _flat_conv(node: Node, merges: list[bool]) -> Node:
    """A pointwise convolution on joined spatial dimensions."""
    dims = sum(not m for m in merges[1:])
    keep = tuple(
        kv
        for kv in node.attributes
        if kv[0] not in ("strides", "pads", "dilations", "kernel_shape")
    )
    extra = (
        ("dilations", (1,) * dims),
        ("kernel_shape", (1,) * dims),
        ("pads", (0,) * (2 * dims)),
        ("strides", (1,) * dims),
    )
    return Node(node.op, node.inputs, node.outputs, (*keep, *extra), node.name, node.opset)


def _group(graph: Graph, cluster: list[Node]) -> Group:
    merges = _merges(graph, cluster)
    tensors: dict[str, Tensor] = {}
    sources: dict[Tensor, str] = {}
    constants: dict[str, NDArray[Any]] = dict(graph.constants)
    produced = {o for n in cluster for o in n.outputs}
    seed = cluster[0]
    for n in cluster:
        for i in n.inputs:
            if not i or i in tensors or i in produced:
                continue
            info = graph.values[i]
            const = i in graph.constants
            is_weight = n is seed and seed.op == "Conv" and i in seed.inputs[1:]
            shape = info.shape if is_weight else _merged(info.shape, merges)
            if is_weight and any(merges) and len(info.shape) > 1:
                shape = (*info.shape[:2], *(1 for m in merges[1:] if not m))
            name = f"{'w' if const else 'x'}{len(tensors)}"
            tensors[i] = te.placeholder(shape, info.dtype, name=name, const=const)
            sources[tensors[i]] = i
            if const:
                constants[i] = np.asarray(graph.constants[i]).reshape(shape)
    counts: Counter[str] = Counter()
    last: Compute | None = None
    for n in cluster:
        counts[n.op] += 1
        name = f"{n.op.lower()}{counts[n.op] if counts[n.op] > 1 else ''}"
        node = _flat_conv(n, merges) if n.op == "Conv" and any(merges) else n
        last = lower_node(node, tensors, constants, name)
        tensors[n.outputs[0]] = last
    assert last is not None
    workload = Workload.of(last, _title(graph, cluster))
    inputs = tuple(sources[p] for p in workload.inputs)
    return Group(workload, inputs, cluster[-1].outputs[0], tuple(cluster))


def _title(graph: Graph, cluster: list[Node]) -> str:
    """A readable name such as ``conv[1x16x24x96,16x1x3x3,s2x1,g16]+relu``."""
    seed = cluster[0]
    operands = seed.inputs[:4:3] if seed.op.startswith("QLinear") else seed.inputs[:2]
    shapes = [graph.values[i].shape for i in operands if i and graph.values[i].shape]
    if _kind(seed) != "anchor":
        shapes = shapes[:1]
    parts = ["x".join(map(str, s)) for s in shapes]
    if any(s != 1 for s in seed.attribute("strides", (1,))):
        parts.append("s" + "x".join(map(str, seed.attribute("strides"))))
    if seed.attribute("group", 1) != 1:
        parts.append(f"g{seed.attribute('group')}")
    rest = "".join(f"+{n.op.lower()}" for n in cluster[1:])
    return f"{seed.op.lower()}[{','.join(parts)}]{rest}"

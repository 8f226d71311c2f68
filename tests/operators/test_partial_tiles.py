"""Tiles that do not divide their extents, at as many levels at once as a sketch has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from tests.operators.agreement import arrays_of, problem

from tilewright.codegen.build import build
from tilewright.codegen.target import Target
from tilewright.measure.tolerance import tolerance
from tilewright.schedule.space import Rows, Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.te import Compute, Placeholder


def p(*shape: int, name: str = "x", const: bool = False) -> Placeholder:
    return te.placeholder(shape, name=name, const=const)


@dataclass(frozen=True)
class Case:
    """A workload, the rule whose sketches are looked at, and the extents behind the knobs.

    `levels` is how many levels of tiles some candidate must leave a remainder at.
    """

    make: Callable[[], Compute]
    rule: str
    extents: Mapping[str, int]
    levels: int


def product(m: int, n: int, k: int, levels: int) -> Case:
    return Case(
        lambda: ops.matmul(p(m, k, name="a"), p(k, n, name="b", const=True)), "tile", {"i": m, "j": n, "k": k}, levels
    )  # fmt: skip


def window(oc: int, oh: int, ow: int, ic: int, levels: int) -> Case:
    def make() -> Compute:
        return ops.conv2d(p(1, ic, oh, ow), p(oc, ic, 3, 3, name="w", const=True), padding=1)

    return Case(make, "tile", {"oc": oc, "oh": oh, "ow": ow, "ic": ic}, levels)


def columns(k: int, n: int, levels: int) -> Case:
    return Case(lambda: ops.reduce(p(k, n), "sum", [0]), "stream", {"i1": n, "r0": k}, levels)


CASES = {
    "rows of a product": product(13, 32, 16, 2),
    "columns of a product": product(8, 83, 16, 2),
    "depth of a product": product(8, 32, 19, 1),
    "all of a product": product(13, 83, 19, 5),
    "more of a product": product(29, 101, 31, 5),
    "less than a vector": product(13, 7, 11, 3),
    "channels of a window": window(23, 8, 8, 4, 2),
    "rows of a window": window(8, 13, 8, 4, 2),
    "columns of a window": window(8, 8, 19, 4, 2),
    "all of a window": window(23, 13, 19, 11, 6),
    "length of columns": columns(37, 64, 1),
    "width of columns": columns(16, 167, 2),
    "all of columns": columns(37, 167, 3),
    "a vector by a matrix": Case(
        lambda: ops.matmul(p(1, 37), p(37, 167, name="b")), "stream", {"j": 167, "k": 37}, 3
    ),
    "sums of rows": Case(lambda: ops.reduce(p(11, 83), "sum", [1], name="y"), "rows", {"y": 83}, 1),
    "softmax": Case(
        lambda: ops.softmax(p(5, 83), name="y"), "rows", {"y": 83, "y.max": 83, "y.exp": 83, "y.sum": 83}, 4
    ),
    "norm": Case(
        lambda: ops.layer_norm(p(5, 83), p(83, name="g"), p(83, name="b"), name="y"), "rows",
        {"y": 83, "y.mean.sum": 83, "y.var.sum": 83}, 3,
    ),
    "elementwise": Case(
        lambda: ops.elementwise("y", lambda a, b: a * b, p(7, 83), p(83, name="b")), "elementwise", {"y": 83}, 1
    ),
    "transposed": Case(
        lambda: ops.transpose(p(37, 83), [1, 0], name="y"), "elementwise", {"y.v": 37, "y.t": 83}, 2
    ),
}  # fmt: skip


def partial_levels(knobs: Mapping[str, int], extents: Mapping[str, int]) -> int:
    """At how many levels tiles leave a remainder."""
    count = 0
    for name, size in knobs.items():
        axis, _, level = name.rpartition(".")
        n = extents.get(name, extents.get(axis, 0))
        if level == "c":
            n = -(-n // knobs[f"{axis}.r"])
        count += n % size != 0
    return count


def raggedest(space: Space, case: Case) -> list[tuple[int, Rows]]:
    """Of each sketch of the rule, the candidate with the most remainders, and how many those are."""
    best: dict[int, tuple[int, Rows]] = {}
    for row in space.sample_rows(1000, np.random.default_rng(0)):
        n = int(row[0])
        if space.sketches[n].name.split("[")[0] == case.rule:
            levels = partial_levels(space.knobs(row), case.extents)
            if n not in best or levels > best[n][0]:
                best[n] = (levels, row)
    return list(best.values())


def check(name: str, n_sketches: int) -> None:
    case = CASES[name]
    workload = Workload.of(case.make(), name)
    arrays = arrays_of(workload, np.random.default_rng(1))
    expected = evaluate(workload, arrays, precision="double")
    target = Target.host(2)
    space = Space(Task(workload, target))
    found = sorted(raggedest(space, case), key=lambda f: -f[0])
    assert found and found[0][0] >= case.levels
    for _, row in found[:n_sketches]:
        kernel = build(workload, space.trace(row), target)
        wrong = problem(kernel, arrays, expected, tolerance(workload))
        assert wrong is None, f"{space.row_ids(row)[0]}: {wrong}"


@pytest.mark.parametrize("name", CASES)
def test_tiles_with_remainders_at_every_level_compute_the_workload(name: str) -> None:
    check(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tiles_with_remainders_of_every_sketch_compute_the_workload(name: str) -> None:
    check(name, 1000)

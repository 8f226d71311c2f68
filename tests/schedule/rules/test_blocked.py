"""Blocks of the reduction: registers sum one block, memory adds up the blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.schedule.program import LoopKind, Role, Scope
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.te import Compute, Placeholder

TARGET = Target.host(2)


def p(*shape: int, name: str = "x", const: bool = False, dtype: str = "float32") -> Placeholder:
    return te.placeholder(shape, dtype, name=name, const=const)


def relu(x: Compute) -> Compute:
    return ops.elementwise("relu", lambda v: te.maximum(v, 0.0), x)


WORKLOADS: dict[str, Callable[[], Compute]] = {
    "matmul": lambda: ops.matmul(p(13, 301), p(301, 70, name="b")),
    "matmul in double precision": lambda: ops.matmul(
        p(9, 260, dtype="float64"), p(260, 33, name="b", dtype="float64")
    ),
    "constant operand and epilogue": lambda: relu(
        ops.matmul(p(7, 517), p(517, 41, name="w", const=True))
    ),
    "products of a batch": lambda: ops.matmul(p(2, 5, 256), p(2, 256, 37, name="b")),
    "convolution of points": lambda: ops.conv(
        p(1, 259, 3, 37), p(6, 259, 1, 1, name="w", const=True), stride=(1, 1), padding=[(0, 0)] * 2
    ),
    "convolution with padding": lambda: ops.conv(
        p(1, 257, 4, 21), p(3, 257, 3, 3, name="w", const=True), stride=(1, 1), padding=[(1, 1)] * 2
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_blocked_reductions_compute_the_workload(name: str) -> None:
    check_candidates(Workload.of(WORKLOADS[name]()), "blocked", TARGET, most=12)


def test_registers_sum_a_block_and_memory_adds_up_the_blocks() -> None:
    space = Space(Task(Workload.of(ops.matmul(p(32, 512), p(512, 64, name="b"))), TARGET))
    sketch = next(s for s in space.sketches if s.name.startswith("blocked[") and "=True]" in s.name)
    path, _ = sketch.program.path("C")
    blocks = next(
        k for k, f in enumerate(path) if f.var.name.endswith(".0") and f.kind is LoopKind.SERIAL
    )
    assert path[0].kind is LoopKind.PARALLEL and blocks == 1
    assert sketch.program.buffer("C.rf").scope is Scope.REGISTER
    packed = next(b for b in sketch.program.buffers if b.name.endswith(".pack"))
    assert packed.role is Role.TEMP
    copying, _ = sketch.program.path(packed.name)
    assert copying[:2] == path[:2]  # panels are made inside the block that reads them


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (lambda: ops.matmul(p(32, 64), p(64, 32, name="b")), "the reduction of C is short"),
        (lambda: ops.reduce(p(32, 4096), "sum", [1]), "no axis of Y lies beside itself in memory"),
    ],
)
def test_what_has_no_blocks_is_refused(compute: Callable[[], Compute], reason: str) -> None:
    space = Space(Task(Workload.of(compute()), TARGET))
    assert reason in space.refused["blocked"]

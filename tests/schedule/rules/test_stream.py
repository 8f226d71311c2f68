"""Reductions that stream: the reduction outside, results in the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.schedule.program import LoopKind
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.te import Compute, Placeholder

TARGET = Target.host(2)


def p(*shape: int, name: str = "x", const: bool = False) -> Placeholder:
    return te.placeholder(shape, name=name, const=const)


def relu(x: Compute) -> Compute:
    return ops.elementwise("relu", lambda v: te.maximum(v, 0.0), x)


WORKLOADS: dict[str, Callable[[], Compute]] = {
    "sum of columns": lambda: ops.reduce(p(70, 101), "sum", [0]),
    "maximum of columns": lambda: ops.reduce(p(33, 64), "max", [0], keepdims=False),
    "mean of columns": lambda: ops.mean(p(40, 37), [0]),
    "columns of a stack": lambda: ops.reduce(p(3, 19, 50), "sum", [1]),
    "vector times matrix": lambda: ops.matmul(p(1, 70), p(70, 45, name="b")),
    "three rows times matrix": lambda: relu(ops.matmul(p(3, 41), p(41, 67, name="w", const=True))),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_streamed_reductions_compute_the_workload(name: str) -> None:
    check_candidates(Workload.of(WORKLOADS[name]()), "stream", TARGET, least=6, most=12)


def test_the_reduction_runs_outside_of_the_results() -> None:
    space = Space(Task(Workload.of(ops.reduce(p(64, 128), "sum", [0])), TARGET))
    sketch = next(s for s in space.sketches if s.name == "stream")
    path, _ = sketch.program.path("Y")
    kinds = [f.kind for f in path]
    assert kinds[0] is LoopKind.PARALLEL and kinds[-2:] == [LoopKind.UNROLLED, LoopKind.VECTORIZED]
    assert path[1].var.name.startswith("r0")


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (lambda: ops.matmul(p(32, 32), p(32, 32, name="b")), "uses its operands 32 times"),
        (lambda: ops.reduce(p(32, 32), "sum", [1]), "no axis of Y is contiguous"),
        (lambda: ops.matmul(p(1, 4), p(4, 64, name="b")), "tiles are better"),
    ],
)
def test_what_does_not_stream_is_refused(compute: Callable[[], Compute], reason: str) -> None:
    space = Space(Task(Workload.of(compute()), TARGET))
    assert reason in space.refused["stream"]


def test_an_operand_that_the_second_cache_does_not_hold_may_be_fetched_ahead() -> None:
    small = replace(TARGET, l2_bytes=8 << 10)
    workload = Workload.of(ops.matmul(p(1, 70), p(70, 45, name="b")))
    space = check_candidates(workload, "stream", small, least=6, most=16)
    (sketch,) = (s for s in space.sketches if s.name.startswith("stream"))
    ahead = next(c for c in sketch.columns if c.knob.name.endswith(".ahead"))
    assert ahead.values == (0, 4, 8, 16)
    assert "prefetch(b[" in str(sketch.program) and "prefetch(x[" not in str(sketch.program)
    drafted = [t.to_json() for _, t in sketch.best_drafts(3, 1500)]
    without = [[step for step in t if step[0] != "prefetch"] for t in drafted]
    assert len({str(t) for t in without}) == 3  # drafts differ in what their predictions depend on


def test_an_operand_in_the_cache_is_not_fetched_ahead() -> None:
    space = Space(Task(Workload.of(ops.matmul(p(1, 70), p(70, 45, name="b"))), TARGET))
    assert "prefetch" not in str(next(s for s in space.sketches if s.name == "stream").program)

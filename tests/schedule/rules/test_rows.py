"""Rows: softmax and norms, in loops or in registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.schedule.program import Scope
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.te import Compute, Placeholder


def p(*shape: int, name: str = "x") -> Placeholder:
    return te.placeholder(shape, name=name)


SHORT: dict[str, Callable[[], Compute]] = {
    "softmax of whole vectors": lambda: ops.softmax(p(6, 7, 64)),
    "softmax of an odd length": lambda: ops.softmax(p(13, 37)),
    "softmax of single elements": lambda: ops.softmax(p(5, 1)),
    "log-softmax": lambda: ops.log_softmax(p(9, 50)),
    "layer norm": lambda: ops.layer_norm(p(11, 96), None, None),
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("row", ["loops", "registers"])
def test_short_rows_run_in_loops_and_in_registers(name: str, row: str) -> None:
    check_candidates(Workload.of(SHORT[name]()), f"rows[row={row}", Target.host(2), least=1)


def test_rows_in_registers_leave_no_stage_in_memory() -> None:
    space = Space(Task(Workload.of(ops.softmax(p(8, 64))), Target.host(1)))
    sketch = next(s for s in space.sketches if s.name == "rows[row=registers]")
    stages = [b for b in sketch.program.buffers if b.role.value == "temp"]
    assert stages and all(b.scope is Scope.REGISTER for b in stages)


def test_long_rows_have_no_candidate_in_registers() -> None:
    space = Space(Task(Workload.of(ops.softmax(p(8, 4096))), Target.host(1)))
    assert [s.name for s in space.sketches if s.name.startswith("rows")] == ["rows"]


def test_rows_refuse_to_repeat_what_they_share() -> None:
    x, w = p(8, 64), p(64, 64, name="w")
    product = ops.matmul(x, w, name="c")
    rolled = te.compute((8, 64), lambda i, j: product[i, 63 - j] + product[7 - i, j], name="y")
    space = Space(Task(Workload.of(rolled), Target.host(1)))
    assert "which would be repeated" in space.refused["rows"]

"""First programs: what is computed at each call, and what once, at load time."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen import harness

from tilewright.codegen.build import build, build_default
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.program import Role
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate

HOST = Target.host(1)


def corrected(const: bool = True) -> Workload:
    """A product of bytes from which a multiple of the sums of the weights is taken."""
    x = te.placeholder((1, 24), "uint8", name="X")
    w = te.placeholder((24, 40), "int8", name="W", const=const)
    sums = ops.reduce(w, "sum", [0], name="S", accumulate="int32")
    total = ops.matmul(x, w, name="T", accumulate="int32")
    return Workload.of(te.compute((1, 40), lambda i, j: total[i, j] - sums[0, j] * 3, name="Y"))


def test_what_depends_on_constants_alone_is_computed_at_load_time() -> None:
    roles = {b.name: b.role for b in lower(corrected()).buffers}
    assert (roles["S"], roles["T"], roles["Y"]) == (Role.PACKED, Role.TEMP, Role.OUTPUT)
    assert {b.role for b in lower(corrected(False)).buffers} == {Role.INPUT, Role.TEMP, Role.OUTPUT}
    kernel = build_default(corrected(), HOST)
    assert [b.name for b in kernel.packed] == ["S"]


def test_the_anchor_is_not_what_is_computed_at_load_time() -> None:
    anchor = corrected().anchor
    assert anchor is not None and anchor.name == "T"  # of one row: just as much work as S


def test_an_epilogue_reads_what_was_computed_at_load_time_although_its_nest_comes_later() -> None:
    s = Schedule(corrected())
    s.split("j", [8])
    s.reorder("i", "j.0", "k", "j.1")
    s.reverse_compute_at("Y", "j.0")
    data = make_inputs(s.workload)
    found = harness.run(build(s.workload, s.trace, HOST), data)[0]
    np.testing.assert_array_equal(found, evaluate(s.workload, data)[0])


def test_every_sketch_leaves_it_at_load_time() -> None:
    space = Space(Task(corrected(), HOST))
    for sketch in space.sketches:
        roles = {b.name: b.role for b in sketch.program.buffers}
        assert roles["S"] is Role.PACKED, sketch.name


@pytest.mark.parametrize(
    ("steps", "packed"),
    [
        ('s.rfactor("S", "r0")', ["S", "S.rf"]),
        ('s.reverse_compute_at("Y", "i"); s.cache_read("Y", "S")', ["S", "S.local"]),
        ('s.cache_write("S")', ["S", "S.local"]),
    ],
)
def test_what_is_made_of_it_is_made_at_load_time_and_after_it(
    steps: str, packed: list[str]
) -> None:
    s = Schedule(corrected())
    exec(steps, {"s": s})
    assert [b.name for b in s.program.buffers if b.role is Role.PACKED] == packed
    data = make_inputs(s.workload)
    expected = evaluate(s.workload, data)[0]
    np.testing.assert_array_equal(interpret(s.program, data)[0], expected)
    np.testing.assert_array_equal(harness.run(build(s.workload, s.trace, HOST), data)[0], expected)

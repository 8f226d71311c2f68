"""Where buffers live: strides, workspace, a thread's own part, registers."""

from __future__ import annotations

import pytest
from tests.codegen import harness
from tests.schedule import workloads

from tilewright.codegen.build import build_program
from tilewright.codegen.layout import SLACK, lay_out
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.lower import lower
from tilewright.schedule.nests import set_buffer
from tilewright.schedule.program import Buffer, Role
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.dtype import DType
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Knob


def test_parameters_are_row_major_and_need_no_workspace() -> None:
    layout = lay_out(lower(workloads.matmul(epilogue=False)), 256)
    place = layout.places["C"]
    assert (place.shape, place.strides, place.size) == ((7, 11), (11, 1), 77)
    assert not place.padded and not place.per_thread
    assert layout.total(8) == 0


def test_temporaries_lie_apart_in_whole_lines_with_slack() -> None:
    layout = lay_out(lower(workloads.softmax()), 256)
    spans = []
    for name in ("M", "E", "S"):
        place = layout.places[name]
        assert place.offset % 64 == 0 and place.padded
        spans.append((place.offset, place.offset + place.size * 4 + SLACK))
    spans.sort()
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))
    assert spans[-1][1] <= layout.total(1) == layout.shared_bytes


def test_a_temporary_inside_a_parallel_loop_is_one_a_thread() -> None:
    s = Schedule(workloads.matmul())
    s.reverse_compute_at("D", "i")
    assert not lay_out(s.program, 256).places["C"].per_thread
    s.parallel("i")
    layout = lay_out(s.program, 256)
    assert layout.places["C"].per_thread
    assert layout.thread_bytes == 4096
    assert layout.total(3) == layout.shared_bytes + 3 * 4096


def test_rows_in_registers_are_padded_to_whole_vectors() -> None:
    s = Schedule(workloads.matmul())
    s.reverse_compute_at("D", "i")
    s.set_scope("C", "register")
    layout = lay_out(s.program, 256)
    assert layout.places["C"].strides == (16, 1) and layout.places["C"].size == 16
    assert layout.total(1) == 0


def test_aligned_strides_have_the_remainder_that_was_asked_for() -> None:
    x = te.placeholder((3, 4, 5), name="x")
    t = te.compute((3, 4, 5), lambda i, j, k: te.exp(x[i, j, k]), name="t")
    y = te.compute((3, 4, 5), lambda i, j, k: t[i, j, k] + 1.0, name="y")
    s = Schedule(Workload.of(y))
    s.storage_align("t", 0, 32, 8)
    s.storage_align("t", 1, 16, 0)
    place = lay_out(s.program, 256).places["t"]
    assert place.strides == (72, 16, 1) and place.size == 216 and not place.dense


def test_a_packed_buffer_is_as_large_as_its_aligned_rows() -> None:
    workload = workloads.matmul(const=True, epilogue=False)
    s = Schedule(workload)
    s.cache_read("C", "B", [(1, 4)])
    s.storage_align("B.pack", 0, 64, 32)
    s.storage_align("B.pack", 1, 16, 0)
    kernel, _ = build_program(s.program, Target.host(1))
    assert [p.n_bytes for p in kernel.packed] == [3 * 96 * 4]
    data = make_inputs(workload)
    (found,), (expected,) = harness.run(kernel, data), evaluate(workload, data)
    assert compare(found, expected, tolerance(workload)) is None


def test_a_buffer_of_several_nests_cannot_stay_in_registers() -> None:
    s = Schedule(workloads.matmul())
    s.set_scope("C", "register")
    with pytest.raises(BuildError) as error:
        lay_out(s.program, 256)
    assert str(error.value) == (
        "buffer C: several nests use it, so it cannot stay in registers; "
        "move them into one loop, or leave it in memory"
    )


def test_scalars_have_one_element() -> None:
    y = ops.elementwise("y", te.exp, ops.elementwise("t", te.exp, te.placeholder((), name="x")))
    layout = lay_out(lower(Workload.of(y)), 256)
    assert layout.places["t"].size == 1 and layout.places["t"].strides == ()
    assert layout.shared_bytes >= 4 + SLACK


def test_a_size_that_is_no_number_is_refused() -> None:
    program = set_buffer(
        lower(workloads.transpose()), Buffer("T", (Knob("t"),), DType.FLOAT32, Role.TEMP)
    )
    with pytest.raises(BuildError) as error:
        lay_out(program, 256)
    assert str(error.value) == "buffer T: the size t is not a number; choose all knobs first"

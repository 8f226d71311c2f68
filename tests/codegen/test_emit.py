"""The text of modules: entries, parallel regions, packing, what is refused."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest
from tests.schedule import workloads
from tests.schedule.random_steps import WORKLOADS

from tilewright.codegen.emit import emit_module, explicit
from tilewright.errors import BuildError
from tilewright.schedule.lower import lower
from tilewright.schedule.nests import set_buffer
from tilewright.schedule.program import Buffer, For, LoopKind, Role
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Knob, Var


def functions(s: Schedule, n_threads: int = 1) -> list[str]:
    text = emit_module(s.program, 256, n_threads).module.text()
    return re.findall(r"^define .*@([\w.]+)\(", text, re.MULTILINE)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_naive_programs_give_valid_modules(name: str, bits: int) -> None:
    module = llvm.parse_assembly(emit_module(lower(WORKLOADS[name]), bits, 2).module.text())
    module.verify()


def test_the_text_is_the_same_every_time() -> None:
    texts = {emit_module(lower(workloads.conv()), 512, 2).module.text() for _ in range(3)}
    assert len(texts) == 1


def test_parameters_come_in_calling_order() -> None:
    emitted = emit_module(lower(workloads.matmul(const=True)), 256, 1)
    assert [(p.name, p.shape, p.role, p.n_bytes) for p in emitted.params] == [
        ("A", (7, 5), Role.INPUT, 140), ("B", (5, 11), Role.CONST, 220), ("D", (7, 11), Role.OUTPUT, 308)
    ]  # fmt: skip
    assert emitted.packed == ()
    assert emitted.workspace_bytes >= 308


def test_each_nest_is_a_function() -> None:
    assert functions(Schedule(workloads.matmul())) == ["nest1", "nest2", "tw_kernel"]


def test_a_parallel_nest_is_shared_only_among_several_threads() -> None:
    s = Schedule(workloads.transpose())
    s.parallel("i")
    assert functions(s) == ["nest1", "tw_kernel"]
    assert functions(s, 3) == ["nest1", "nest1.share", "tw_kernel"]
    one = Schedule(workloads.transpose(9, 1))
    one.parallel("i")
    assert functions(one, 3) == ["nest1", "tw_kernel"]


def test_packing_has_an_entry_of_its_own() -> None:
    s = Schedule(workloads.matmul(const=True, epilogue=False))
    s.cache_read("C", "B", pack=[(1, 4)])
    assert functions(s)[-1] == "tw_kernel" and "tw_prepack" in functions(s)
    assert [p.name for p in emit_module(s.program, 256, 1).packed] == ["B.pack"]


def test_reductions_get_their_initial_values_explicitly() -> None:
    program = explicit(lower(workloads.matmul(epilogue=False)))
    assert list(program.blocks()) == ["C.init", "C"]
    assert program.blocks()["C"].init is None
    assert explicit(program) == program


def test_a_reduction_over_nothing_is_a_plain_store() -> None:
    s = Schedule(workloads.matmul(4, 4, 1, epilogue=False))
    inner = s.program.path("C")[1]
    loops = s.program.path("C")[0]
    body = (For(loops[0].var, loops[0].extent, (For(loops[1].var, loops[1].extent, (inner,)),)),)
    store = explicit(s.program.with_body(body)).blocks()["C"]
    assert store.reduce is None and store.init is None


def test_register_buffers_are_stack_slots_that_the_optimiser_removes() -> None:
    s = Schedule(workloads.matmul(4, 4, 4, epilogue=False))
    s.cache_write("C")
    s.reverse_compute_at("C.out", "i")
    s.set_scope("C.local", "register")
    emitted = emit_module(s.program, 128, 1)
    assert "alloca [4 x float], align 64" in emitted.module.text()
    assert emitted.workspace_bytes == 0


def test_open_knobs_are_refused() -> None:
    program = lower(workloads.transpose())
    sized = set_buffer(program, Buffer("T", (Knob("t"),), DType.FLOAT32, Role.TEMP))
    with pytest.raises(BuildError) as error:
        emit_module(sized, 256, 1)
    assert str(error.value) == "emit: buffer T still depends on knobs; choose a row first"
    for kind, message in [
        (LoopKind.SERIAL, "loop o: no bound is known for its extent t"),
        (LoopKind.PARALLEL, "parallel loop o: its extent t is not a number"),
    ]:
        looped = program.with_body((For(Var("o"), Knob("t"), program.body, kind),))
        with pytest.raises(BuildError) as error:
            emit_module(looped, 256, 1)
        assert str(error.value) == message

"""LLVM text to objects: times, refusals, other architectures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.schedule import workloads

from tilewright.codegen.compile import BuildTimes, assembly, compile_text
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.schedule.lower import lower
from tilewright.schedule.schedule import Schedule

HOST = Target.host(1)
TEXT = emit_module(lower(workloads.matmul()), HOST.vector_bits, 1).module.text()

OTHERS = {
    "haswell": (replace(HOST, triple="x86_64-unknown-linux-gnu", cpu="haswell", features="", vector_bits=256), 62, "vfmadd"),
    "skylake": (replace(HOST, triple="x86_64-unknown-linux-gnu", cpu="skylake-avx512", features="", vector_bits=512), 62, "zmm"),
    "neoverse": (replace(HOST, triple="aarch64-unknown-linux-gnu", cpu="neoverse-n1", features="", vector_bits=128), 183, "fmla"),
}  # fmt: skip


def test_an_object_and_the_time_of_each_stage_come_back() -> None:
    code, stages = compile_text(TEXT, HOST)
    assert code[:4] == b"\x7fELF" and b"tw_kernel" in code
    times = BuildTimes(0.5, *stages)
    assert min(stages) >= 0.0 and times.total_s == 0.5 + sum(stages)


def test_the_same_text_gives_the_same_object() -> None:
    assert compile_text(TEXT, HOST)[0] == compile_text(TEXT, HOST)[0]


@pytest.mark.parametrize("name", OTHERS)
def test_objects_are_made_for_other_machines(name: str) -> None:
    target, machine, instruction = OTHERS[name]
    s = Schedule(workloads.matmul(8, 64, 16, epilogue=False))
    s.reorder("k", "j")
    s.vectorize("j")
    text = emit_module(s.program, target.vector_bits, 1).module.text()
    code, _ = compile_text(text, target)
    assert int.from_bytes(code[18:20], "little") == machine  # e_machine
    assert instruction in assembly(text, target)


def test_the_optimised_module_can_be_read_too() -> None:
    assert "define" in assembly(TEXT, HOST, optimised_ir=True)


@pytest.mark.parametrize(
    "text",
    ["define void @f( {", "define i32 @f() {\n  ret float 0.0\n}"],
)  # fmt: skip
def test_text_that_llvm_refuses_is_a_build_error(text: str) -> None:
    with pytest.raises(BuildError, match=r"compile: LLVM refuses the module: "):
        compile_text(text, HOST)


COPIES = """
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, <8 x i1>, <8 x float>)
define void @tw_kernel(ptr noalias %x, ptr noalias %y, ptr noalias %m) {
  store <4 x i64> splat (i64 -1), ptr %m, align 8
  %rest = getelementptr i8, ptr %m, i64 32
  store <4 x i64> splat (i64 -1), ptr %rest, align 8
  %places = load <8 x i64>, ptr %m, align 8
  %all = icmp slt <8 x i64> %places, zeroinitializer
  %first = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %x, <8 x i1> %all, <8 x float> zeroinitializer)
  store <8 x float> %first, ptr %y, align 4
  %seven = insertelement <8 x i64> %places, i64 0, i64 7
  %some = icmp slt <8 x i64> %seven, zeroinitializer
  %from = getelementptr i8, ptr %x, i64 64
  %to = getelementptr i8, ptr %y, i64 64
  %second = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %from, <8 x i1> %some, <8 x float> zeroinitializer)
  store <8 x float> %second, ptr %to, align 4
  ret void
}
"""


def test_copies_by_masks_that_codegen_finds_constant_compile() -> None:
    code, _ = compile_text(COPIES, OTHERS["haswell"][0])  # LLVM 22 aborted in one of its passes
    assert b"tw_kernel" in code

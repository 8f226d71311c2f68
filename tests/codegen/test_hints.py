"""Stores past the caches, as instructions."""

from __future__ import annotations

import llvmlite.binding as llvm

from tilewright.codegen.compile import assembly
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import Workload, ops, te

FEATURES = frozenset(["+sse2", "+avx512f"])


def text(features: frozenset[str], bits: int = 512) -> str:
    x = te.placeholder((8, 64), name="x")
    s = Schedule(Workload.of(ops.elementwise("y", lambda v: v * 2.0, x)))
    s.vectorize("i1")
    s.pragma("y", "nontemporal")
    return emit_module(s.program, bits, 1, features).module.text()


def test_whole_vectors_are_stored_past_the_caches_and_fenced() -> None:
    module = text(FEATURES)
    assert module.count("!nontemporal !0") == 4 and module.endswith("!0 = !{i32 1}")
    assert module.count("call void @llvm.x86.sse.sfence()") == 1
    llvm.parse_assembly(module).verify()


def test_processors_without_that_fence_get_none() -> None:
    module = text(frozenset(["+neon"]), 128)
    assert "!nontemporal" in module and "sfence" not in module


def test_the_instructions_are_there() -> None:
    host = Target.host(1)
    if "+avx512f" not in host.features.split(","):
        target, bits, wanted = host, host.vector_bits, "movnt"
    else:
        target, bits, wanted = host, 512, "vmovntps"
    found = assembly(text(frozenset(target.features.split(",")), bits), target)
    assert wanted in found and "sfence" in found

"""Targets that tests compile for, and what their assembly must not do."""

from __future__ import annotations

import struct
from dataclasses import replace

from tilewright.codegen.build import build_program
from tilewright.codegen.compile import assembly
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.schedule.program import Program

__all__ = ["CROSS", "HOST", "foreign_symbols", "text_of"]

HOST = Target.host(1)
_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_AVX2 = "+avx,+avx2,+fma,+f16c"
_AVX512 = f"{_AVX2},+avx512f,+avx512bw,+avx512dq,+avx512vl"


def _target(triple: str, cpu: str, features: str, bits: int, registers: int) -> Target:
    return replace(
        HOST, triple=triple, cpu=cpu, features=features, vector_bits=bits, n_registers=registers
    )


CROSS = {
    "sse": _target(_X86, "x86-64", "", 128, 16),
    "avx2": _target(_X86, "haswell", _AVX2, 256, 16),
    "avx2 with vnni": _target(_X86, "alderlake", f"{_AVX2},+avxvnni", 256, 16),
    "avx512": _target(_X86, "skylake-avx512", _AVX512, 512, 32),
    "avx512 with vnni": _target(_X86, "cascadelake", f"{_AVX512},+avx512vnni", 512, 32),
    "avx512 with bf16": _target(_X86, "cooperlake", f"{_AVX512},+avx512vnni,+avx512bf16", 512, 32),
    "neon": _target(_ARM, "cortex-a72", "+neon", 128, 32),
    "neon with dotprod": _target(_ARM, "neoverse-n1", "+neon,+dotprod", 128, 32),
    "neon with i8mm": _target(_ARM, "neoverse-v1", "+neon,+dotprod,+i8mm,+bf16", 128, 32),
}


def text_of(program: Program, target: Target) -> str:
    """The assembly of a program."""
    features = frozenset(target.features.split(","))
    emitted = emit_module(program, target.vector_bits, target.n_threads, features)
    return assembly(emitted.module.text(), target)


def foreign_symbols(program: Program, target: Target) -> set[str]:
    """What the object code leaves to the linker: libm's functions, a compiler's run-time library's."""
    code = build_program(program, target)[0].code
    assert code[:4] == b"\x7fELF" and code[4] == 2
    table, size, count = *struct.unpack_from("<Q", code, 40), *struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + n * size) for n in range(count)]
    names: set[str] = set()
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind != 2:  # the symbol table
            continue
        text = sections[link][4]
        for at in range(start, start + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
            if section == 0 and name:  # undefined
                end = code.index(b"\0", text + name)
                names.add(code[text + name : end].decode())
    return names

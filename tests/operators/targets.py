"""This machine, and this machine with narrower vectors."""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.target import Target

__all__ = ["TARGETS"]

HOST = Target.host(1)


def _narrower(cpu: str, bits: int, without: tuple[str, ...]) -> Target:
    kept = [f for f in HOST.features.split(",") if not f[1:].startswith(without)]
    return replace(HOST, cpu=cpu, features=",".join(kept), vector_bits=bits, n_registers=16)


TARGETS = [HOST, HOST.with_threads(2)]
if "+avx2" in HOST.features:
    TARGETS.append(_narrower("haswell", 256, ("avx512", "avxvnni", "amx")).with_threads(2))
if "+sse4.2" in HOST.features:
    wide = ("avx", "amx", "fma", "f16c", "vaes", "vpclmul", "xop", "gfni")
    TARGETS.append(_narrower("nehalem", 128, wide))

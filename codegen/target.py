"""The hardware that code is made for."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.errors import BuildError

__all__ = ["Target"]

_KEPT = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni",
         "avx512bf16", "avxvnni", "amx-tile", "neon", "dotprod", "i8mm", "bf16")  # fmt: skip

# A feature, the first processor that had it, and all that have it by now: what a wrong name is told by.
_NEWER = (
    ("amx-fp16", "graniterapids", ("graniterapids", "graniterapids-d", "diamondrapids")),
    ("amx-tile", "sapphirerapids", ("sapphirerapids", "emeraldrapids")),
)
# With two units for multiply-adds of 512 bits; others with AVX-512 have one, or two of half the width.
_TWO_WIDE_UNITS = ("skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids",
                   "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids", "znver5")  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A CPU, as far as code generation and cost models need to know it.

    Attributes
    ----------
    triple, cpu, features : str
        As LLVM names them.
    n_threads : int
        Threads that kernels may use.
    vector_bits, n_registers : int
        Width and number of vector registers.
    l1_bytes, l2_bytes, l3_bytes : int
        Data caches of one core (the last one is shared).
    peak_gflops : float
        float32 multiply-adds of one core, in 1e9 operations a second; an estimate.
    bandwidth_gbs : float
        Memory bandwidth of one core in 1e9 bytes a second; an estimate.
    fma_units : int
        Vectors of that width that a core can multiply and add at once.
    """

    triple: str
    cpu: str
    features: str
    n_threads: int
    vector_bits: int
    n_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    peak_gflops: float
    bandwidth_gbs: float
    fma_units: int = 1

    @classmethod
    def host(cls, n_threads: int | None = None) -> Target:
        """This machine; all cores that the process may use, unless told otherwise."""
        found = _host()
        return found if n_threads is None else found.with_threads(n_threads)

    def with_threads(self, n_threads: int) -> Target:
        """The same hardware, using another number of threads."""
        if n_threads < 1:
            raise BuildError(f"with_threads({n_threads}): needs 1 or more")
        return replace(self, n_threads=n_threads)

    @property
    def fingerprint(self) -> str:
        """Short text that is the same for machines whose records can be exchanged."""
        named = [f for f in _KEPT if f"+{f}" in self.features.split(",")]
        digest = hashlib.sha256(",".join(named).encode()).hexdigest()[:6]
        arch = self.triple.split("-")[0]
        return f"{arch}-{self.cpu}-v{self.vector_bits}-{digest}-t{self.n_threads}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Target:
        """Read what `to_json` wrote."""
        try:
            return cls(**data)
        except TypeError as error:
            raise BuildError(
                f"Target.from_json: {error}; is the file from another version?"
            ) from None


@functools.cache
def _host() -> Target:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    triple = llvm.get_process_triple()
    features = llvm.get_host_cpu_features()
    arch = triple.split("-")[0]
    if arch == "aarch64":  # LLVM does not name all that Linux does
        features = {**features, **_arm_features(_cpuinfo())}
    flags = ",".join(sorted(f"+{name}" for name, on in features.items() if on))
    if arch in ("x86_64", "amd64", "i686"):
        wide = features.get("avx512f", False) and features.get("avx512vl", False)
        bits = 512 if wide else 256 if features.get("avx2", False) else 128
        registers = 32 if wide else 16
    else:
        bits, registers = 128, 32
    l1, l2, l3 = _caches()
    cpu = _cpu_name(llvm.get_host_cpu_name(), features)
    units = 1 if bits == 512 and cpu not in _TWO_WIDE_UNITS else 2
    return Target(
        triple, cpu, flags, len(os.sched_getaffinity(0)), bits, registers, l1, l2, l3,
        round(2 * (bits // 32) * units * _frequency(), 1), 12.0, units,
    )  # fmt: skip


def _cpu_name(named: str, features: dict[str, bool]) -> str:
    """LLVM's name of the processor; virtual machines give a wrong model number, but true features."""
    for feature, first, later in _NEWER:
        if features.get(feature, False):
            return named if named in later else first
    return named


def _caches() -> tuple[int, int, int]:
    found = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified") and level in found and size.endswith("K"):
            found[level] = int(size[:-1]) << 10
    return found[1], found[2], found[3]


def _cpuinfo() -> str:
    """What Linux says of the processor; nothing where it does not."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _arm_features(cpuinfo: str) -> dict[str, bool]:
    """LLVM's names of the instructions for short products that Linux lists."""
    listed = {
        word
        for line in cpuinfo.splitlines()
        if line.startswith("Features")
        for word in line.partition(":")[2].split()
    }
    names = {"asimd": "neon", "asimddp": "dotprod", "i8mm": "i8mm", "bf16": "bf16"}
    return {ours: True for theirs, ours in names.items() if theirs in listed}


def _frequency() -> float:
    """Clock in GHz; 3 where the system does not tell."""
    for line in _cpuinfo().splitlines():
        if line.startswith("cpu MHz"):
            return max(1.0, float(line.split(":")[1]) / 1000)
    return 3.0

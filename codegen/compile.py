"""LLVM assembly to object code, with the time of each stage."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

from tilewright.codegen.target import Target
from tilewright.errors import BuildError

__all__ = ["BuildTimes", "assembly", "compile_text"]


@dataclass(frozen=True)
class BuildTimes:
    """Seconds of each stage of a build."""

    emit_s: float
    parse_s: float
    passes_s: float
    codegen_s: float

    @property
    def total_s(self) -> float:
        """All stages together."""
        return self.emit_s + self.parse_s + self.passes_s + self.codegen_s


@functools.lru_cache(maxsize=8)
def _machine(triple: str, cpu: str, features: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if triple.startswith("x86_64"):
        _leave_out_a_pass()
    flags = features
    if "+avx512f" in features.split(","):
        flags += ",-prefer-256-bit"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=flags, opt=3, reloc="pic", codemodel="default"
    )


@functools.cache  # LLVM ends the process when an option is set twice
def _leave_out_a_pass() -> None:
    """Leave out the x86 pass which splits copies of stored data: it fails on masked loads of unknown size."""
    import llvmlite.binding as llvm

    llvm.set_option("tilewright", "-x86-disable-avoid-SFB")


def _optimise(module: Any, machine: Any) -> None:
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_licm_pass() if hasattr(passes, "add_licm_pass") else None
    passes.add_new_gvn_pass() if hasattr(passes, "add_new_gvn_pass") else None
    passes.run(module, builder)


def compile_text(text: str, target: Target) -> tuple[bytes, tuple[float, float, float]]:
    """Compile a module.

    Returns
    -------
    The object file, and the seconds of parsing, passes and code generation.

    Raises
    ------
    BuildError
        If LLVM refuses the module.
    """
    import llvmlite.binding as llvm

    machine = _machine(target.triple, target.cpu, target.features)
    t0 = time.perf_counter()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise BuildError(f"compile: LLVM refuses the module: {error}") from None
    t1 = time.perf_counter()
    _optimise(module, machine)
    t2 = time.perf_counter()
    code = machine.emit_object(module)
    t3 = time.perf_counter()
    return code, (t1 - t0, t2 - t1, t3 - t2)


def assembly(text: str, target: Target, *, optimised_ir: bool = False) -> str:
    """The optimised module as assembly of the target (or as LLVM IR)."""
    import llvmlite.binding as llvm

    machine = _machine(target.triple, target.cpu, target.features)
    module = llvm.parse_assembly(text)
    _optimise(module, machine)
    return str(module) if optimised_ir else str(machine.emit_assembly(module))

"""From a workload and a trace, or a program, to a kernel."""

from __future__ import annotations

import time

from tilewright.codegen.compile import BuildTimes, compile_text
from tilewright.codegen.emit import KERNEL, emit_module
from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.target import Target
from tilewright.schedule.program import Program
from tilewright.schedule.rules.choose import default_rules
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace
from tilewright.tensor.workload import Workload

__all__ = ["build", "build_default", "build_program", "default_trace"]


def build_program(program: Program, target: Target) -> tuple[KernelObject, BuildTimes]:
    """Compile a concrete program.

    Raises
    ------
    BuildError
        If it cannot be turned into machine code.
    """
    start = time.perf_counter()
    features = frozenset(target.features.split(","))
    emitted = emit_module(program, target.vector_bits, target.n_threads, features)
    text = emitted.module.text()
    spent = time.perf_counter() - start
    code, (parse, passes, codegen) = compile_text(text, target)
    kernel = KernelObject(
        code, KERNEL, emitted.params, emitted.packed, emitted.workspace_bytes, target.n_threads
    )
    return kernel, BuildTimes(spent, parse, passes, codegen)


def build(workload: Workload, trace: Trace, target: Target) -> KernelObject:
    """Replay a trace on a workload and compile the result.

    Raises
    ------
    ScheduleError
        If a step of the trace is illegal on this workload.
    BuildError
        If the program cannot be turned into machine code.
    """
    schedule = Schedule(Task(workload, target))
    schedule.apply(trace)
    return build_program(schedule.program, target)[0]


def default_trace(workload: Workload, target: Target) -> Trace:
    """The steps of the default schedule."""
    schedule = Schedule(Task(workload, target))
    default_rules(workload)[0](schedule)
    return schedule.trace


def build_default(workload: Workload, target: Target) -> KernelObject:
    """Compile the default schedule, candidate zero of the workload's space."""
    return build(workload, default_trace(workload, target), target)

"""Builders that plant faults: the trace's first step names the fault.

Every fault of a kernel is real machine code, compiled from LLVM assembly.
"""

from __future__ import annotations

import os
import time

from tilewright.codegen.build import build as good_build
from tilewright.codegen.compile import compile_text
from tilewright.codegen.kernel import KernelObject, Param
from tilewright.codegen.target import Target
from tilewright.errors import BuildError, ScheduleError
from tilewright.schedule.program import Role
from tilewright.schedule.trace import Trace
from tilewright.tensor import Workload, as_dtype

__all__ = ["build"]

_HEAD = "define void @tw_kernel(ptr %args, ptr %workspace, ptr %runtime) nounwind {\nentry:\n"
_OUT = "  %slot = getelementptr ptr, ptr %args, i64 1\n  %out = load ptr, ptr %slot\n"
_DOUBLE = """  %in = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %p = getelementptr float, ptr %in, i64 %i
  %v = load float, ptr %p
  %w = fmul float %v, {factor}
  %q = getelementptr float, ptr %out, i64 %i
  store float %w, ptr %q
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 33
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

# an instruction of the other architecture, on which LLVM aborts the process
_FOREIGN = "@llvm.aarch64.hint" if Target.host(1).triple.startswith("x86_64") else "@llvm.x86.int"

KERNELS = {
    "segv": _HEAD + "  store volatile i32 1, ptr inttoptr (i64 16 to ptr)\n  ret void\n}\n",
    "loop": _HEAD + "  br label %l\nl:\n  %x = load volatile i64, ptr %args\n  br label %l\n}\n",
    "exit": "declare void @exit(i32)\n" + _HEAD + "  call void @exit(i32 0)\n  ret void\n}\n",
    "abort": "declare void @abort()\n" + _HEAD + "  call void @abort()\n  ret void\n}\n",
    "far": _HEAD
    + _OUT
    + "  %q = getelementptr i8, ptr %out, i64 8192\n  store volatile i32 1, ptr %q\n  ret void\n}\n",
    "beside": _HEAD
    + _OUT
    + "  %z = getelementptr float, ptr %out, i64 33\n  store volatile float 1.0, ptr %z\n"
    + _DOUBLE.format(factor="2.0"),
    "nothing": _HEAD + "  ret void\n}\n",
    "wrong": _HEAD + _OUT + _DOUBLE.format(factor="3.0"),
    "later": "@count = internal global i64 0\n"
    + _HEAD
    + _OUT
    + "  %n = load i64, ptr @count\n  %n1 = add i64 %n, 1\n  store i64 %n1, ptr @count\n"
    + "  %first = icmp eq i64 %n, 0\n  %factor = select i1 %first, float 2.0, float 2.5\n"
    + _DOUBLE.format(factor="%factor"),
    "nan": _HEAD + _OUT + _DOUBLE.format(factor="0x7FF8000000000000"),
    "scratch": _HEAD
    + "  %z = getelementptr i8, ptr %workspace, i64 40\n  store volatile i8 1, ptr %z\n"
    + _OUT
    + _DOUBLE.format(factor="2.0"),
    "packed": """define void @tw_prepack(ptr %args, ptr %workspace, ptr %runtime) nounwind {
  %slot = getelementptr ptr, ptr %args, i64 2
  %packed = load ptr, ptr %slot
  %z = getelementptr i8, ptr %packed, i64 552
  store volatile i8 1, ptr %z
  ret void
}
"""
    + _HEAD
    + _OUT
    + _DOUBLE.format(factor="2.0"),
    "unwritten": _HEAD  # right if scratch memory happens to be zero
    + "  %x = load volatile float, ptr %workspace\n  %factor = fadd float %x, 2.0\n"
    + _OUT
    + _DOUBLE.format(factor="%factor"),
    "hog": "declare ptr @malloc(i64)\n"
    + _HEAD
    + """  br label %take
take:
  %k = phi i64 [0, %entry], [%k1, %take]
  %m = call ptr @malloc(i64 67108864)
  store volatile i8 1, ptr %m
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, 200
  br i1 %again, label %take, label %enough
enough:
"""
    + _OUT
    + _DOUBLE.format(factor="2.0").replace("%entry", "%enough"),
    "memory": "declare ptr @malloc(i64)\n"
    + _HEAD
    + "  %p = call ptr @malloc(i64 1099511627776)\n"
    + "  store volatile i8 1, ptr %p\n  ret void\n}\n",
    "slow": "declare i32 @usleep(i32)\n"
    + _HEAD
    + _OUT
    + "  %s = call i32 @usleep(i32 20000)\n"
    + _DOUBLE.format(factor="2.0"),
    "build_llvm": f"declare void {_FOREIGN}(i32)\n"
    + _HEAD
    + f"  call void {_FOREIGN}(i32 1)\n  ret void\n}}\n",
    "input": _HEAD
    + "  %in = load ptr, ptr %args\n  store volatile float 1.0, ptr %in\n  ret void\n}\n",
    "stack": "define void @tw_kernel(ptr %args, ptr %workspace, ptr %runtime) noinline {\n  %x = alloca [65536 x i8]\n"
    "  %v = load volatile i8, ptr %x\n  call void @tw_kernel(ptr %args, ptr %x, ptr %runtime)\n  store volatile i8 %v, ptr %x\n  ret void\n}\n",
}


def build(workload: Workload, trace: Trace, target: Target) -> KernelObject:
    """Compile what the trace asks for: a fault, or a real schedule."""
    if not trace.steps or trace.steps[0].primitive != "fault":
        return good_build(workload, trace, target)
    fault = str(trace.steps[0].args[0])
    if fault == "illegal":
        raise ScheduleError("split(i): the planted refusal")
    if fault == "error":
        raise BuildError("emit: the planted error")
    if fault == "bug":
        raise RuntimeError("a planted bug")
    if fault == "build_abort":
        os.abort()
    if fault == "build_hang":
        time.sleep(3600)
    if fault == "build_memory":
        bytearray(1 << 40)
    code, _ = compile_text(KERNELS[fault], target)
    inputs = [Param(p.name, p.shape, p.dtype, Role.INPUT) for p in workload.inputs]
    outputs = [Param(o.name, o.shape, o.dtype, Role.OUTPUT) for o in workload.outputs]
    packed = (
        (Param("packed", (10,), as_dtype("float32"), Role.PACKED),) if fault == "packed" else ()
    )
    return KernelObject(code, "tw_kernel", (*inputs, *outputs), packed, 40, target.n_threads)

"""What is counted in innermost loops, and what the recorded schedules of the suite come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.suite import Spec, model, suite
from tests.schedule import workloads

from tilewright.codegen.inspection import Inspection, inspect_assembly, inspect_kernel
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.records import RecordStore
from tilewright.schedule.lower import lower
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tuning import tasks_of

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks/records/znver4.jsonl"
FEATURES = (
    "+64bit,+avx,+avx2,+avx512bf16,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,+avx512vnni,+bmi,+bmi2,+f16c,+fma,"
    "+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3"
)
ZEN4 = Target(
    "x86_64-unknown-linux-gnu", "znver4", FEATURES, 1, 512, 32, 32 << 10, 1 << 20, 32 << 20, 83.1, 12.0
)  # fmt: skip
ARM = replace(ZEN4, triple="aarch64-unknown-linux-gnu", cpu="neoverse-n1", features="+neon", vector_bits=128)  # fmt: skip
# Vector spills in the innermost loops of the chosen kernels, by operator and threads; others have none.
KNOWN = {
    ("conv3x3_128_28", 1): 14, ("conv3x3s2_128_56", 1): 2, ("dw3x3_32_112", 1): 6, ("conv3x3_64_56", 2): 6,
    ("dw3x3s2_192_28", 2): 8, ("dw3x3_576_14", 2): 83, ("convT4x4s2_512_256_4", 2): 166,
}  # fmt: skip
QUICK = (
    "matmul_512",
    "matmul_1x1000x2048",
    "matmul_49x512x2048",
    "dw3x3_960_7",
    "gelu_4M",
    "transpose_2048",
)

LOOP = """
\t.type\tf,@function
f:
\tmovq\t%rsp, %rbp
.LBB0_1:
\tvmovups\t(%rdi,%rax,4), %zmm0
\tvfmadd231ps\t(%rsi){1to16}, %zmm0, %zmm1
\tvfmadd213ss\t(%rsi), %xmm0, %xmm1
\tvmovups\t%zmm1, 64(%rsp)
\tvaddps\t-128(%rbp), %zmm1, %zmm1
\tmovq\t8(%rsp), %rcx
\tvgatherdps\t(%rdx,%zmm3,4), %zmm2 {%k1}
\tvmovups\t%zmm1, (%rdx) {%k2}
\tleaq\t8(%rsp), %rcx
\tcallq\texpf@PLT
\tcallq\tg
\tcallq\t*%rax
\tjne\t.LBB0_1
\tretq
.Lfunc_end0:
\t.type\tg,@function
g:
\tretq
.Lfunc_end1:
"""


def test_each_kind_of_instruction_is_counted() -> None:
    found = inspect_assembly(LOOP, "x86_64-pc-linux-gnu")
    (loop,) = found.loops
    assert (loop.function, loop.label, loop.instructions) == ("f", ".LBB0_1", 13)
    assert (loop.multiply_adds, loop.gathers, loop.broadcasts) == (1, 1, 1)
    assert (loop.vector_loads, loop.vector_stores) == (5, 2)
    assert (loop.spills, loop.reloads) == (2, 1)
    assert loop.calls == ("expf", "g")
    assert found.library_calls == ("expf",)


def test_the_frame_pointer_is_no_stack_where_it_holds_something_else() -> None:
    text = LOOP.replace("\tmovq\t%rsp, %rbp\n", "")
    assert inspect_assembly(text, "x86_64-pc-linux-gnu").loops[0].spills == 1


def test_assembly_of_another_kind_is_refused() -> None:
    with pytest.raises(BuildError, match=r"inspect_assembly\(riscv64-linux\): cannot read this"):
        inspect_assembly(LOOP, "riscv64-linux")


@pytest.mark.parametrize("target", [ZEN4, ARM], ids=["x86", "arm"])
def test_the_inner_loop_of_a_product_multiplies_in_vectors(target: Target) -> None:
    schedule = Schedule(workloads.matmul(8, 16, 32))
    (loop,) = inspect_kernel(schedule.program, target).loops[-1:]
    assert loop.multiply_adds == 0  # plain loops are scalar
    schedule.reorder("k", "j")
    schedule.vectorize("j")
    found = inspect_kernel(schedule.program, target)
    assert max(loop.multiply_adds for loop in found.loops) >= 1
    assert sum(loop.vector_loads for loop in found.loops) > 0 and found.spills == 0


def test_mathematical_functions_are_no_calls() -> None:
    x = te.placeholder((3, 40), name="x")
    out = ops.elementwise("y", lambda a: te.exp(a) + te.erf(a) + te.sin(a) * te.tanh(a), x)
    assert inspect_kernel(lower(Workload.of(out)), ZEN4).library_calls == ()


def chosen(spec: Spec, n_threads: int) -> dict[str, Inspection]:
    """The kernels of an operator that have a record, by name."""
    target = ZEN4.with_threads(n_threads)
    store = RecordStore(RECORDS)
    found = {}
    for task in (task for forms, _ in tasks_of(model(spec), target) for task in forms):
        best = store.best(task.workload.key, target.fingerprint)
        if best is not None:
            schedule = Schedule(Task(task.workload, target))
            schedule.apply(best.trace)
            found[task.name] = inspect_kernel(schedule.program, target)
    return found


def check_chosen(name: str, n_threads: int) -> None:
    found = chosen(next(s for s in suite() if s["name"] == name), n_threads)
    assert found, f"no record of {name} on {n_threads} thread(s) of {ZEN4.fingerprint}"
    for kernel, inspection in found.items():
        assert inspection.library_calls == (), kernel
        assert inspection.spills <= KNOWN.get((name, n_threads), 0), kernel


@pytest.mark.parametrize("name", QUICK)
def test_recorded_kernels_neither_spill_in_inner_loops_nor_call_a_library(name: str) -> None:
    check_chosen(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", [s["name"] for s in suite()])
def test_all_recorded_kernels_spill_no_more_than_is_known(name: str, n_threads: int) -> None:
    check_chosen(name, n_threads)

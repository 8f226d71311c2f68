"""Compiled kernels of every sketch agree with the reference evaluator, on several targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.codegen import harness

from tilewright.codegen.build import build, build_default, build_program
from tilewright.codegen.compile import assembly
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.errors import BuildError, ScheduleError
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.lower import lower
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Step, Trace
from tilewright.tensor import DType, Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.te import Compute, Placeholder

HOST = Target.host(1)


def p(*shape: int, dtype: str = "float32", const: bool = False, name: str = "x") -> Placeholder:
    return te.placeholder(shape, dtype, name=name, const=const)


def w(*shape: int) -> Placeholder:
    return p(*shape, const=True, name="w")


def relu(x: Compute) -> Compute:
    return ops.elementwise("relu", lambda v: te.maximum(v, 0.0), x)


def conv(x: Placeholder, k: Placeholder, stride: int, pad: int, groups: int = 1) -> Compute:
    return ops.conv2d(x, k, stride=stride, padding=pad, groups=groups)


def argument(dtype: str) -> Compute:
    return ops.elementwise(
        "y", lambda a, b: a * b + a, p(5, 19, dtype=dtype), p(19, dtype=dtype, name="b")
    )


WORKLOADS: dict[str, Callable[[], Compute]] = {
    "matmul": lambda: ops.matmul(p(48, 32), p(32, 64, name="b")),
    "matmul of primes": lambda: relu(ops.matmul(p(13, 17), w(17, 31))),
    "matmul, tall": lambda: ops.matmul(p(101, 5), w(5, 3)),
    "matmul, one row": lambda: ops.matmul(p(1, 70), w(70, 45)),
    "matmul, transposed batch": lambda: ops.matmul(p(3, 7, 16), p(3, 9, 16, name="b"), transpose_b=True),
    "matmul, double": lambda: ops.matmul(p(9, 11, dtype="float64"), p(11, 13, dtype="float64", name="b")),
    "conv": lambda: relu(conv(p(1, 5, 12, 11), w(18, 5, 3, 3), 1, 1)),
    "conv, strided": lambda: conv(p(2, 5, 13, 9), w(7, 5, 3, 3), 2, 1),
    "conv, 1 x 1": lambda: relu(conv(p(1, 16, 5, 7), w(9, 16, 1, 1), 1, 0)),
    "conv, grouped": lambda: conv(p(1, 6, 9, 9), w(8, 3, 3, 3), 1, 1, 2),
    "conv, depthwise": lambda: relu(conv(p(1, 6, 9, 35), w(6, 1, 5, 5), 2, 2, 6)),
    "max pool": lambda: ops.pool(p(1, 3, 11, 21), "max", kernel=[3, 3], stride=[2, 2], padding=[(1, 1), (1, 1)]),
    "average pool": lambda: ops.pool(p(1, 3, 9, 9), "average", kernel=[3, 2], stride=[2, 2], padding=[(1, 1), (0, 0)]),
    "global pool": lambda: ops.global_pool(p(1, 7, 5, 9), "average"),
    "softmax": lambda: ops.softmax(p(5, 37)),
    "softmax, other axis": lambda: ops.softmax(p(3, 9, 7), axis=1),
    "layer norm": lambda: ops.layer_norm(p(2, 3, 48), w(48), p(48, const=True, name="v")),
    "sum of rows": lambda: ops.reduce(p(9, 70), "sum", [1]),
    "sum of columns": lambda: ops.reduce(p(70, 19), "sum", [0]),
    "max of all": lambda: ops.reduce(p(7, 9), "max", [0, 1], keepdims=False),
    "product": lambda: ops.reduce(p(4, 6), "prod", [1]),
    "transpose": lambda: ops.transpose(p(19, 23), [1, 0]),
    "concat": lambda: ops.concat([p(3, 5), p(3, 9, name="b")], 1),
    "gather": lambda: ops.gather(p(30, 16, const=True), p(2, 5, dtype="int64", name="i")),
    "reflect pad": lambda: ops.pad(p(5, 9), [1, 2], [2, 3], mode="reflect"),
    "reshape": lambda: ops.reshape(p(6, 10), [4, 15]),
    "reversed": lambda: ops.slice_(p(20), [19], [10], [-2]),
    "matmul, int64": lambda: ops.matmul(p(5, 13, dtype="int64"), p(13, 33, dtype="int64", name="b")),
    "matmul, uint8 that wraps": lambda: ops.matmul(p(5, 13, dtype="uint8"), p(13, 70, dtype="uint8", name="b")),
    "sum of columns, float64": lambda: ops.reduce(p(70, 19, dtype="float64"), "sum", [0]),
    "max of rows, int8": lambda: ops.reduce(p(9, 70, dtype="int8"), "max", [1]),
    "any of rows": lambda: ops.reduce(p(9, 70, dtype="bool"), "max", [1]),
    "int64": lambda: argument("int64"),
    "int32": lambda: argument("int32"),
    "uint8": lambda: argument("uint8"),
    "floor division": lambda: ops.elementwise("y", lambda a: (a - 4) // 3 + (a - 4) % 3, p(23, dtype="int64")),
    "bool": lambda: ops.elementwise("y", lambda a, b: te.logical_and(a, te.logical_not(b)), p(21, dtype="bool"), p(21, dtype="bool", name="b")),
    "compare": lambda: ops.elementwise("y", lambda a, b: te.select(a < b, a, b * 2.0), p(3, 21), p(21, name="b")),
    "index as data": lambda: te.compute((5, 20), lambda i, j: te.cast(i * 3 + j, "float32") * 0.5, name="y"),
    "erf, pow, sin": lambda: ops.elementwise("y", lambda a: te.erf(a) + te.sin(a) * te.abs(a) ** 1.5, p(45)),
    "scalar": lambda: ops.elementwise("y", lambda a: te.exp(a), p()),
}  # fmt: skip

TARGETS = {
    "host": HOST,
    "three threads": HOST.with_threads(3),
}


def check(workload: Workload, target: Target, seed: int, rows_each: int) -> None:
    data = make_inputs(workload)
    expected = evaluate(workload, data, precision="double")
    space = Space(Task(workload, target))
    rows = space.sample_rows(120, np.random.default_rng(seed))
    chosen = [space.default_row()[0]]
    for n in range(len(space.sketches)):
        chosen.extend(rows[rows[:, 0] == n][:rows_each])
    for row in chosen:
        found = harness.run(build(workload, space.trace(row), target), data)
        for a, b in zip(found, expected):
            problem = compare(a, b, tolerance(workload))
            assert problem is None, f"{space.row_ids(row)[0]}: {problem}"


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_of_any_sketch_computes_the_workload(name: str, target: str) -> None:
    check(Workload.of(WORKLOADS[name](), name), TARGETS[target], seed=1, rows_each=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_many_kernels_of_any_sketch_compute_the_workload(name: str) -> None:
    check(Workload.of(WORKLOADS[name](), name), HOST.with_threads(2), seed=2, rows_each=12)


@pytest.mark.parametrize(
    "shape", [(m, n, k) for m in (1, 7, 16) for n in (1, 5, 16, 33) for k in (1, 9)]
)
def test_small_products_of_any_shape(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    check(Workload.of(ops.matmul(p(m, k), w(k, n))), HOST, seed=3, rows_each=1)


def avx2() -> Target:
    kept = [f for f in HOST.features.split(",") if "avx512" not in f]
    return replace(HOST, cpu="haswell", features=",".join(kept), vector_bits=256, n_registers=16)


@pytest.mark.skipif("+avx2" not in HOST.features, reason="needs a CPU with AVX2")
@pytest.mark.parametrize(
    "name", ["matmul of primes", "conv", "softmax", "conv, depthwise", "erf, pow, sin"]
)
def test_kernels_for_avx2_compute_the_workload(name: str) -> None:
    check(Workload.of(WORKLOADS[name](), name), avx2(), seed=4, rows_each=1)


@pytest.mark.parametrize(
    ("triple", "cpu", "bits"),
    [
        ("aarch64-unknown-linux-gnu", "neoverse-n1", 128),
        ("x86_64-unknown-linux-gnu", "haswell", 256),
    ],
)
def test_kernels_cross_compile(triple: str, cpu: str, bits: int) -> None:
    target = replace(
        HOST,
        triple=triple,
        cpu=cpu,
        features="",
        vector_bits=bits,
        n_registers=32 if bits == 128 else 16,
    )
    for name in ("matmul of primes", "conv", "softmax"):
        workload = Workload.of(WORKLOADS[name](), name)
        space = Space(Task(workload, target))
        for row in space.sample_rows(4, np.random.default_rng(0)):
            assert build(workload, space.trace(row), target).code[:4] == b"\x7fELF"


@pytest.mark.skipif("+avx512f" not in HOST.features, reason="reads AVX-512 assembly")
def test_accumulators_of_a_tile_stay_in_registers() -> None:
    workload = Workload.of(relu(ops.matmul(p(96, 64), w(64, 128))))
    space = Space(Task(workload, HOST))
    frame = space.sample(4000, seed=0)
    best = frame[(frame["i.r"] == 12) & (frame["j.r"] == 32)].iloc[0]
    text = assembly(emit_module(space.program(best), 512, 1).module.text(), HOST)
    lines = text.splitlines()
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith(".LBB"):
            blocks.append([])
        blocks[-1].append(line)
    hottest = max(blocks, key=lambda b: sum("vfmadd" in x for x in b))
    assert sum("vfmadd" in x for x in hottest) >= 24
    assert not [x for x in hottest if "(%rsp" in x or "(%rbp" in x]


def test_kernels_need_no_library() -> None:
    workload = Workload.of(ops.softmax(p(5, 37)))
    text = emit_module(lower(workload), 512, 1).module.text()
    assert all("@llvm." in line for line in text.splitlines() if line.startswith("declare"))


def test_a_program_with_open_knobs_is_refused() -> None:
    space = Space(Task(Workload.of(ops.matmul(p(8, 8), w(8, 8))), HOST))
    sketch = next(s for s in space.sketches if s.columns)
    with pytest.raises(BuildError, match="depends on knobs; choose a row first|is not a number"):
        build_program(sketch.program, HOST)


def test_an_illegal_trace_is_refused_with_its_step() -> None:
    workload = Workload.of(ops.matmul(p(8, 8), w(8, 8)))
    with pytest.raises(
        ScheduleError, match=r"replay: step 0, s\.split\('z', \[4\]\): loop\(z\): no such loop"
    ):
        build(workload, Trace((Step("split", ("z", (4,))),)), HOST)


def test_constants_are_packed_once() -> None:
    workload = Workload.of(ops.matmul(p(16, 32), w(32, 64)))
    space = Space(Task(workload, HOST))
    rows = space.sample_rows(200, np.random.default_rng(0))
    packed = [r for r in rows if "pack.w=True" in space.row_ids(r)[0]]
    kernel = build(workload, space.trace(packed[0]), HOST)
    assert [b.name for b in kernel.packed] == ["w.pack"]
    assert build_default(workload, HOST).packed == ()


def test_half_precision_is_computed_wider_where_it_must() -> None:
    x = p(4, 20, dtype="float16")
    workload = Workload.of(ops.elementwise("y", lambda a: te.exp(a) + a, x))
    data = [np.linspace(-2, 2, 80).reshape(4, 20).astype(np.float16)]
    found = harness.run(build_default(workload, HOST), data)[0]
    exact = np.exp(data[0].astype(np.float64)) + data[0]
    assert found.dtype == DType.FLOAT16.numpy
    # the exponential is rounded before the sum, which may cancel
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=3e-3, atol=5e-4)

"""The dot rule: where it is offered, what it packs, that its kernels are exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.codegen import harness
from tests.codegen.targets import CROSS, HOST, foreign_symbols, text_of

from tilewright.codegen.build import build
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.rules.dot import dot
from tilewright.schedule.rules.dotplan import may_use_dots
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.sketch import drafts, sketches_of
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.te import Compute, Placeholder


def p(*shape: int, dtype: str = "uint8", name: str = "x") -> Placeholder:
    return te.placeholder(shape, dtype, name=name)


def w(*shape: int, dtype: str = "int8") -> Placeholder:
    return te.placeholder(shape, dtype, name="w", const=True)


def conv(x: Placeholder, k: Placeholder, stride: int = 1, pad: int = 1, dilation: int = 1) -> Compute:  # fmt: skip
    return ops.conv(
        x, k, stride=[stride] * 2, padding=[(pad, pad)] * 2, dilation=[dilation] * 2, accumulate="int32",
        fill=te.cast(3, x.dtype),
    )  # fmt: skip


def scaled(y: Compute) -> Compute:
    return ops.elementwise(
        "s", lambda v: te.cast(te.round(te.cast(v, "float32") * 0.01), "int32"), y
    )


WORKLOADS: dict[str, Callable[[], Compute]] = {
    "matmul": lambda: ops.matmul(p(13, 37), w(37, 70), accumulate="int32"),
    "matmul, scaled": lambda: scaled(ops.matmul(p(13, 40), w(40, 70), accumulate="int32")),
    "matmul of signed": lambda: ops.matmul(p(5, 18, dtype="int8"), w(18, 33), accumulate="int32"),
    "matmul of activations": lambda: ops.matmul(p(2, 5, 13), p(2, 13, 19, dtype="uint8", name="b"), accumulate="int32"),
    "matmul, transposed": lambda: ops.matmul(p(13, 5), w(33, 13), transpose_a=True, transpose_b=True, accumulate="int32"),
    "matmul of bfloat16": lambda: ops.matmul(p(7, 19, dtype="bfloat16"), w(19, 33, dtype="bfloat16")),
    "conv": lambda: scaled(conv(p(1, 8, 9, 12), w(6, 8, 3, 3))),
    "conv, strided": lambda: conv(p(2, 9, 9, 12), w(18, 9, 3, 3), 2),
    "conv of three channels": lambda: conv(p(1, 3, 10, 12), w(18, 3, 3, 3)),
    "conv, dilated": lambda: conv(p(1, 4, 12, 11, dtype="int8"), w(5, 4, 3, 3), 1, 2, 2),
    "conv, 1 x 1": lambda: conv(p(1, 16, 7, 9), w(9, 16, 1, 1), 1, 0),
}  # fmt: skip


def without(*features: str, bits: int = HOST.vector_bits) -> Target:
    kept = [f for f in HOST.features.split(",") if not any(x in f for x in features)]
    cpu = "haswell" if "avx512" in features else HOST.cpu
    return replace(HOST, cpu=cpu, features=",".join(kept), vector_bits=bits)


x86 = HOST.triple.startswith("x86_64") and "+avx2" in HOST.features
HERE = {"host": HOST}
if x86:
    HERE |= {
        "avx2": without("avx512", "avxvnni", bits=256),
        "no vnni": without("avx512vnni", "avx512bf16", "avxvnni"),
    }


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("target", HERE)
def test_kernels_of_the_rule_compute_the_workload(name: str, target: str) -> None:
    workload = Workload.of(WORKLOADS[name](), name)
    data = make_inputs(workload)
    expected = evaluate(workload, data, precision="double")[0]
    refused: dict[str, str] = {}
    rng = np.random.default_rng(0)
    task = Task(workload, HERE[target])
    sketches = sketches_of(task, dot, refused, flipped=1 if target != "host" else None)
    for sketch in sketches:
        picks = rng.integers(0, [len(c.values) for c in sketch.columns], (200, len(sketch.columns)))
        values = np.array([[c.values[k] for c, k in zip(sketch.columns, row)] for row in picks], float)  # fmt: skip
        for row in values[sketch.valid(values)][:1]:
            found = harness.run(build(workload, sketch.concrete(row), HERE[target]), data)[0]
            problem = compare(found, expected, tolerance(workload))
            assert problem is None, f"{problem}\n{sketch.concrete(row)}"
    if not sketches:
        assert "needs one of" in refused["dot"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("avx2", ["vpmaddwd"]),
        ("avx2 with vnni", ["vpdpbusd"]),
        ("avx512", ["vpmaddwd"]),
        ("avx512 with vnni", ["vpdpbusd"]),
        ("neon with dotprod", ["sdot"]),
        ("neon with i8mm", ["usdot"]),
    ],
)
@pytest.mark.parametrize("name", ["matmul", "conv"])
def test_drafts_use_the_instruction_of_the_target(name: str, target: str, words: list[str]) -> None:
    workload = Workload.of(WORKLOADS[name](), name)
    task = Task(workload, CROSS[target])
    s = Schedule(task)
    s.apply(drafts(task, 1)[0])
    assert all(x in text_of(s.program, CROSS[target]) for x in words)
    assert foreign_symbols(s.program, CROSS[target]) == set()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("sse", "dot: C needs one of +avx512vnni, +avxvnni, +dotprod"),
        ("neon", "dot: C needs one of +avx512vnni, +avxvnni, +dotprod"),
    ],
)
def test_a_target_without_instructions_gets_plain_vectors(target: str, why: str) -> None:
    space = Space(Task(Workload.of(WORKLOADS["matmul"]()), CROSS[target]))
    assert space.refused["dot"] == why
    assert any(s.name.startswith("tile") for s in space.sketches)


def test_products_of_floats_and_wide_integers_have_no_such_rule() -> None:
    for dtype in ("float32", "int32", "float16"):
        y = ops.matmul(p(8, 8, dtype=dtype), p(8, 8, dtype=dtype, name="b"))
        assert not may_use_dots(Workload.of(y))
    assert may_use_dots(Workload.of(WORKLOADS["conv"]()))
    assert may_use_dots(Workload.of(WORKLOADS["matmul of bfloat16"]()))


def test_constants_are_packed_at_load_time_and_inputs_by_interleaving() -> None:
    task = Task(Workload.of(WORKLOADS["conv"]()), CROSS["avx512 with vnni"])
    program = sketches_of(task, dot, {})[0].program
    roles = {b.name: b.role.value for b in program.buffers if ".pack" in b.name}
    assert roles == {"Y.pad.pack": "temp", "w.pack": "packed"}
    assert str(program).count("# interleave 4") == 1 and "Y.pad[" not in str(program)

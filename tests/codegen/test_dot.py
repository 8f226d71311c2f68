"""Tensorized loops in machine code: exact on this machine, the right instructions on others."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen import harness
from tests.codegen.targets import CROSS, HOST, foreign_symbols, text_of
from tests.schedule import workloads
from tests.schedule.test_tensorize import tensorized

from tilewright.codegen.build import build_program
from tilewright.errors import BuildError
from tilewright.schedule.intrinsic import Dot, Interleave
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import DType, Workload, te
from tilewright.tensor.evaluate import evaluate

FEATURES = frozenset(HOST.features.split(","))
SIGNS = ["uint8", "int8"]
GROUPS = [g for g in (2, 4) if Dot(DType.INT8, DType.INT8, DType.INT32, g).available(FEATURES)]
here = pytest.mark.skipif(not GROUPS, reason="this CPU has no dot products")


def run(s: Schedule, data: list[Any]) -> Any:
    return harness.run(build_program(s.program, HOST)[0], data)[0]


@here
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 40), st.integers(1, 19)),
    st.tuples(*[st.sampled_from(SIGNS)] * 2),
    st.sampled_from([1, 5, 16, 24, 32]),
    st.sampled_from(GROUPS or [2]),
)
@settings(max_examples=40, deadline=None)
def test_dot_products_of_any_shape_and_sign_are_exact(
    shape: tuple[int, int, int], types: tuple[str, str], lanes: int, group: int
) -> None:
    s = tensorized(shape, types, lanes, group)
    data = workloads.arrays(s.workload)
    np.testing.assert_array_equal(run(s, data), evaluate(s.workload, data)[0])


@here
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("types", list(itertools.product(SIGNS, SIGNS)))
@pytest.mark.parametrize("ends", list(itertools.product(("min", "max"), repeat=2)))
def test_no_sum_saturates(types: tuple[str, str], ends: tuple[str, str], group: int) -> None:
    s = tensorized((2, 16, 64), types, 16, group)
    data = [
        np.full(p.shape, getattr(np.iinfo(p.dtype.numpy), end), p.dtype.numpy)
        for p, end in zip(s.workload.inputs, ends)
    ]
    product = int(data[0].flat[0]) * int(data[1].flat[0]) * 64
    np.testing.assert_array_equal(run(s, data), np.full((2, 16), product, np.int32))


@here
@pytest.mark.parametrize("group", GROUPS)
def test_sums_beyond_the_accumulator_wrap(group: int) -> None:
    s = tensorized((1, 16, 66_400), ("uint8", "int8"), 16, group)
    data = [np.full(p.shape, np.iinfo(p.dtype.numpy).max, p.dtype.numpy) for p in s.workload.inputs]
    wrapped = (255 * 127 * 66_400 + 2**31) % 2**32 - 2**31
    assert wrapped < 0
    np.testing.assert_array_equal(run(s, data), np.full((1, 16), wrapped, np.int32))


def bfloat(m: int, n: int, k: int) -> Schedule:
    x = te.placeholder((m, k), "bfloat16", name="A")
    y = te.placeholder((n, k), "bfloat16", name="B", const=True)
    axis = te.reduce_axis(k, "k")
    s = Schedule(Workload.of(te.compute((m, n), lambda i, j: te.sum(te.cast(x[i, axis], "float32") * te.cast(y[j, axis], "float32"), axis), name="C")))  # fmt: skip
    s.split("k", [2])
    s.split("j", [16])
    s.reorder("i", "j.0", "k.0", "j.1", "k.1")
    s.cache_read("C", "B", [(0, 16), (1, 2)])
    s.tensorize("j.1", "k.1", Dot(DType.BFLOAT16, DType.BFLOAT16, DType.FLOAT32, 2))
    return s


@pytest.mark.skipif("+avx512bf16" not in FEATURES, reason="needs AVX-512 BF16")
@pytest.mark.parametrize("shape", [(1, 16, 2), (3, 37, 11), (2, 5, 7)])
def test_dot_products_of_bfloat16_are_summed_in_float32(shape: tuple[int, int, int]) -> None:
    s = bfloat(*shape)
    data = workloads.arrays(s.workload)
    expected = evaluate(s.workload, data, precision="double")[0]
    np.testing.assert_allclose(run(s, data), expected, rtol=1e-6, atol=1e-6)


def test_an_interleaved_copy_stores_whole_vectors() -> None:
    x = te.placeholder((8, 50), "uint8", name="X")
    y = te.compute((2, 50, 4), lambda p, i, q: x[p * 4 + q, i], name="Y")
    z = te.compute((2, 50, 4), lambda p, i, q: y[p, i, q] + te.cast(1, "uint8"), name="Z")
    s = Schedule(Workload.of(z))
    s.tensorize("i", "q", Interleave(4))
    data = [np.arange(400, dtype=np.int64).astype(np.uint8).reshape(8, 50)]
    np.testing.assert_array_equal(run(s, data), evaluate(s.workload, data)[0])
    text = text_of(s.program, CROSS["avx512"])
    assert "vpunpcklbw" in text or "vpermt2" in text or "vpermi2" in text
    assert "pextrb" not in text


EXPECTED = {
    ("avx2", 2): ["vpmaddwd"],
    ("avx512", 2): ["vpmaddwd"],
    ("avx2 with vnni", 4): ["vpdpbusd"],
    ("avx512 with vnni", 4): ["vpdpbusd"],
}


@pytest.mark.parametrize(("name", "group"), EXPECTED)
@pytest.mark.parametrize("types", list(itertools.product(SIGNS, SIGNS)))
def test_x86_multiplies_bytes_by_the_instruction_it_has(
    name: str, group: int, types: tuple[str, str]
) -> None:
    target = CROSS[name]
    program = tensorized((2, 32, 8), types, target.vector_bits // 32, group).program
    text = text_of(program, target)
    assert all(word in text for word in EXPECTED[name, group])
    wide = "zmm" if target.vector_bits == 512 else "ymm"
    assert any(EXPECTED[name, group][0] in x and wide in x for x in text.splitlines())
    assert foreign_symbols(program, target) == set()


ARM = {
    ("neon with dotprod", "int8", "int8"): "sdot",
    ("neon with dotprod", "uint8", "uint8"): "udot",
    ("neon with dotprod", "uint8", "int8"): "sdot",
    ("neon with i8mm", "uint8", "int8"): "usdot",
    ("neon with i8mm", "int8", "uint8"): "usdot",
}


@pytest.mark.parametrize(("name", "a", "b"), ARM)
def test_arm_multiplies_bytes_by_the_instruction_it_has(name: str, a: str, b: str) -> None:
    program = tensorized((2, 32, 8), (a, b), 4, 4).program
    text = text_of(program, CROSS[name])
    assert f"\t{ARM[name, a, b]}\tv" in text
    assert foreign_symbols(program, CROSS[name]) == set()


@pytest.mark.parametrize(
    ("name", "word"), [("avx512 with bf16", "vdpbf16ps"), ("neon with i8mm", "bfdot")]
)
def test_bfloat16_is_multiplied_in_pairs(name: str, word: str) -> None:
    program = bfloat(2, 32, 8).program
    assert word in text_of(program, CROSS[name])
    assert foreign_symbols(program, CROSS[name]) == set()


@pytest.mark.parametrize(
    ("name", "group", "needs"),
    [
        ("sse", 2, "+avx512bw, +avx2"),
        ("avx512", 4, "+avx512vnni, +avxvnni, +dotprod"),
        ("neon", 4, "+avx512vnni, +avxvnni, +dotprod"),
    ],
)
def test_a_target_without_the_instruction_refuses(name: str, group: int, needs: str) -> None:
    s = tensorized((2, 8, 8), ("uint8", "int8"), 4, group)
    with pytest.raises(BuildError) as error:
        build_program(s.program, CROSS[name])
    assert str(error.value) == (
        f"tensorized loop k.1: the target has no instruction for dot {group} of uint8 x int8 into int32; "
        f"it needs one of {needs}"
    )

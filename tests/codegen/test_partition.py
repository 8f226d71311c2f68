"""Loops are cut where the extents inside stop being full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codegen import harness
from tests.schedule import workloads

from tilewright.codegen.build import build_program
from tilewright.codegen.emit import emit_module
from tilewright.codegen.partition import threshold
from tilewright.codegen.target import Target
from tilewright.schedule.loops import find_loop
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Expr, Var


def cut(s: Schedule, name: str, low: int, high: int) -> int:
    return threshold(find_loop(s.program, Var(name)).body, Var(name), low, high, {})


@given(st.integers(1, 60), st.integers(1, 20))
def test_the_cut_is_in_front_of_the_first_short_tile(extent: int, tile: int) -> None:
    s = Schedule(workloads.transpose(3, extent))
    s.split("i", [tile])
    s.unroll("i.1")
    tiles = -(-extent // tile)
    expected = tiles if extent % tile == 0 or tiles == 1 else extent // tile
    assert cut(s, "i.0", 0, tiles) == expected


def test_nothing_is_cut_where_no_extent_depends_on_the_loop() -> None:
    s = Schedule(workloads.transpose(9, 14))
    s.split("i", [4])
    assert cut(s, "i.1", 0, 4) == 4
    assert cut(s, "j", 0, 9) == 9


@pytest.mark.parametrize(
    ("split", "n_bodies"), [([4], 4 + 2), ([7], 7), ([20], 14), ([3, 2], 2), ([4, 3], 3 + 2)]
)
def test_an_unrolled_tile_becomes_full_tiles_and_a_remainder(
    split: list[int], n_bodies: int
) -> None:
    s = Schedule(workloads.transpose(9, 14))
    s.unroll(s.split("i", split)[-1])
    text = emit_module(s.program, 256, 1).module.text()
    assert text.count("= fmul ") == n_bodies


@pytest.mark.parametrize("split", [[4], [7], [20], [4, 2], [4, 3]])
def test_a_tile_that_is_a_loop_has_one_body_for_every_length(split: list[int]) -> None:
    s = Schedule(workloads.transpose(9, 14))
    s.split("i", split)
    text = emit_module(s.program, 256, 1).module.text()
    assert text.count("= fmul ") <= (2 if split == [4, 3] else 1)


def padded_rows(n: int, tile: int) -> Schedule:
    """``y[i, j] = sum over k of x[i + k - 1, j] * w[k]`` where x is zero outside; i in tiles."""
    x, w = te.placeholder((n, 5), name="x"), te.placeholder((3,), name="w")
    k = te.reduce_axis(3, "k")

    def body(i: Expr, j: Expr) -> Expr:
        row = i + k.var - 1
        inside = te.logical_and(row >= 0, row < n)
        return te.sum(te.select(inside, x[row, j], 0.0) * w[k], k)

    s = Schedule(Workload.of(te.compute((n, 5), body, name="y")))
    i0, i1 = s.split("i", [tile])
    s.reorder(i0, "k", i1, "j")
    return s


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 13])
@pytest.mark.parametrize("tile", [1, 3, 4])
@pytest.mark.parametrize("unroll", [(), ("i.1",), ("k", "i.1")])
def test_conditions_of_padding_are_decided_before_the_code_is_written(
    n: int, tile: int, unroll: tuple[str, ...]
) -> None:
    s = padded_rows(n, tile)
    s.decompose_reduction("y", "k")
    for name in unroll:
        s.unroll(name)
    weights = np.array([1, 10, 100], np.float32)
    data = [np.arange(1, 5 * n + 1, dtype=np.float32).reshape(n, 5), weights]
    expected = evaluate(s.workload, data)[0]
    kernel, _ = build_program(s.program, Target.host(1))
    np.testing.assert_array_equal(harness.run(kernel, data)[0], expected)
    if unroll:  # each row of each tile has its own code, or shares that of the rows inside
        text = emit_module(s.program, 256, 1).module.text()
        assert "icmp sle" not in text and text.count("select") == 0


def test_what_padding_multiplies_is_left_out() -> None:
    s = padded_rows(6, 3)
    s.decompose_reduction("y", "k")
    for name in ("i.0", "k", "i.1"):
        s.unroll(name)
    text = emit_module(s.program, 256, 1).module.text()
    assert text.count("call float @llvm.fma") == 3 * 6 - 2  # one at each end


def test_code_for_conditions_is_not_copied_without_end() -> None:
    x, w = te.placeholder((1, 16, 40, 40), name="x"), te.placeholder((16, 16, 3, 3), name="w", const=True)  # fmt: skip
    space = Space(Task(Workload.of(ops.conv2d(x, w, padding=1)), Target.host(1)))
    inline = [n for n, k in enumerate(space.sketches) if k.name.endswith("Y.pad.at=inline]")]
    assert len(inline) == 4
    rows = space.sample_rows(6000, np.random.default_rng(0))
    for n in inline:
        for row in rows[rows[:, 0] == n][:4]:
            text = emit_module(space.program(row), 512, 1).module.text()
            assert len(text) < 3_000_000

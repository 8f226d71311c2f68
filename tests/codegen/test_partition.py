"""Loops are cut where the extents inside stop being full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedule import workloads

from tilewright.codegen.emit import emit_module
from tilewright.codegen.partition import threshold
from tilewright.schedule.loops import find_loop
from tilewright.schedule.schedule import Schedule
from tilewright.tensor.expr import Var


def cut(s: Schedule, name: str, low: int, high: int) -> int:
    return threshold(find_loop(s.program, Var(name)).body, Var(name), low, high, {})


@given(st.integers(1, 60), st.integers(1, 20))
def test_the_cut_is_in_front_of_the_first_short_tile(extent: int, tile: int) -> None:
    s = Schedule(workloads.transpose(3, extent))
    s.split("i", [tile])
    tiles = -(-extent // tile)
    expected = tiles if extent % tile == 0 or tiles == 1 else extent // tile
    assert cut(s, "i.0", 0, tiles) == expected


def test_nothing_is_cut_where_no_extent_depends_on_the_loop() -> None:
    s = Schedule(workloads.transpose(9, 14))
    s.split("i", [4])
    assert cut(s, "i.1", 0, 4) == 4
    assert cut(s, "j", 0, 9) == 9


@pytest.mark.parametrize(("split", "n_bodies"), [([4], 2), ([7], 1), ([20], 1), ([4, 2], 2)])
def test_a_tiled_loop_becomes_full_tiles_and_a_remainder(split: list[int], n_bodies: int) -> None:
    s = Schedule(workloads.transpose(9, 14))
    s.split("i", split)
    text = emit_module(s.program, 256, 1).module.text()
    assert text.count("= fmul ") == n_bodies
    assert "llvm.smin" not in text and "select i1" not in text

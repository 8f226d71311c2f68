"""Candidates of the Winograd rule."""

from __future__ import annotations

import pytest
from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.schedule.sketch import drafts
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.ops.winograd import winograd_conv
from tilewright.tensor.te import Compute


def conv(m: int, x: tuple[int, ...], channels: int, *, pads: int = 1, depth: int = 0) -> Compute:
    kernel = (depth,) if depth else ()
    u = te.placeholder((m + 2, m + 2, *kernel, x[1], channels), name="u", const=True)
    return winograd_conv(te.placeholder(x, name="x"), u, m, padding=[(pads, pads)] * (len(x) - 2))


CASES: dict[str, Compute] = {
    "whole tiles": conv(4, (1, 16, 16, 16), 32),
    "rows and columns cut off": conv(4, (2, 5, 13, 11), 17),
    "small tiles, an epilogue": ops.elementwise(
        "relu", lambda v: te.maximum(v, 0.0), conv(2, (1, 7, 9, 10), 40)
    ),
    "an epilogue that reads twice": ops.elementwise(
        "swish", lambda v: v * te.sigmoid(v), conv(2, (1, 4, 8, 8), 16)
    ),
    "no padding": conv(2, (1, 3, 8, 9), 16, pads=0),
    "planes": conv(2, (2, 3, 4, 8, 9), 16, depth=3),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_candidates_compute_the_convolution(name: str, threads: int) -> None:
    workload = Workload.of(CASES[name])
    space = check_candidates(workload, "winograd[", Target.host(threads), most=6)
    names = {s.name for s in space.sketches}
    assert {"winograd[tiles=with_rows]", "winograd[tiles=first]"} <= names


def test_a_draft_is_one_of_the_rules_candidates() -> None:
    task = Task(Workload.of(conv(4, (1, 32, 24, 24), 32)), Target.host(1))
    assert "decompose_reduction" in str(drafts(task)[0])


def test_all_stages_of_some_rows_share_a_parallel_loop() -> None:
    task = Task(Workload.of(conv(2, (1, 16, 16, 16), 16)), Target.host(2))
    space = check_candidates(task.workload, "winograd[tiles=with_rows]", task.target, most=1)
    sketch = next(s for s in space.sketches if s.name == "winograd[tiles=with_rows]")
    text = str(sketch.program)
    assert text.count("# parallel") == 1
    assert "Y.product.local" in text and "# register" in text

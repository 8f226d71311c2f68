"""Multi-level tiling with panels packed where a tile begins."""

from __future__ import annotations

from tests.schedule.rules.sampled import check_candidates

from tilewright.codegen.target import Target
from tilewright.tensor import Workload, ops, te

TARGET = Target.host(2)


def test_panels_may_be_packed_where_a_tile_begins() -> None:
    a, b = te.placeholder((37, 53), name="a"), te.placeholder((53, 91), name="b")
    space = check_candidates(
        Workload.of(ops.matmul(a, b)), "tile[vector=j,order=vector_outer,pack.b=tile", TARGET
    )
    sketch = next(s for s in space.sketches if "pack.b=tile" in s.name)
    copying, _ = sketch.program.path("b.pack")
    reading, _ = sketch.program.path("C")
    assert copying[0] == reading[0] and [f.var.name for f in copying[1:]] == [
        "b.i0",
        "b.p1",
        "b.q1",
    ]

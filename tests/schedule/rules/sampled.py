"""Candidates of one rule, built and run against the reference."""

from __future__ import annotations

import numpy as np
from tests.codegen import harness

from tilewright.codegen.build import build
from tilewright.codegen.target import Target
from tilewright.measure.inputs import make_inputs
from tilewright.measure.tolerance import compare, tolerance
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task
from tilewright.tensor import Workload
from tilewright.tensor.evaluate import evaluate

__all__ = ["check_candidates"]


def check_candidates(
    workload: Workload, rule: str, target: Target, *, least: int = 4, most: int = 10
) -> Space:
    """Run some candidates of the sketches whose names start with `rule`; returns the space."""
    space = Space(Task(workload, target))
    chosen = [n for n, s in enumerate(space.sketches) if s.name.startswith(rule)]
    assert chosen, f"no sketch of {rule}: {space.refused}"
    rows = space.sample_rows(4000, np.random.default_rng(0))
    mine = rows[np.isin(rows[:, 0], chosen)]
    assert len(mine) >= least
    data = make_inputs(workload)
    expected = evaluate(workload, data, precision="double")
    for row in mine[:: max(1, len(mine) // most)]:
        found = harness.run(build(workload, space.trace(row), target), data)
        for a, b in zip(found, expected):
            problem = compare(a, b, tolerance(workload))
            assert problem is None, f"{space.row_ids(row)}: {problem}"
    return space

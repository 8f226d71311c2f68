from __future__ import annotations

import json

import pytest
from benchmarks.workloads import KINDS, MAX_BYTES, MAX_FLOPS, name_of, varied, workload

from tilewright.codegen.target import Target
from tilewright.schedule.space import Space
from tilewright.schedule.task import Task


def test_the_same_seed_gives_the_same_distinct_workloads() -> None:
    specs = varied(120, seed=3)
    assert specs == varied(120, seed=3) != varied(120, seed=4)
    assert varied(30, seed=3) == specs[:30]
    assert len({name_of(s) for s in specs}) == len({workload(s).key for s in specs}) == 120


def test_every_prefix_holds_all_kinds_alike() -> None:
    kinds = [s["kind"] for s in varied(5 * len(KINDS))]
    assert all(kinds.count(k) == 5 for k in KINDS)
    assert sorted(kinds[: len(KINDS)]) == sorted(KINDS)


def test_workloads_are_bounded_and_described_by_json() -> None:
    for spec in varied(110):
        again = json.loads(json.dumps(spec))
        w = workload(again)
        assert w.flops <= MAX_FLOPS and w.n_bytes <= MAX_BYTES
        assert w.key == workload(spec).key and w.name == name_of(spec)


@pytest.mark.parametrize("spec", varied(2 * len(KINDS)), ids=name_of)
def test_every_kind_has_a_space(spec: dict[str, object]) -> None:
    space = Space(Task(workload(spec), Target.host(1)))
    assert space.size() >= 2

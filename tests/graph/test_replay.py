"""Replaying what others found: transferred, stale, wrong and hostile schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.target import Target
from tilewright.errors import BuildError, RecordError
from tilewright.graph import replay
from tilewright.graph.replay import Proposal, build_guarded, choose_kernel
from tilewright.runtime.kernel import load
from tilewright.schedule.sketch import drafts
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Trace
from tilewright.tensor import Workload, te

TARGET = Target.host(1)


def matmul(n: int = 24, *, relu: bool = False) -> Workload:
    a, b = te.placeholder((n, 16), name="A"), te.placeholder((16, 20), name="B")
    k = te.reduce_axis(16, "k")
    c = te.compute((n, 20), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C")
    if relu:
        c = te.compute((n, 20), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return Workload.of(c, f"matmul[{n}x16x20,f32]" + "+relu" * relu)


def check_result(kernel: KernelObject, n: int = 24) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((n, 16), (16, 20)))
    np.testing.assert_allclose(load(kernel).run(a, b)[0], a @ b, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def other() -> Trace:
    return drafts(Task(matmul(48), TARGET))[0]


def test_a_transferred_schedule_is_used_and_its_source_named(
    other: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "BOUND", 100.0)  # so tiny a kernel says little about speed
    kernel, origin = choose_kernel(
        matmul(), TARGET, transfer=lambda w: [Proposal(other, "matmul[48x16x20,f32]")]
    )
    assert origin == "transferred (from matmul[48x16x20,f32])"
    check_result(kernel)


def test_a_transferred_schedule_that_is_predicted_to_be_slow_is_refused_with_the_bound() -> None:
    slow = Trace.from_json([["reorder", "k", "j", "i"]])
    kernel, origin = choose_kernel(matmul(), TARGET, transfer=lambda w: [Proposal(slow, "slow")])
    assert origin.startswith("draft (that of slow was refused: transfer: predicted to take ")
    assert "1.5 times the draft's" in origin
    check_result(kernel)


def test_the_workload_s_own_record_goes_first(other: Trace) -> None:
    own = drafts(Task(matmul(), TARGET))[1]
    _, origin = choose_kernel(
        matmul(), TARGET, lookup=lambda w: own, transfer=lambda w: pytest.fail("not needed")
    )
    assert origin == "tuned"


def test_a_record_that_cannot_be_read_is_reported() -> None:
    def unreadable(_: Workload) -> Trace:
        raise RecordError("from_json: 1.5 is no argument of a step")

    _, origin = choose_kernel(matmul(), TARGET, lookup=unreadable)
    assert origin == "draft (the record no longer applies: from_json: 1.5 is no argument of a step)"


def test_a_kernel_that_computes_wrongly_is_replaced_and_reported() -> None:
    own = drafts(Task(matmul(), TARGET))[0]
    answers = iter(["C: 3 elements differ", None])
    _, origin = choose_kernel(
        matmul(), TARGET, lookup=lambda w: own, check=lambda w, k: next(answers)
    )
    assert origin == "draft (the tuned schedule computes wrongly: C: 3 elements differ)"


def test_a_proposal_that_is_illegal_here_is_refused_and_the_next_one_tried(
    other: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "BOUND", 100.0)
    illegal = Trace.from_json([["split", "z", [4]]])
    offers = [Proposal(illegal, "one"), Proposal(other, "two")]
    _, origin = choose_kernel(matmul(), TARGET, transfer=lambda w: offers)
    assert origin.startswith("transferred (from two; that of one was refused: replay: step 0")


def test_no_kernel_is_given_when_all_are_wrong() -> None:
    with pytest.raises(
        BuildError,
        match="no schedule gives a correct kernel; the draft schedule .*; the default schedule computes wrongly: no",
    ):
        choose_kernel(matmul(), TARGET, check=lambda w, k: "no")


HOSTILE: list[list[list[Any]]] = [
    [["no_such_primitive", "i"]], [["__class__", "i"]], [["__init__", "i"]], [["apply", [["split", "i", [4]]]]], [["_record", "i"]],
    [["eval", "__import__('os').system('false')"]], [["split", "i.__class__.__mro__", [4]]], [["split", "{0.__class__}", [4]]],
    [["split", "i", [10**30]]], [["split", "i", [2**62, 2**62]]], [["split", "i", [0]]], [["split", "i", [-4]]], [["split", "i", [2] * 3000]],
    [["split", "i", [["x"]]]], [["split", "i", ["4"]]], [["split"]], [["split", 4, 4]], [["split", ["i"], [4]]],
    [["cache_read", "C", "A", [[0, 0]]]], [["cache_read", "C", "A", [[0, 10**20]]]], [["cache_read", "C", "A", [4]]],
    [["cache_read", "C", "A", [[0, 2**31], [1, 2**31]]]], [["set_scope", "C", "__class__"]], [["transform_layout", "C", ["a"]]],
    [["reorder", "i", [["k"]]]], [["compute_at", ["A"], "i"]], [["fuse"]], [["vectorize", ""]], [["unroll", "i", "j", "k"]],
    [["unroll", "i"]] * 5000, [["fuse", *["i"] * 1000]],
]  # fmt: skip


@pytest.mark.parametrize("steps", HOSTILE, ids=lambda s: str(s)[:40])
def test_a_hostile_trace_is_refused_with_a_reason_and_the_model_still_compiles(
    steps: list[list[Any]],
) -> None:
    trace = Trace.from_json(steps)
    kernel, origin = choose_kernel(matmul(), TARGET, lookup=lambda w: trace, draft=False)
    assert origin.startswith("default (the record no longer applies: ")
    assert len(origin) > len("default (the record no longer applies: )")
    check_result(kernel)


def test_code_out_of_proportion_is_refused() -> None:
    a = te.placeholder((4096, 64), name="A")
    w = Workload.of(
        te.compute((4096, 64), lambda i, j: te.exp(a[i, j]), name="B"), "exp[4096x64,f32]"
    )
    trace = Trace.from_json([["unroll", "i"], ["unroll", "j"]])
    with pytest.raises(
        Exception, match=r"the code would have some \d+ instructions, at most 50000"
    ):
        build_guarded(w, trace, TARGET)

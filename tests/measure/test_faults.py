"""Planted faults end as typed outcomes, and the next candidate is measured as usual."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator

import pytest

from tilewright.codegen.build import default_trace
from tilewright.codegen.target import Target
from tilewright.errors import MeasureError
from tilewright.measure import LocalPool, MeasureInput, MeasureResult, Pool, RayPool, Status
from tilewright.measure import ray_pool as ray_pool_module
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Step, Trace
from tilewright.tensor import Workload, te

BUILDER = "tests.measure.bad_builders:build"
A = te.placeholder((33,), name="A")  # 132 bytes: the guard band begins right behind
WORKLOAD = Workload.of(te.compute((33,), lambda i: A[i] * 2.0, name="B"), "double")
TASK = Task(WORKLOAD, Target.host(1))
GOOD = default_trace(WORKLOAD, TASK.target)

FAULTS: dict[str, tuple[Status, str]] = {
    "segv": (Status.RUN_CRASH, "signal SIGSEGV"),
    "loop": (Status.RUN_TIMEOUT, "ran over 1 s"),
    "exit": (Status.RUN_CRASH, "exit 0"),
    "abort": (Status.RUN_CRASH, "signal SIGABRT"),
    "far": (Status.RUN_CRASH, "signal SIGSEGV"),
    "beside": (Status.WRONG, "bytes beside the array were overwritten"),
    "nothing": (Status.WRONG, "33 of 33 elements are off"),
    "wrong": (Status.WRONG, "elements are off by more than"),
    "nan": (Status.WRONG, "33 of 33 elements are off"),
    "scratch": (Status.WRONG, "bytes beside the workspace or a packed buffer were overwritten"),
    "packed": (Status.WRONG, "bytes beside the workspace or a packed buffer were overwritten"),
    "unwritten": (Status.WRONG, "33 of 33 elements are off"),
    "later": (Status.WRONG, "after repeated runs: "),
    "input": (Status.RUN_CRASH, "signal SIGSEGV"),
    "stack": (Status.RUN_CRASH, "signal SIGSEGV"),
    "hog": (Status.RUN_CRASH, "signal SIGSEGV"),
    "memory": (Status.RUN_CRASH, "signal SIGSEGV"),
    "illegal": (Status.ILLEGAL, "the planted refusal"),
    "error": (Status.BUILD_ERROR, "the planted error"),
    "bug": (Status.BUILD_ERROR, "RuntimeError: a planted bug"),
    "build_abort": (Status.BUILD_CRASH, "signal SIGABRT"),
    "build_llvm": (Status.BUILD_CRASH, "LLVM ERROR: Cannot select"),
    "build_memory": (Status.BUILD_CRASH, "memory"),
    "build_hang": (Status.BUILD_TIMEOUT, "the build took over 2 s"),
}


def fault(name: str, number: int) -> MeasureInput:
    return MeasureInput(number, TASK, Trace((Step("fault", (name,)),)))


def good(number: int) -> MeasureInput:
    return MeasureInput(number, TASK, GOOD)


def is_measured(r: MeasureResult) -> bool:
    return (
        r.status is Status.OK
        and math.isfinite(r.value)
        and len(r.seconds) == len(r.reference_seconds) > 1
    )


class PoolContract:
    """What every pool does with good and bad candidates."""

    def test_a_workload_without_a_right_result_says_so(self, pool: Pool) -> None:
        y = te.compute((33,), lambda i: A[i + 1], name="C")  # reads past the end
        task = Task(Workload.of(y), TASK.target)
        found = pool.measure([MeasureInput(0, task, Trace(()))])[0]
        assert found.status is Status.LOST and "cannot be checked here" in found.message

    def test_each_fault_has_its_outcome_and_the_next_candidate_is_measured(
        self, pool: Pool
    ) -> None:
        inputs = []
        for n, name in enumerate(FAULTS):
            inputs += [fault(name, 2 * n), good(2 * n + 1)]
        results = pool.measure(inputs)
        assert [r.id for r in results] == [i.id for i in inputs]
        for n, (name, (status, message)) in enumerate(FAULTS.items()):
            assert results[2 * n].status is status, (name, results[2 * n])
            assert message in results[2 * n].message, (name, results[2 * n])
            assert results[2 * n].value == math.inf
            assert is_measured(results[2 * n + 1]), (name, results[2 * n + 1])

    def test_every_candidate_gets_exactly_one_result(self, pool: Pool) -> None:
        pool.submit([good(100), fault("wrong", 101), good(102)])
        assert pool.pending == 3
        found: list[int] = []
        while pool.pending:
            found += [r.id for r in pool.results(1.0)]
        assert sorted(found) == [100, 101, 102]
        assert pool.results(0.0) == []


@pytest.fixture(scope="module")
def local_pool() -> Iterator[LocalPool]:
    with LocalPool(1, run_timeout_s=1.0, build_timeout_s=2.0, builder=BUILDER) as pool:
        yield pool


@pytest.fixture(scope="module")
def ray_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayPool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with RayPool(n_builders=1, run_timeout_s=1.0, build_timeout_s=2.0, builder=BUILDER) as pool:
            yield pool
            folder = pool._folder
            assert folder is not None and os.path.isdir(folder)
        assert not os.path.exists(folder)


class TestLocalPool(PoolContract):
    @pytest.fixture
    def pool(self, local_pool: LocalPool) -> LocalPool:
        return local_pool

    def test_a_killed_helper_is_replaced_and_its_candidate_tried_again(
        self, pool: LocalPool
    ) -> None:
        for slot in pool.slots:
            os.kill(slot.worker.pid, signal.SIGKILL)
        assert all(is_measured(r) for r in pool.measure([good(1), good(2)]))

    def test_closing_ends_the_helpers(self) -> None:
        pool = LocalPool(1)
        pids = [s.worker.pid for s in pool.slots]
        pool.submit([good(0)])
        pool.close()
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
class TestRayPool(PoolContract):
    @pytest.fixture
    def pool(self, ray_pool: RayPool) -> RayPool:
        return ray_pool

    def test_a_killed_actor_is_replaced_and_its_candidate_tried_again(self, pool: RayPool) -> None:
        import ray

        pid = ray.get(pool.slots[0].worker.pid.remote())
        pool.submit([good(1), good(2)])
        os.kill(pid, signal.SIGKILL)
        found: list[MeasureResult] = []
        while pool.pending:
            found += pool.results(1.0)
        assert len(found) == 2 and all(is_measured(r) for r in found)

    def test_a_runner_holds_its_machine(self, pool: RayPool) -> None:
        import ray

        name = f"measure:{TASK.target.cpu}"
        assert ray.cluster_resources()[name] == 1  # type: ignore[no-untyped-call]
        with pytest.raises(MeasureError, match="a run worker did not start in 2 s") as error:
            RayPool(resource=name, n_builders=1)
        assert "GetTimeoutError" in str(error.value)

    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ray_pool_module, "START_S", 2.0)

    def test_a_resource_that_no_machine_offers_is_refused(self, pool: RayPool) -> None:
        with pytest.raises(MeasureError, match="the resource 'measure:none', the cluster offers 0"):
            RayPool(resource="measure:none")
        with pytest.raises(MeasureError, match=r"2 runner\(s\) need as much of the resource"):
            RayPool("auto", n_runners=2)

    def test_builders_for_which_there_are_no_cores_are_refused(self, pool: RayPool) -> None:
        with pytest.raises(MeasureError, match="a build worker did not start"):
            RayPool(n_builders=200, n_runners=1)
        assert is_measured(pool.measure([good(7)])[0])  # and the cluster is still there

    def test_workers_of_another_version_are_refused(
        self, pool: RayPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import tilewright

        monkeypatch.setattr(tilewright, "__version__", "0.0.1")
        monkeypatch.setattr(ray_pool_module, "START_S", 60.0)
        with pytest.raises(MeasureError, match=r"a worker runs tilewright .*, this is 0\.0\.1"):
            RayPool(n_builders=1)

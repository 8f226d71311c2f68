"""Helper processes: how they start, what they ignore, when they end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.codegen.build import default_trace
from tilewright.codegen.target import Target
from tilewright.errors import MeasureError
from tilewright.measure import LocalPool, MeasureInput, Status
from tilewright.measure import helper as helper_module
from tilewright.measure.helper import Helper
from tilewright.schedule.task import Task
from tilewright.tensor import Workload, te

A = te.placeholder((33,), name="A")
TASK = Task(
    Workload.of(te.compute((33,), lambda i: A[i] * 2.0, name="B"), "double"), Target.host(1)
)
GOOD = MeasureInput(0, TASK, default_trace(TASK.workload, TASK.target))


@pytest.fixture(params=["build", "run"])
def helper(request: pytest.FixtureRequest) -> Iterator[Helper]:
    found = Helper(request.param)
    yield found
    found.close()


def test_an_interrupt_does_not_end_a_helper_even_before_its_first_line(helper: Helper) -> None:
    os.kill(helper.pid, signal.SIGINT)
    helper.wait_ready()
    os.kill(helper.pid, signal.SIGINT)
    os.kill(helper.pid, 0)
    helper.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):  # an end of file would say that it has gone
        helper.receive()


def test_starting_a_helper_leaves_the_owner_interruptible(helper: Helper) -> None:
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_helper_ends_when_its_socket_closes(helper: Helper) -> None:
    helper.wait_ready()
    helper.socket.close()
    assert helper._process.wait(30) == 0


def test_a_helper_runs_its_numerical_libraries_on_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    found = Helper("run")
    found.wait_ready()
    assert len(list(Path(f"/proc/{found.pid}/task").iterdir())) == 1  # forks are safe
    found.close()


def test_a_helper_that_does_not_come_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(helper_module._MODULES, "build", "this")  # ends without a word to us
    found = Helper("build")
    with pytest.raises(MeasureError, match="the build helper did not start"):
        found.wait_ready()
    found.close()


def test_a_pool_made_in_a_thread_outlives_that_thread() -> None:
    pools: list[LocalPool] = []

    def make() -> None:
        pools.append(LocalPool(1))
        for slot in pools[0].slots:
            slot.worker.wait_ready()

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    with pools[0] as pool:
        before = [slot.worker.pid for slot in pool.slots]
        assert pool.measure([GOOD])[0].status is Status.OK
        assert [slot.worker.pid for slot in pool.slots] == before

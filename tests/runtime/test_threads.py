"""The thread pool: every index once, reuse, forks. Nothing here looks at the clock."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.codegen.compile import compile_text
from tilewright.codegen.target import Target
from tilewright.errors import TilewrightError
from tilewright.runtime import ThreadPool
from tilewright.runtime.link import Linked, link_object
from tilewright.runtime.threads import _PAUSE, _POOL, SPINS, _pool_code, pool_code

# context: i64 counters[n], then i64 owner[n]; each visit adds one and notes the thread
VISIT = """
define void @visit(ptr %counts, i64 %low, i64 %high, i64 %thread) {
entry:
  %np = getelementptr i64, ptr %counts, i64 -1
  %n = load i64, ptr %np
  br label %loop
loop:
  %i = phi i64 [%low, %entry], [%i1, %loop]
  %p = getelementptr i64, ptr %counts, i64 %i
  %v = load i64, ptr %p
  %v1 = add i64 %v, 1
  store i64 %v1, ptr %p
  %o = add i64 %n, %i
  %q = getelementptr i64, ptr %counts, i64 %o
  store i64 %thread, ptr %q
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %high
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@pytest.fixture(scope="module")
def visit() -> Linked:
    return link_object(compile_text(VISIT, Target.host(1))[0], ["visit"])


def run(pool: ThreadPool, visit: Linked, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Visits of each of n indices, and the threads that made them."""
    memory = np.zeros(1 + 2 * n, np.int64)
    memory[0] = n
    parallel_for = _FOR(pool_code()["tw_parallel_for"])
    parallel_for(pool.pointer, visit.addresses["visit"], memory.ctypes.data + 8, n)
    return memory[1 : 1 + n], memory[1 + n :]


def in_child(work: Callable[[], None]) -> int:
    """The exit status of a forked child that does the work."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_every_index_is_visited_once_and_shares_are_even(n_threads: int, visit: Linked) -> None:
    pool = ThreadPool(n_threads)
    for n in (0, 1, 2, 3, 4, 5, 7, 16, 31, 100, 1001):
        counts, owners = run(pool, visit, n)
        assert (counts == 1).all(), (n, counts)
        shares = np.bincount(owners, minlength=n_threads)
        assert len(shares) == n_threads and shares.max() - shares.min() <= 1
        assert (np.diff(owners) >= 0).all()  # contiguous
    pool.close()


def test_many_small_regions_in_a_row(visit: Linked) -> None:
    pool = ThreadPool(3)
    for k in range(2000):
        counts, _ = run(pool, visit, 1 + k % 7)
        assert (counts == 1).all()
    pool.close()


def test_workers_that_went_to_sleep_wake_up(visit: Linked) -> None:
    pool = ThreadPool(3)
    sleepers = ctypes.c_int32.from_address(pool.pointer + 256)
    for _ in range(5):
        for _ in range(100 * SPINS):  # give the workers the time to stop spinning
            if sleepers.value == 2:
                break
            os.sched_yield()
        counts, _ = run(pool, visit, 100)
        assert (counts == 1).all()
    pool.close()


def test_a_closed_pool_starts_again_when_it_is_used(visit: Linked) -> None:
    pool = ThreadPool(3)
    for _ in range(3):
        assert (run(pool, visit, 50)[0] == 1).all()
        pool.close()
        pool.close()


def test_a_pool_that_is_dropped_ends_its_threads(visit: Linked) -> None:
    def n_tasks() -> int:
        return len(os.listdir("/proc/self/task"))

    before = n_tasks()
    pool = ThreadPool(4)
    run(pool, visit, 10)
    assert n_tasks() == before + 3
    del pool
    gc.collect()
    assert n_tasks() == before


def test_pools_do_not_disturb_each_other(visit: Linked) -> None:
    pools = [ThreadPool(2), ThreadPool(3)]
    for _ in range(50):
        for pool in pools:
            assert (run(pool, visit, 20)[0] == 1).all()
    for pool in pools:
        pool.close()


def test_a_forked_child_has_threads_of_its_own(visit: Linked) -> None:
    pool = ThreadPool(3)
    run(pool, visit, 10)

    def work() -> None:
        for _ in range(20):
            assert (run(pool, visit, 50)[0] == 1).all()

        def deeper() -> None:
            assert (run(pool, visit, 50)[0] == 1).all()

        assert in_child(deeper) == 0
        pool.close()

    assert in_child(work) == 0
    assert (run(pool, visit, 50)[0] == 1).all()
    pool.close()


def test_the_lock_stays_the_same_when_the_threads_start() -> None:
    pool = ThreadPool(2)
    lock = pool.lock
    with lock:
        assert pool.pointer  # starts the threads
        assert pool.lock is lock
    pool.close()


def test_a_forked_child_can_lock_what_another_thread_held(visit: Linked) -> None:
    pool = ThreadPool(2)
    run(pool, visit, 10)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with pool.lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def work() -> None:
        assert pool.lock.acquire(timeout=5)
        assert (run(pool, visit, 10)[0] == 1).all()

    try:
        assert in_child(work) == 0
    finally:
        release.set()
        thread.join()
        pool.close()


@pytest.mark.parametrize("arch", _PAUSE)
def test_the_pool_compiles_for_every_architecture(arch: str) -> None:
    declare, pause, futex = _PAUSE[arch]
    text = _POOL.format(declare_pause=declare, pause=pause, futex=futex, spins=SPINS)
    target = replace(Target.host(1), triple=f"{arch}-unknown-linux-gnu", cpu="", features="")
    code, _ = compile_text(text, target)
    assert code[:4] == b"\x7fELF"
    assert int.from_bytes(code[18:20], "little") == {"x86_64": 62, "aarch64": 183}[arch]


def test_an_architecture_without_a_pool_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.runtime.threads._PAUSE", {})
    with pytest.raises(TilewrightError, match="ThreadPool: no thread pool for "):
        _pool_code.__wrapped__()  # past the cache, whose code is in use


def test_a_pool_needs_a_thread() -> None:
    with pytest.raises(TilewrightError, match=r"ThreadPool\(0\): needs 1 thread or more"):
        ThreadPool(0)


def _cores_of_threads() -> list[set[int]]:
    return [os.sched_getaffinity(int(name)) for name in os.listdir("/proc/self/task")]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
@pytest.mark.parametrize("pin", ["0", "1"])
def test_threads_are_bound_to_cores_of_their_own_unless_told_otherwise(
    pin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_PIN", pin)
    cores = os.sched_getaffinity(0)
    before = _cores_of_threads().count(cores)
    pool = ThreadPool(len(cores))
    assert pool.pointer
    bound = [c for c in _cores_of_threads() if len(c) == 1]
    if pin == "1":
        assert len(bound) >= len(cores) - 1 and _cores_of_threads().count(cores) == before
    else:
        assert _cores_of_threads().count(cores) == before + len(cores) - 1
    assert os.sched_getaffinity(0) == cores  # the caller stays free
    pool.bind_caller()
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    assert (len(mine) == 1 and mine not in bound) if pin == "1" else mine == cores
    pool.close()


def test_a_pool_of_more_threads_than_cores_leaves_them_free(visit: Linked) -> None:
    pool = ThreadPool(len(os.sched_getaffinity(0)) + 1)
    before = _cores_of_threads().count(os.sched_getaffinity(0))
    counts, _ = run(pool, visit, 64)
    assert (counts == 1).all()
    after = _cores_of_threads().count(os.sched_getaffinity(0))
    assert after == before + pool.n_threads - 1
    pool.close()

"""A fork-join thread pool, written as LLVM IR.

One region costs well under a microsecond while workers still spin, and some tens once they sleep
on a futex. Nothing but libc is needed. OpenMP runtimes are avoided on purpose: libgomp hangs after
a fork and slows tenfold beside any other process.

The struct that kernels get (offsets in bytes)::

    0 parallel_for  8 n_threads  64 generation (i32, futex)  128 done (i32)
    192 fn  200 context  208 n  256 sleepers (i32)  320 stop (i32)
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref
from typing import Any

from tilewright.codegen.compile import compile_text
from tilewright.codegen.target import Target
from tilewright.errors import TilewrightError
from tilewright.runtime.arena import aligned_bytes
from tilewright.runtime.link import Linked, link_object
from tilewright.settings import settings

__all__ = ["ThreadPool"]

SPINS = 4000
_POOL = """
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
{declare_pause}

define internal void @share(ptr %p, i64 %tid) nounwind {{
entry:
  %tp = getelementptr i8, ptr %p, i64 8
  %t = load i64, ptr %tp
  %fp = getelementptr i8, ptr %p, i64 192
  %fn = load ptr, ptr %fp
  %cp = getelementptr i8, ptr %p, i64 200
  %ctx = load ptr, ptr %cp
  %np = getelementptr i8, ptr %p, i64 208
  %n = load i64, ptr %np
  %a = mul i64 %n, %tid
  %lo = udiv i64 %a, %t
  %b = add i64 %a, %n
  %hi = udiv i64 %b, %t
  %some = icmp ult i64 %lo, %hi
  br i1 %some, label %run, label %out
run:
  call void %fn(ptr %ctx, i64 %lo, i64 %hi, i64 %tid)
  br label %out
out:
  ret void
}}

define internal ptr @worker(ptr %arg) nounwind {{
entry:
  %p = load ptr, ptr %arg
  %ip = getelementptr i8, ptr %arg, i64 8
  %tid = load i64, ptr %ip
  %gp0 = getelementptr i8, ptr %arg, i64 16
  %g0 = load i64, ptr %gp0
  %start = trunc i64 %g0 to i32
  %gen = getelementptr i8, ptr %p, i64 64
  %done = getelementptr i8, ptr %p, i64 128
  %sleepers = getelementptr i8, ptr %p, i64 256
  %stop = getelementptr i8, ptr %p, i64 320
  br label %next
next:
  %last = phi i32 [%start, %entry], [%g, %work]
  br label %look
look:
  %s = phi i32 [0, %next], [%s1, %spin], [0, %sleep]
  %g = load atomic i32, ptr %gen acquire, align 4
  %new = icmp ne i32 %g, %last
  br i1 %new, label %go, label %wait
wait:
  {pause}
  %s1 = add i32 %s, 1
  %more = icmp ult i32 %s1, {spins}
  br i1 %more, label %spin, label %sleep
spin:
  br label %look
sleep:
  %o1 = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %gen, i64 128, i32 %last, ptr null, ptr null, i64 0)
  %o2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %look
go:
  %end = load atomic i32, ptr %stop acquire, align 4
  %ended = icmp ne i32 %end, 0
  br i1 %ended, label %out, label %work
work:
  call void @share(ptr %p, i64 %tid)
  %o3 = atomicrmw add ptr %done, i32 1 acq_rel
  br label %next
out:
  ret ptr null
}}

define internal void @signal(ptr %p) nounwind {{
entry:
  %gen = getelementptr i8, ptr %p, i64 64
  %o = atomicrmw add ptr %gen, i32 1 seq_cst
  %sp = getelementptr i8, ptr %p, i64 256
  %sl = load atomic i32, ptr %sp seq_cst, align 4
  %any = icmp ne i32 %sl, 0
  br i1 %any, label %wake, label %out
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %gen, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  br label %out
out:
  ret void
}}

define void @tw_parallel_for(ptr %p, ptr %fn, ptr %ctx, i64 %n) nounwind {{
entry:
  %fp = getelementptr i8, ptr %p, i64 192
  store ptr %fn, ptr %fp
  %cp = getelementptr i8, ptr %p, i64 200
  store ptr %ctx, ptr %cp
  %np = getelementptr i8, ptr %p, i64 208
  store i64 %n, ptr %np
  %tp = getelementptr i8, ptr %p, i64 8
  %t = load i64, ptr %tp
  %t32 = trunc i64 %t to i32
  %others = sub i32 %t32, 1
  %done = getelementptr i8, ptr %p, i64 128
  store atomic i32 0, ptr %done release, align 4
  %alone = icmp eq i32 %others, 0
  br i1 %alone, label %mine, label %call
call:
  call void @signal(ptr %p)
  br label %mine
mine:
  call void @share(ptr %p, i64 0)
  br label %wait
wait:
  %s = phi i32 [0, %mine], [%s1, %spin], [0, %yield]
  %d = load atomic i32, ptr %done acquire, align 4
  %all = icmp eq i32 %d, %others
  br i1 %all, label %out, label %busy
busy:
  {pause}
  %s1 = add i32 %s, 1
  %more = icmp ult i32 %s1, {spins}
  br i1 %more, label %spin, label %yield
spin:
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
out:
  ret void
}}

define i64 @tw_pool_start(ptr %p, ptr %args, ptr %ids) nounwind {{
entry:
  store ptr @tw_parallel_for, ptr %p
  %tp = getelementptr i8, ptr %p, i64 8
  %t = load i64, ptr %tp
  %gen = getelementptr i8, ptr %p, i64 64
  %g = load i32, ptr %gen
  %g64 = zext i32 %g to i64
  br label %check
check:
  %i = phi i64 [1, %entry], [%i1, %made]
  %more = icmp ult i64 %i, %t
  br i1 %more, label %make, label %out
make:
  %off = mul i64 %i, 64
  %arg = getelementptr i8, ptr %args, i64 %off
  store ptr %p, ptr %arg
  %a1 = getelementptr i8, ptr %arg, i64 8
  store i64 %i, ptr %a1
  %a2 = getelementptr i8, ptr %arg, i64 16
  store i64 %g64, ptr %a2
  %id = getelementptr i64, ptr %ids, i64 %i
  %e = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr %arg)
  %bad = icmp ne i32 %e, 0
  br i1 %bad, label %out, label %made
made:
  %i1 = add i64 %i, 1
  br label %check
out:
  %got = phi i64 [%i, %check], [%i, %make]
  ret i64 %got
}}

define void @tw_pool_stop(ptr %p, ptr %ids) nounwind {{
entry:
  %stop = getelementptr i8, ptr %p, i64 320
  store atomic i32 1, ptr %stop release, align 4
  call void @signal(ptr %p)
  %tp = getelementptr i8, ptr %p, i64 8
  %t = load i64, ptr %tp
  br label %check
check:
  %i = phi i64 [1, %entry], [%i1, %join]
  %more = icmp ult i64 %i, %t
  br i1 %more, label %join, label %out
join:
  %ip = getelementptr i64, ptr %ids, i64 %i
  %id = load i64, ptr %ip
  %e = call i32 @pthread_join(i64 %id, ptr null)
  %i1 = add i64 %i, 1
  br label %check
out:
  ret void
}}

define void @tw_repeat(ptr %fn, ptr %args, ptr %workspace, ptr %runtime, i64 %n) nounwind {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  call void %fn(ptr %args, ptr %workspace, ptr %runtime)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}}

define void @tw_plan(ptr %calls, i64 %n, ptr %workspace, ptr %runtime) nounwind {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %off = mul i64 %i, 16
  %call = getelementptr i8, ptr %calls, i64 %off
  %fn = load ptr, ptr %call
  %ap = getelementptr i8, ptr %call, i64 8
  %args = load ptr, ptr %ap
  call void %fn(ptr %args, ptr %workspace, ptr %runtime)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}}
"""

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()", 202),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)", 98),
}


@functools.cache
def _pool_code() -> Linked:
    target = Target.host(1)
    arch = target.triple.split("-")[0]
    if arch not in _PAUSE:
        raise TilewrightError(
            f"ThreadPool: no thread pool for {arch}; use a target with one thread"
        )
    declare, pause, futex = _PAUSE[arch]
    text = _POOL.format(declare_pause=declare, pause=pause, futex=futex, spins=SPINS)
    code, _ = compile_text(text, target)
    names = ("tw_parallel_for", "tw_pool_start", "tw_pool_stop", "tw_repeat", "tw_plan")
    return link_object(code, names)


def pool_code() -> dict[str, int]:
    """Addresses of the pool's functions in this process, which stay valid until it ends."""
    return _pool_code().addresses


_pools: weakref.WeakSet[ThreadPool] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child: whoever held a lock at the fork is not there to give it back."""
    for pool in _pools:
        pool.lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)
_START = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_STOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class ThreadPool:
    """Threads that share the parallel loops of kernels.

    Parameters
    ----------
    n_threads : int
        Including the calling thread.

    Notes
    -----
    Kernels of one pool must not run at the same time; hold `lock` around a call. After a fork the
    threads are started again in the child, at the first use of `pointer`.

    Where there is a core for each, every thread but the caller's is bound to one, beginning beside
    the caller's core: left to itself, the scheduler of a virtual machine often wakes a thread on the
    core of the one that waits for it, which costs a tenth of a millisecond a loop until it notices.
    ``TILEWRIGHT_PIN=0`` in the environment leaves threads unbound.
    """

    def __init__(self, n_threads: int) -> None:
        if n_threads < 1:
            raise TilewrightError(f"ThreadPool({n_threads}): needs 1 thread or more")
        self.n_threads = n_threads
        self.lock = threading.Lock()
        self._pid = 0
        self._address = 0
        self._core: int | None = None
        self._finalizer: Any = None
        _pools.add(self)

    @property
    def pointer(self) -> int:
        """Address of the struct that kernels get as `runtime`."""
        if self._pid != os.getpid():
            self._start()
        return self._address

    def _start(self) -> None:
        addresses = pool_code()
        self._memory = aligned_bytes(512)
        self._address = int(self._memory.ctypes.data)
        self._args = aligned_bytes(64 * self.n_threads)
        self._ids = aligned_bytes(8 * self.n_threads)
        self._memory[8:16].view("int64")[0] = self.n_threads
        got = _START(addresses["tw_pool_start"])(
            self._memory.ctypes.data, self._args.ctypes.data, self._ids.ctypes.data
        )
        if got != self.n_threads:
            raise TilewrightError(
                f"ThreadPool({self.n_threads}): only {got} threads could be started"
            )
        if settings().pin:
            self._core = _spread([int(i) for i in self._ids.view("uint64")[1:]])
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(
            self, _stop, self._pid, addresses["tw_pool_stop"], self._memory, self._ids
        )

    def bind_caller(self) -> None:
        """Bind the calling thread too, to the core that the others left; for a process that only measures."""
        if self.pointer and self._core is not None:
            os.sched_setaffinity(0, {self._core})

    def close(self) -> None:
        """End the threads; the pool starts them again when it is used."""
        if self._finalizer is not None and self._pid == os.getpid():
            self._finalizer()
        self._pid = 0


def _spread(threads: list[int]) -> int | None:
    """Bind each thread (by its pthread id) to a core of its own, other than the caller's; return that.

    None if there are too few cores, or no way to bind.
    """
    libc = ctypes.CDLL(None)
    if not threads or not hasattr(libc, "pthread_setaffinity_np"):
        return None
    cores, here = sorted(os.sched_getaffinity(0)), int(libc.sched_getcpu())
    if len(threads) >= len(cores) or here not in cores:
        return None
    first = cores.index(here) + 1
    for n, thread in enumerate(threads):
        core = cores[(first + n) % len(cores)]
        mask = (1 << core).to_bytes(128, "little")
        libc.pthread_setaffinity_np(ctypes.c_ulong(thread), ctypes.c_size_t(len(mask)), mask)
    return here


def _stop(pid: int, address: int, memory: Any, ids: Any) -> None:
    if os.getpid() == pid:  # threads do not survive a fork
        _STOP(address)(memory.ctypes.data, ids.ctypes.data)

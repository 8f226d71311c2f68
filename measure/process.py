"""Disposable children: one forked process a piece of work, killed at its deadline."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.measure.wire import receive, send

__all__ = ["Ending", "bind_to_parent", "run_child"]

_PR_SET_PDEATHSIG = 1


def bind_to_parent() -> None:
    """Die when the parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Ending:
    """How a child ended: its last message if it sent one, else the reason it did not."""

    message: Any
    reason: str  # "", "timeout", "signal SIGSEGV", "exit 1", "memory"
    stderr: str


def run_child(
    work: Callable[[socket.socket], None],
    timeout_s: float,
    owner: socket.socket,
    *,
    memory_bytes: int = 4 << 30,
    on_message: Callable[[Any, socket.socket], Any] | None = None,
) -> Ending:
    """Fork, run `work` in the child, and wait for its final message.

    The child sends ``("step", x)`` for messages that `on_message` answers, ``("end", x)`` last.
    """
    mine, theirs = socket.socketpair()
    err_read, err_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _child(work, mine, theirs, owner, err_read, err_write, parent, timeout_s, memory_bytes)
    theirs.close()
    os.close(err_write)
    deadline = time.monotonic() + timeout_s
    message: Any = None
    reason = ""
    try:
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = (
                select.select([mine, owner], [], [], max(0.0, left)) if left > 0 else ([], [], [])
            )
            if not ready:
                reason = "timeout"
                break
            if owner in ready and not owner.recv(1, socket.MSG_PEEK):
                os.kill(pid, signal.SIGKILL)
                os._exit(0)
            if mine in ready:
                mine.settimeout(max(left, 0.001))  # it may hang in the middle of a message
                kind, content = receive(mine)
                if kind == "end":
                    message = content
                    break
                answer = on_message(content, mine) if on_message else None
                send(mine, answer)
    except TimeoutError:
        reason = "timeout"
    except (EOFError, ConnectionError):
        reason = "gone"
    os.kill(pid, signal.SIGKILL)  # one that is ending keeps its status; others may only seem gone
    _, status = os.waitpid(pid, 0)
    mine.close()
    os.set_blocking(err_read, False)
    try:
        stderr = os.read(err_read, 1 << 16).decode(errors="replace")[-400:].strip()
    except BlockingIOError:
        stderr = ""
    os.close(err_read)
    if reason == "gone":
        reason = _why(status)
    return Ending(message, reason, stderr)


def _why(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = {s.value: s.name for s in signal.Signals}
        return f"signal {known.get(number, number)}"  # real-time signals have no name
    code = os.WEXITSTATUS(status)
    return "memory" if code == 97 else f"exit {code}"


def _child(
    work: Callable[[socket.socket], None],
    mine: socket.socket,
    theirs: socket.socket,
    owner: socket.socket,
    err_read: int,
    err_write: int,
    parent: int,
    timeout_s: float,
    memory_bytes: int,
) -> None:
    """Never returns."""
    code = 98
    try:
        bind_to_parent()
        if os.getppid() != parent:
            os._exit(99)
        mine.close()
        owner.close()
        os.close(err_read)
        os.dup2(err_write, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))
        seconds = int(timeout_s) * (os.cpu_count() or 1) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        work(theirs)
        code = 0
    except MemoryError:
        code = 97
    except BaseException as error:  # the parent reports it; nothing may unwind past the fork
        os.write(2, f"{type(error).__name__}: {error}".encode()[:400])
    finally:
        os._exit(code)

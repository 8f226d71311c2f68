"""Disposable children: every ending has a reason, and nothing outlives its owner."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.measure.process import Ending, run_child
from tilewright.measure.wire import receive, send

Work = Callable[[socket.socket], None]


@pytest.fixture
def owner() -> Iterator[socket.socket]:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        yield theirs


def quiet(work: Work) -> Work:
    """The work without pytest's report of fatal signals."""

    def wrapped(sock: socket.socket) -> None:
        faulthandler.disable()
        work(sock)

    return wrapped


def die(number: int) -> Work:
    def work(_: socket.socket) -> None:
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)

    return quiet(work)


def hog(_: socket.socket) -> None:
    bytearray(1 << 40)


def fail(_: socket.socket) -> None:
    raise ValueError("a planted error")


def complain(_: socket.socket) -> None:
    os.write(2, b" words\n")


def spin(_: socket.socket) -> None:
    while True:
        pass


def sleep(_: socket.socket) -> None:
    time.sleep(3600)


def hang_up_and_linger(sock: socket.socket) -> None:
    sock.close()
    time.sleep(3600)


def stop_in_a_message(sock: socket.socket) -> None:
    sock.sendall(b"\xff\0\0\0\0\0\0\0 and no more")
    time.sleep(3600)


def say_and_linger(sock: socket.socket) -> None:
    send(sock, ("end", [1, 2]))
    time.sleep(3600)


ENDINGS: dict[str, tuple[Work, Ending]] = {
    "a message": (lambda s: send(s, ("end", {"x": 1})), Ending({"x": 1}, "", "")),
    "a message, then no end": (say_and_linger, Ending([1, 2], "", "")),
    "hanging up, then no end": (hang_up_and_linger, Ending(None, "signal SIGKILL", "")),
    "no message": (lambda _: None, Ending(None, "exit 0", "")),
    "_exit": (lambda _: os._exit(7), Ending(None, "exit 7", "")),
    "sys.exit": (lambda _: sys.exit(3), Ending(None, "exit 98", "SystemExit: 3")),
    "an exception": (fail, Ending(None, "exit 98", "ValueError: a planted error")),
    "words": (complain, Ending(None, "exit 0", "words")),
    "too much memory": (hog, Ending(None, "memory", "")),
    "a signal": (die(signal.SIGSEGV), Ending(None, "signal SIGSEGV", "")),
    "an abort": (quiet(lambda _: os.abort()), Ending(None, "signal SIGABRT", "")),
    "kill -9": (die(signal.SIGKILL), Ending(None, "signal SIGKILL", "")),
    "a signal without a name": (
        die(signal.SIGRTMIN + 3),
        Ending(None, f"signal {signal.SIGRTMIN + 3}", ""),
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_each_ending_has_its_reason(name: str, owner: socket.socket) -> None:
    work, expected = ENDINGS[name]
    assert run_child(work, 30.0, owner) == expected


@pytest.mark.parametrize("work", [spin, sleep, stop_in_a_message])
def test_work_that_takes_too_long_is_killed(work: Work, owner: socket.socket) -> None:
    assert run_child(work, 0.3, owner) == Ending(None, "timeout", "")


def test_steps_are_answered_in_order(owner: socket.socket) -> None:
    seen: list[Any] = []

    def work(sock: socket.socket) -> None:
        total = 0
        for n in range(5):
            send(sock, ("step", n))
            total += receive(sock)
        send(sock, ("end", total))

    def answer(step: Any, _: socket.socket) -> int:
        seen.append(step)
        return int(step) * 10

    assert run_child(work, 30.0, owner, on_message=answer).message == 100
    assert seen == [0, 1, 2, 3, 4]


def test_a_large_message_arrives_whole(owner: socket.socket) -> None:
    data = os.urandom(5_000_000)
    assert run_child(lambda s: send(s, ("end", data)), 30.0, owner).message == data


def test_what_the_child_does_stays_in_the_child(owner: socket.socket) -> None:
    state = [0]

    def work(sock: socket.socket) -> None:
        state[0] = 1
        send(sock, ("end", state[0]))

    assert run_child(work, 30.0, owner).message == 1
    assert state == [0]


def test_children_leave_neither_processes_nor_files_open(owner: socket.socket) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for work, _ in ENDINGS.values():
        run_child(work, 30.0, owner)
    assert set(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


SCRIPT = """
import os, socket, sys
sys.path[:] = {path!r}
from tilewright.measure.process import run_child

def work(_):
    print(os.getpid(), flush=True)
    while True:
        pass

run_child(work, 3600.0, socket.socket(fileno={fd}))
"""


@pytest.mark.parametrize("ending", ["the process is killed", "its owner goes"])
def test_the_child_never_outlives_its_owner(ending: str) -> None:
    mine, theirs = socket.socketpair()
    script = SCRIPT.format(path=sys.path, fd=theirs.fileno())
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert is_running(child)
        if ending == "the process is killed":
            process.kill()
        mine.close()
        process.wait(30)
        for _ in range(3000):
            if not is_running(child):
                break
            time.sleep(0.01)
        assert not is_running(child)

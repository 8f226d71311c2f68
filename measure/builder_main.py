"""The builder process: compiles candidates, each in a child that may crash or hang."""

from __future__ import annotations

import gc
import importlib
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from tilewright.errors import BuildError, ScheduleError
from tilewright.measure.outcome import Status
from tilewright.measure.process import bind_to_parent, run_child
from tilewright.measure.wire import receive, send

__all__ = ["main", "resolve_builder"]


def resolve_builder(name: str) -> Callable[..., Any]:
    """The function behind "module:function"."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _build(sock: socket.socket, request: dict[str, Any]) -> None:
    start = time.perf_counter()
    function = resolve_builder(request["builder"])
    try:
        kernel = function(request["workload"], request["trace"], request["target"])
    except ScheduleError as error:
        send(sock, ("end", {"status": Status.ILLEGAL, "message": str(error)}))
    except BuildError as error:
        send(sock, ("end", {"status": Status.BUILD_ERROR, "message": str(error)}))
    else:
        send(
            sock,
            (
                "end",
                {"status": Status.OK, "kernel": kernel, "build_s": time.perf_counter() - start},
            ),
        )


def main(fd: int, bound: bool) -> None:
    """Serve requests until the owner closes the socket."""
    sock = socket.socket(fileno=fd)
    if bound:
        bind_to_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm_up()
    gc.collect()
    gc.freeze()
    send(sock, "ready")
    while True:
        try:
            request = receive(sock)
        except (EOFError, ConnectionError):
            return
        start = time.perf_counter()
        ending = run_child(lambda s, r=request: _build(s, r), request["timeout_s"], sock)  # type: ignore[misc]
        answer = ending.message
        if answer is None:
            status = {"timeout": Status.BUILD_TIMEOUT, "exit 98": Status.BUILD_ERROR}.get(
                ending.reason, Status.BUILD_CRASH
            )
            text = (
                f"the build took over {request['timeout_s']:g} s"
                if ending.reason == "timeout"
                else ending.reason
            )
            answer = {"status": status, "message": ": ".join(x for x in (text, ending.stderr) if x)}
        answer.setdefault("build_s", time.perf_counter() - start)
        send(sock, answer)


def _warm_up() -> None:
    """Compile something, so that children start with LLVM loaded and its tables built."""
    from tilewright.codegen.build import build_default
    from tilewright.codegen.target import Target
    from tilewright.tensor import Workload, te

    a = te.placeholder((64,), name="a")
    build_default(Workload.of(te.compute((64,), lambda i: a[i] * 2.0, name="b")), Target.host(1))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "1")

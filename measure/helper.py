"""A builder or runner process and the socket to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

from tilewright.errors import MeasureError
from tilewright.measure.wire import receive, send

__all__ = ["Helper"]

_MODULES = {"build": "tilewright.measure.builder_main", "run": "tilewright.measure.runner_main"}
START_S = 120.0


class Helper:
    """A helper process, started at once, ready a little later; replaced with `restart`.

    Parameters
    ----------
    kind : {"build", "run"}
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._start()

    def _start(self) -> None:
        mine, theirs = socket.socketpair()
        env = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        # Linux ends a bound process with the thread that started it, so only the main thread binds;
        # the others' helpers end when the socket closes.
        bound = threading.current_thread() is threading.main_thread()
        command = [sys.executable, "-m", _MODULES[self.kind], str(theirs.fileno()), str(int(bound))]
        # Ctrl-C is for the owner; the mask is inherited, so it holds before the helper's first line.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=env
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self.socket = mine
        self._ready = False

    def wait_ready(self) -> None:
        """Wait until the process serves.

        Raises
        ------
        MeasureError
            If it does not come up.
        """
        if self._ready:
            return
        self.socket.settimeout(START_S)
        try:
            answer = receive(self.socket)
        except (EOFError, OSError) as error:
            raise MeasureError(
                f"the {self.kind} helper did not start ({error}); run `tilewright doctor`"
            ) from None
        if answer != "ready":
            raise MeasureError(f"the {self.kind} helper said {answer!r} instead of being ready")
        self.socket.settimeout(None)
        self._ready = True

    def send(self, request: dict[str, Any]) -> None:
        """Hand over a request; one at a time."""
        self.wait_ready()
        send(self.socket, request)

    def receive(self) -> Any:
        """The answer; EOFError if the process died."""
        return receive(self.socket)

    def call(self, request: dict[str, Any], grace_s: float) -> dict[str, Any] | None:
        """Send and wait; None if the process died or overran, after it has been replaced."""
        try:
            self.send(request)
            self.socket.settimeout(request["timeout_s"] + grace_s)
            answer: dict[str, Any] = self.receive()
            self.socket.settimeout(None)
            return answer
        except (EOFError, OSError):
            self.restart()
            return None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def restart(self) -> None:
        """Replace the process."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the process."""
        self.socket.close()
        self._process.kill()
        self._process.wait()

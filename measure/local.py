"""The pool of one machine: helper processes, no services."""

from __future__ import annotations

import os
import selectors
from typing import Any

from tilewright.codegen.target import Target
from tilewright.measure.helper import Helper
from tilewright.measure.pool import QueuedPool, Slot
from tilewright.measure.wire import DEFAULT_BUILDER

__all__ = ["LocalPool"]


class LocalPool(QueuedPool):
    """Builders and one runner as processes of this machine; the default.

    Parameters
    ----------
    n_builders : int, optional
        By default one a core.
    build_timeout_s, run_timeout_s : float
        Deadlines, counted from when the work starts.
    builder : str
        "module:function" that compiles (workload, trace, target) to a KernelObject.

    Examples
    --------
    ::

        with LocalPool() as pool:
            results = pool.measure([MeasureInput(0, task, space.trace(row))])
    """

    def __init__(
        self,
        n_builders: int | None = None,
        *,
        build_timeout_s: float = 20.0,
        run_timeout_s: float = 10.0,
        builder: str = DEFAULT_BUILDER,
    ) -> None:
        super().__init__(
            build_timeout_s=build_timeout_s, run_timeout_s=run_timeout_s, builder=builder
        )
        count = n_builders or len(os.sched_getaffinity(0))
        self.slots = [
            Slot("run", Helper("run")),
            *(Slot("build", Helper("build")) for _ in range(count)),
        ]

    def alone(self, target: Target) -> bool:
        return target.n_threads >= len(os.sched_getaffinity(0))

    def _send(self, slot: Slot, request: dict[str, Any]) -> None:
        slot.worker.send(request)

    def _wait(self, timeout_s: float) -> list[tuple[Slot, dict[str, Any] | None]]:
        with selectors.DefaultSelector() as selector:
            for slot in self.slots:
                if slot.job is not None:
                    selector.register(slot.worker.socket, selectors.EVENT_READ, slot)
            ready: list[Slot] = [key.data for key, _ in selector.select(timeout_s)]
        out: list[tuple[Slot, dict[str, Any] | None]] = []
        for slot in ready:
            try:
                out.append((slot, slot.worker.receive()))
            except (EOFError, OSError):
                out.append((slot, None))
        return out

    def _replace(self, slot: Slot) -> None:
        slot.worker.restart()

    def close(self) -> None:
        for slot in self.slots:
            slot.worker.close()
        self.slots = []
        self._to_build.clear()
        self._to_run.clear()

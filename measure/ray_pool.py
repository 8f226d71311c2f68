"""The pool of a Ray cluster: the same helper processes, inside actors.

Runner actors own their machine through a custom resource named after its CPU; builder actors take a
core each. Ray retries nothing: a worker that dies is replaced here and its candidate tried again.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import Any

from tilewright.codegen.target import Target
from tilewright.errors import MeasureError
from tilewright.measure.helper import Helper
from tilewright.measure.pool import QueuedPool, Slot
from tilewright.measure.wire import DEFAULT_BUILDER

__all__ = ["RayPool"]

GRACE_S = 30.0
START_S = 120.0
PROBE_S = 10.0


class _Worker:
    """What runs in an actor: one helper process."""

    def __init__(self, kind: str) -> None:
        self._helper = Helper(kind)

    def version(self) -> str:
        """The package's version there."""
        import tilewright

        return tilewright.__version__

    def pid(self) -> int:
        """The actor's process."""
        return os.getpid()

    def work(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Serve one request."""
        return self._helper.call(request, GRACE_S)


class RayPool(QueuedPool):
    """Builders and runners as Ray actors.

    Parameters
    ----------
    address : str, optional
        Of a running cluster. Without one, a Ray that this process has started is used, else a
        small local one is started, and stopped by `close`.
    n_builders, n_runners : int
        Actors of each kind; by default one builder for each core of this machine, if the cluster
        has as many.
    resource : str, optional
        The custom resource that a machine for runners offers and one runner holds; by default
        ``measure:<cpu>``, named after this machine's CPU. A Ray that this process has started
        need not offer it.

    Raises
    ------
    MeasureError
        If the cluster cannot be reached, offers too little of the resource or too few cores, or
        runs another version.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        n_builders: int | None = None,
        n_runners: int = 1,
        resource: str | None = None,
        build_timeout_s: float = 20.0,
        run_timeout_s: float = 10.0,
        builder: str = DEFAULT_BUILDER,
    ) -> None:
        super().__init__(
            build_timeout_s=build_timeout_s, run_timeout_s=run_timeout_s, builder=builder
        )
        import ray

        self._ray = ray
        self._folder: str | None = None  # of the Ray that was started here
        self._futures: dict[Any, Slot] = {}
        name = resource or f"measure:{Target.host(1).cpu}"
        self._connect(address, {name: n_runners})
        try:
            offered: dict[str, float] = dict(ray.cluster_resources())  # type: ignore[no-untyped-call]
            lent = not (address or resource or self._folder)  # a Ray of the caller's own
            self._resource = None if lent else name
            if not lent and offered.get(name, 0.0) < n_runners:
                have = sorted(k for k in offered if k.startswith("measure:"))
                raise MeasureError(
                    f"RayPool: {n_runners} runner(s) need as much of the resource {name!r}, the cluster "
                    f"offers {offered.get(name, 0.0):g} and {have}; start its measuring machines with "
                    f"--resources='{{\"{name}\": 1}}'"
                )
            cores = min(len(os.sched_getaffinity(0)), int(offered.get("CPU", 0.0)))
            kinds = ["run"] * n_runners + ["build"] * (n_builders or max(1, cores))
            self.slots = [Slot(k, self._actor(k)) for k in kinds]
            self._check_versions()
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str | None, resources: dict[str, int]) -> None:
        ray = self._ray
        if ray.is_initialized():
            return
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if address:
                _probe(address)
                ray.init(address=address, **quiet)
                return
            self._folder = tempfile.mkdtemp(prefix="tw", dir="/tmp")  # socket paths must be short
            ray.init(
                address="local",
                include_dashboard=False,
                resources=resources,
                num_cpus=len(os.sched_getaffinity(0)),
                object_store_memory=100_000_000,
                _temp_dir=self._folder,
                **quiet,
            )
        except (OSError, RuntimeError, ValueError) as error:
            self.close()
            raise MeasureError(
                f"RayPool: cannot reach Ray at {address or 'this machine'}: {error}"
            ) from None

    def _actor(self, kind: str) -> Any:
        options: dict[str, Any] = {"max_restarts": 0, "max_task_retries": 0}
        options["num_cpus"] = 1 if kind == "build" else 0
        if kind == "run" and self._resource:
            options["resources"] = {self._resource: 1}
        return self._ray.remote(**options)(_Worker).remote(kind)

    def _check_versions(self) -> None:
        import tilewright

        for slot in self.slots:
            try:
                found = self._ray.get(slot.worker.version.remote(), timeout=START_S)
            except self._ray.exceptions.RayError as error:
                raise MeasureError(
                    f"RayPool: a {slot.kind} worker did not start in {START_S:g} s, {len(self.slots)} are "
                    f"needed; free cores or ask for fewer builders ({type(error).__name__}: {error})"
                ) from None
            if found != tilewright.__version__:
                raise MeasureError(
                    f"RayPool: a worker runs tilewright {found}, this is {tilewright.__version__}; install the same on all nodes"
                )

    def _send(self, slot: Slot, request: dict[str, Any]) -> None:
        self._futures[slot.worker.work.remote(request)] = slot

    def _wait(self, timeout_s: float) -> list[tuple[Slot, dict[str, Any] | None]]:
        if not self._futures:
            return []
        done, _ = self._ray.wait(list(self._futures), num_returns=1, timeout=timeout_s)
        out: list[tuple[Slot, dict[str, Any] | None]] = []
        for future in done:
            slot = self._futures.pop(future)
            try:
                out.append((slot, self._ray.get(future)))
            except self._ray.exceptions.RayError:
                out.append((slot, None))
        return out

    def _replace(self, slot: Slot) -> None:
        for future in [f for f, s in self._futures.items() if s is slot]:
            del self._futures[future]
        self._ray.kill(slot.worker)
        slot.worker = self._actor(slot.kind)

    def close(self) -> None:
        for slot in self.slots:
            self._ray.kill(slot.worker)
        self.slots = []
        self._futures = {}
        self._to_build.clear()
        self._to_run.clear()
        if self._folder is not None:
            self._ray.shutdown()
            shutil.rmtree(self._folder, ignore_errors=True)  # Ray leaves its logs there
            self._folder = None


def _probe(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT: Ray itself tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S).close()

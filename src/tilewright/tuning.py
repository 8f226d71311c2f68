"""Tune a model, a workload or tasks: ties the graph, the tuner, the pools and the log together."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from tilewright.compiling import Model, default_target, fused_graph
from tilewright.errors import TilewrightError
from tilewright.schedule.task import Task
from tilewright.tensor import Workload

if TYPE_CHECKING:
    from tilewright.codegen.target import Target
    from tilewright.costmodel import CostModel
    from tilewright.measure import Pool
    from tilewright.records import RecordStore
    from tilewright.tuner import Searcher, Study

__all__ = ["Subject", "seconds_of", "tasks_of", "tune"]

Subject: TypeAlias = "Model | Workload | Task | Sequence[Workload | Task]"

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """Read a length of time.

    Examples
    --------
    >>> seconds_of("90"), seconds_of("1.5min")
    (90.0, 90.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    if not found or found[2] not in _UNITS or not float(found[1]):
        raise TilewrightError(f"{text!r} is no length of time; write 90s, 10min or 1.5h")
    return float(found[1]) * _UNITS[found[2]]


def tasks_of(
    subject: Subject,
    target: Target | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    winograd: bool = True,
) -> list[tuple[tuple[Task, ...], float]]:
    """The tasks of a model, workloads or tasks, and how often each runs in one call.

    Tasks in one tuple compute the same in different ways; the first is the plain one.
    """
    if isinstance(subject, Task):
        return [((subject,), 1.0)]
    hardware = target or default_target()
    if isinstance(subject, Workload):
        return [((Task(subject, hardware),), 1.0)]
    if isinstance(subject, Sequence) and not isinstance(subject, str):
        return [pair for item in subject for pair in tasks_of(item, hardware)]
    from tilewright.graph import extract_tasks

    graph = fused_graph(subject, shapes, winograd=winograd)
    return [(forms, float(count)) for forms, count in extract_tasks(graph, hardware)]


def tune(
    subject: Subject,
    *,
    trials: int = 300,
    budget: str | float | None = None,
    records: RecordStore | str | os.PathLike[str] = "records.jsonl",
    pool: Pool | str = "local",
    ray_address: str | None = None,
    target: Target | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    search: Searcher | None = None,
    model: CostModel | None = None,
    min_gain: float = 0.0,
    seed: int = 0,
    progress: bool = True,
    winograd: bool = True,
) -> Study:
    """Search for fast schedules, and log every trial.

    Running the same call again goes on from the log, up to the same number of trials.

    Parameters
    ----------
    subject : model, workload, task, or a sequence of the latter two
    trials : int
        In all, those in the log included.
    budget : str or float, optional
        Time, such as ``"10min"``, or seconds.
    records : RecordStore or path
        The log; created when missing.
    pool : {"local", "ray"} or Pool
        Where candidates are built and timed.
    ray_address : str, optional
        A Ray cluster, for ``pool="ray"``.
    target : Target, optional
        This machine by default.
    shapes : mapping, optional
        Shapes of inputs that are open in a model.
    search : Searcher, optional
        What proposes candidates; `Evolutionary` by default.
    model : CostModel, optional
        What it is guided by; gradient-boosted trees by default.
    min_gain : float
        End when the next trials are expected to save less than this share of the model's time, such as
        0.001. By default all trials are spent, unless nothing is left to gain.
    seed : int
        The same seed gives the same candidates.
    progress : bool
        Show progress on the terminal or in the notebook.
    winograd : bool
        Also tune convolutions in Winograd's form: up to three times faster, with rounding errors about
        ten times larger.

    Returns
    -------
    Study
        Its `table` has the result of every task, its `interrupted` says whether Ctrl-C ended it, its `stopped`
        why it ended before all trials were done.
    """
    from tilewright.records import RecordStore
    from tilewright.tuner import PlainProgress, RichProgress, Study

    tasks = tasks_of(subject, target, shapes, winograd=winograd)
    store = records if isinstance(records, RecordStore) else RecordStore(records)
    seconds = seconds_of(budget) if isinstance(budget, str) else budget
    with _opened(pool, ray_address) as workers:
        study = Study(
            tasks, store, workers, search=search, model=model, min_gain=min_gain, seed=seed
        )
        sink = None
        if progress:
            sink = RichProgress() if sys.stderr.isatty() else PlainProgress()
        return study.run(trials, budget_s=seconds, progress=sink)


@contextmanager
def _opened(pool: Pool | str, ray_address: str | None) -> Iterator[Pool]:
    """The pool of that name, closed afterwards; a pool that was passed in stays open."""
    from tilewright.measure import LocalPool, RayPool

    if not isinstance(pool, str):
        yield pool
    elif pool == "local":
        with LocalPool() as local:
            yield local
    elif pool == "ray":
        with RayPool(ray_address) as cluster:
            yield cluster
    else:
        raise TilewrightError(f"tune(pool={pool!r}): choose local or ray, or pass a pool")

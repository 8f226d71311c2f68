"""Schedules that were found elsewhere, replayed with care: nothing in a log may harm a compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from tilewright.codegen.build import build, build_default, build_program
from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.target import Target
from tilewright.errors import BuildError, RecordError, ScheduleError, TilewrightError
from tilewright.schedule.arrays import compile_exprs
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.sketch import drafts
from tilewright.schedule.task import Task
from tilewright.schedule.trace import Argument, Trace
from tilewright.tensor.workload import Workload

__all__ = ["Check", "Lookup", "Proposal", "Transfer", "choose_kernel"]

MAX_STEPS = 2000
MAX_ARGUMENTS = 64
MAX_NUMBER = 2**31
MAX_CODE = 50_000.0  # rules stop at 3,000 instructions
MAX_SCRATCH = 64  # bytes of scratch memory for each byte that the workload reads and writes ...
SCRATCH = 64 << 20  # ... and this much for small ones
BOUND = 1.5  # how much slower than the draft a transferred schedule may be predicted to be

# What replaying a trace that nobody vouches for may raise.
_REPLAY_ERRORS = (
    TilewrightError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proposal:
    """The schedule of another workload, offered for this one.

    Parameters
    ----------
    trace : Trace
    source : str
        Readable name of the workload it was tuned for.
    """

    trace: Trace
    source: str


Lookup: TypeAlias = "Callable[[Workload], Trace | None]"
Transfer: TypeAlias = "Callable[[Workload], Iterable[Proposal]]"
Check: TypeAlias = "Callable[[Workload, KernelObject], str | None]"
Kind: TypeAlias = Literal["tuned", "transferred", "draft", "default"]


def choose_kernel(
    workload: Workload,
    target: Target,
    *,
    lookup: Lookup | None = None,
    transfer: Transfer | None = None,
    check: Check | None = None,
    draft: bool = True,
) -> tuple[KernelObject, str]:
    """The kernel with the best schedule that is known, and where that came from.

    Tried in turn: the record of the workload; records of others, as far as they are legal here and the
    analytic model does not predict them to be more than `BOUND` times slower than the draft; the draft; the default.
    Whatever a record's trace holds, it is at worst refused, with the reason in the second result.

    Raises
    ------
    BuildError
        If not even the default schedule gives a correct kernel.
    """
    notes: list[str] = []
    tried: set[Trace] = set()
    for kind, note, make in _ways(workload, target, lookup, transfer, draft, notes, tried):
        try:
            kernel = make()
        except _REPLAY_ERRORS as error:
            if kind == "default" or (kind == "draft" and not isinstance(error, BuildError)):
                raise
            if kind in ("tuned", "transferred"):
                tuned = kind == "tuned"
                what = "the record no longer applies" if tuned else f"that of {note} was refused"
                notes.append(f"{what}: {_reason(error)}")
            continue
        wrong = check(workload, kernel) if check is not None else None
        if wrong is None:
            told = ([f"from {note}"] if kind == "transferred" else []) + notes
            return kernel, kind + (f" ({'; '.join(told)})" if told else "")
        notes.append(f"the {kind} schedule computes wrongly: {wrong}")
    raise BuildError(
        f"compile({workload.name}): no schedule gives a correct kernel; {'; '.join(notes)}"
    )


def _reason(error: Exception) -> str:
    text = str(error) or "no reason given"
    return text if isinstance(error, TilewrightError) else f"{type(error).__name__}: {text}"


def _ways(
    workload: Workload, target: Target, lookup: Lookup | None, transfer: Transfer | None, draft: bool,
    notes: list[str], tried: set[Trace],
) -> Iterator[tuple[Kind, str, Callable[[], KernelObject]]]:  # fmt: skip
    """Kinds of schedule, best first, each with what to say of it and how to build it."""
    try:
        trace = lookup(workload) if lookup is not None else None
    except RecordError as error:
        notes.append(f"the record no longer applies: {error}")
        trace = None
    if trace is not None:
        yield "tuned", "", partial(build_guarded, workload, trace, target)
    own = drafts(Task(workload, target)) if draft or transfer is not None else []
    proposals = list(transfer(workload)) if transfer is not None else []
    limit = _limit(workload, target, own) if proposals else 0.0
    for p in proposals:
        if p.trace not in tried:
            tried.add(p.trace)
            yield "transferred", p.source, partial(build_guarded, workload, p.trace, target, limit)
    for one in own if draft else ():
        yield "draft", "", partial(build, workload, one, target)
    yield "default", "", partial(build_default, workload, target)


def build_guarded(
    workload: Workload, trace: Trace, target: Target, limit: float = float("inf")
) -> KernelObject:
    """Build a trace that may be stale, foreign or hostile.

    Parameters
    ----------
    limit : float
        Most seconds that the analytic model may predict.

    Raises
    ------
    ScheduleError
        If it is illegal on this workload, out of proportion, or predicted to be slower than the limit.
    """
    _in_proportion(trace)
    schedule = Schedule(Task(workload, target))
    schedule.apply(trace)
    seconds, code = predicted(schedule)
    if not code <= MAX_CODE:
        raise ScheduleError(
            f"replay: the code would have some {code:.0f} instructions, at most {MAX_CODE:.0f} are built"
        )
    if not seconds <= limit:
        raise ScheduleError(
            f"transfer: predicted to take {seconds * 1e6:.3g} us, the limit is {limit * 1e6:.3g} us, {BOUND} times the draft's"
        )
    kernel, _ = build_program(schedule.program, target)
    scratch = kernel.workspace_bytes + sum(p.n_bytes for p in kernel.packed)
    if scratch > SCRATCH + MAX_SCRATCH * workload.n_bytes:
        raise ScheduleError(
            f"replay: the kernel needs {scratch} bytes of scratch memory, out of all proportion"
        )
    return kernel


def predicted(schedule: Schedule) -> tuple[float, float]:
    """Seconds and instructions that the analytic model predicts for a schedule without knobs."""
    features = schedule.features()
    values = compile_exprs([features.seconds, features.code_size], [])(np.ones((1, 0)))
    return float(values[0, 0]), float(values[0, 1])


def _limit(workload: Workload, target: Target, own: list[Trace]) -> float:
    if not own:
        return float("inf")
    schedule = Schedule(Task(workload, target))
    schedule.apply(own[0])
    return BOUND * predicted(schedule)[0]


def _in_proportion(trace: Trace) -> None:
    """Refuse traces so long, or with numbers so large, that replaying them would take forever."""
    if len(trace.steps) > MAX_STEPS:
        raise ScheduleError(f"replay: {len(trace.steps)} steps, at most {MAX_STEPS} are replayed")
    for n, step in enumerate(trace.steps):
        for arg in (step.args, *step.args):
            if isinstance(arg, tuple) and len(arg) > MAX_ARGUMENTS:
                raise ScheduleError(
                    f"replay: step {n}, {step.primitive}: {len(arg)} arguments, at most {MAX_ARGUMENTS} are replayed"
                )
        for number in _numbers(step.args):
            if not -MAX_NUMBER <= number <= MAX_NUMBER:
                raise ScheduleError(
                    f"replay: step {n}, {step.primitive}: a number of {number.bit_length()} bits, at most 31 are replayed"
                )


def _numbers(arg: Argument) -> Iterator[int]:
    if isinstance(arg, tuple):
        for a in arg:
            yield from _numbers(a)
    elif isinstance(arg, int):
        yield arg

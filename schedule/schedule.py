"""The builder on which primitives are called; it records the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import ScheduleError
from tilewright.schedule import hints, layouts, placement, reduction, staging, storage
from tilewright.schedule import loops as _loops
from tilewright.schedule.intrinsic import Intrinsic, as_intrinsic
from tilewright.schedule.knob import Knobs
from tilewright.schedule.lower import lower
from tilewright.schedule.program import Pragma, Program, Scope, Store, walk_stmts
from tilewright.schedule.task import Task
from tilewright.schedule.tensorize import tensorize
from tilewright.schedule.trace import Argument, Step, Trace
from tilewright.tensor.expr import Expr, Var, as_expr
from tilewright.tensor.workload import Workload

if TYPE_CHECKING:
    from tilewright.schedule.features import SketchFeatures

__all__ = ["Schedule"]

Loop: TypeAlias = "Var | str"


def _var(loop: Loop) -> Var:
    return loop if isinstance(loop, Var) else Var(loop)


class Schedule:
    """A program in the making.

    Parameters
    ----------
    workload : Workload or Task
        What to compute; a task also gives rules access to its target.
    knobs : Knobs, optional
        Open choices; a plain schedule has none.

    Examples
    --------
    >>> from tilewright.tensor import te, Workload
    >>> a = te.placeholder((10,), name="A")
    >>> s = Schedule(Workload.of(te.compute((10,), lambda i: a[i] * 2.0, name="C")))
    >>> outer, inner = s.split("i", [4])
    >>> s.vectorize(inner)
    >>> print(s.program)
    def kernel(A: float32[10], C: float32[10]):
        for i.0 in range(3):
            for i.1 in range(min(4, -i.0*4 + 10)):  # vectorized
                C[i.0*4 + i.1] = A[i.0*4 + i.1] * 2.0
    >>> print(s.trace)
    s.split('i', [4])
    s.vectorize('i.1')
    """

    def __init__(self, workload: Workload | Task, knobs: Knobs | None = None) -> None:
        self.task = workload if isinstance(workload, Task) else None
        self.workload = workload.workload if isinstance(workload, Task) else workload
        self.program: Program = lower(self.workload)
        self._steps: list[Step] = []
        self._knobs = knobs
        self._derived: tuple[Program, SketchFeatures] | None = None

    # ------------------------------------------------------------ looking

    @property
    def trace(self) -> Trace:
        """The steps taken so far."""
        return Trace(tuple(self._steps))

    @property
    def knob(self) -> Knobs:
        """Where a rule opens choices."""
        if self._knobs is None:
            raise ScheduleError(
                "knob: this schedule has no knobs; make a tw.Space of the rule instead"
            )
        return self._knobs

    def require(self, constraint: Expr) -> None:
        """Demand that a condition on knobs holds in every candidate."""
        self.knob.require(constraint)

    def loops(self, block: str) -> list[Var]:
        """The loops around a block, outermost first."""
        return [f.var for f in self.program.path(block)[0]]

    def spatial(self, block: str) -> list[Var]:
        """The loops of a block that it does not reduce over."""
        reduced = self.reduction(block)
        return [v for v in self.loops(block) if v not in reduced]

    def reduction(self, block: str) -> list[Var]:
        """The loops of a block that it reduces over."""
        return [f.var for f in _loops.reduction_loops(self.program, block)]

    def extent(self, loop: Loop) -> Expr:
        """The extent of a loop."""
        return _loops.find_loop(self.program, _var(loop)).extent

    def blocks(self) -> list[str]:
        """The blocks in program order."""
        return list(self.program.blocks())

    def consumers(self, buffer: str) -> list[str]:
        """The blocks that read a buffer, except its own."""
        from tilewright.schedule.nests import loads_of

        return [
            s.block
            for s in walk_stmts(self.program.body)
            if isinstance(s, Store) and s.buffer != buffer and loads_of(s.value, buffer)
        ]

    def features(self) -> SketchFeatures:
        """Feature expressions of the program so far (needs a target)."""
        from tilewright.schedule.features import sketch_features

        if self.task is None:
            raise ScheduleError(
                "registers_used(), code_size(): need a target; make the schedule of a Task"
            )
        if self._derived is None or self._derived[0] is not self.program:
            self._derived = (self.program, sketch_features(self.program, self.task.target))
        return self._derived[1]

    def registers_used(self) -> Expr:
        """Vector registers that the hottest block needs, as an expression of the knobs."""
        return self.features().registers

    def code_size(self) -> Expr:
        """Instructions in the bodies of all blocks, roughly, as an expression of the knobs."""
        return self.features().code_size

    # ---------------------------------------------------------- primitives

    def _record(self, primitive: str, *args: Argument) -> None:
        self._steps.append(Step(primitive, args))

    def split(self, loop: Loop, factors: Sequence[Expr | int]) -> tuple[Var, ...]:
        """See `tilewright.schedule.loops.split`."""
        sizes = tuple(as_expr(f) for f in factors)
        self.program, new = _loops.split(self.program, _var(loop), sizes)
        self._record("split", _var(loop).name, tuple(_number(f) for f in sizes))
        return new

    def fuse(self, *loops: Loop) -> Var:
        """See `tilewright.schedule.loops.fuse`; one loop alone is left as it is."""
        names = [_var(v) for v in loops]
        if len(names) == 1:
            return names[0]
        self.program, fused = _loops.fuse(self.program, names)
        self._record("fuse", *(v.name for v in names))
        return fused

    def reorder(self, *loops: Loop) -> None:
        """See `tilewright.schedule.loops.reorder`."""
        names = [_var(v) for v in loops]
        self.program = _loops.reorder(self.program, names)
        self._record("reorder", *(v.name for v in names))

    def vectorize(self, loop: Loop) -> None:
        """See `tilewright.schedule.loops.vectorize`."""
        self.program = _loops.vectorize(self.program, _var(loop))
        self._record("vectorize", _var(loop).name)

    def parallel(self, loop: Loop) -> None:
        """See `tilewright.schedule.loops.parallel`."""
        self.program = _loops.parallel(self.program, _var(loop))
        self._record("parallel", _var(loop).name)

    def unroll(self, loop: Loop) -> None:
        """See `tilewright.schedule.loops.unroll`."""
        self.program = _loops.unroll(self.program, _var(loop))
        self._record("unroll", _var(loop).name)

    def tensorize(
        self, lane: Loop, group: Loop, intrinsic: Intrinsic | Sequence[str | int]
    ) -> None:
        """See `tilewright.schedule.tensorize.tensorize`; traces describe the intrinsic by a list."""
        what = as_intrinsic(intrinsic)
        self.program = tensorize(self.program, _var(lane), _var(group), what)
        self._record("tensorize", _var(lane).name, _var(group).name, what.argument())

    def compute_at(self, block: str, loop: Loop) -> None:
        """See `tilewright.schedule.placement.compute_at`."""
        self.program = placement.compute_at(self.program, block, _var(loop))
        self._record("compute_at", block, _var(loop).name)

    def reverse_compute_at(self, block: str, loop: Loop) -> None:
        """See `tilewright.schedule.placement.reverse_compute_at`."""
        self.program = placement.reverse_compute_at(self.program, block, _var(loop))
        self._record("reverse_compute_at", block, _var(loop).name)

    def compute_inline(self, block: str) -> None:
        """See `tilewright.schedule.placement.compute_inline`."""
        self.program = placement.compute_inline(self.program, block)
        self._record("compute_inline", block)

    def cache_read(
        self,
        block: str,
        buffer: str,
        pack: Sequence[tuple[int, Expr | int]] = (),
        pad: bool | int = False,
    ) -> str:
        """See `tilewright.schedule.storage.cache_read`."""
        sizes = tuple((d, as_expr(f)) for d, f in pack)
        self.program, name = storage.cache_read(self.program, block, buffer, sizes, pad=bool(pad))
        panels = tuple((d, _number(f)) for d, f in sizes)
        self._record("cache_read", block, buffer, panels, *((1,) if pad else ()))
        return name

    def cache_write(self, block: str) -> str:
        """See `tilewright.schedule.storage.cache_write`."""
        self.program, name = storage.cache_write(self.program, block)
        self._record("cache_write", block)
        return name

    def set_scope(self, buffer: str, scope: Scope | str) -> None:
        """See `tilewright.schedule.storage.set_scope`."""
        try:
            where = Scope(scope)
        except ValueError:
            raise ScheduleError(
                f"set_scope({buffer}, {scope!r}): choose one of {[s.value for s in Scope]}"
            ) from None
        self.program = storage.set_scope(self.program, buffer, where)
        self._record("set_scope", buffer, where.value)

    def transform_layout(
        self, buffer: str, order: Sequence[int], splits: Sequence[tuple[int, Expr | int]] = ()
    ) -> None:
        """See `tilewright.schedule.layouts.transform_layout`."""
        sizes = tuple((d, as_expr(f)) for d, f in splits)
        self.program = layouts.transform_layout(self.program, buffer, tuple(order), splits=sizes)
        blocks = tuple((d, _number(f)) for d, f in sizes)
        self._record("transform_layout", buffer, tuple(order), *((blocks,) if blocks else ()))

    def storage_align(self, buffer: str, dimension: int, factor: int, offset: int) -> None:
        """See `tilewright.schedule.layouts.storage_align`."""
        self.program = layouts.storage_align(
            self.program, buffer, dimension, factor=factor, offset=offset
        )
        self._record("storage_align", buffer, dimension, factor, offset)

    def double_buffer(self, buffer: str) -> None:
        """See `tilewright.schedule.staging.double_buffer`."""
        self.program = staging.double_buffer(self.program, buffer)
        self._record("double_buffer", buffer)

    def decompose_reduction(self, block: str, loop: Loop) -> None:
        """See `tilewright.schedule.reduction.decompose_reduction`."""
        self.program = reduction.decompose_reduction(self.program, block, _var(loop))
        self._record("decompose_reduction", block, _var(loop).name)

    def rfactor(self, block: str, loop: Loop) -> str:
        """See `tilewright.schedule.reduction.rfactor`."""
        self.program, name = reduction.rfactor(self.program, block, _var(loop))
        self._record("rfactor", block, _var(loop).name)
        return name

    def prefetch(self, block: str, buffer: str, loop: Loop, distance: Expr | int) -> None:
        """See `tilewright.schedule.hints.prefetch`."""
        ahead = as_expr(distance)
        self.program = hints.prefetch(self.program, block, buffer, _var(loop), distance=ahead)
        self._record("prefetch", block, buffer, _var(loop).name, _number(ahead))

    def pragma(self, block: str, asked: Pragma | str) -> None:
        """See `tilewright.schedule.hints.pragma`."""
        try:
            found = Pragma(asked)
        except ValueError:
            raise ScheduleError(
                f"pragma({block}, {asked!r}): choose one of {[p.value for p in Pragma]}"
            ) from None
        self.program = hints.pragma(self.program, block, found)
        self._record("pragma", block, found.value)

    # -------------------------------------------------------------- replay

    def apply(self, trace: Trace) -> None:
        """Replay the steps of a trace.

        Raises
        ------
        ScheduleError
            If a step is unknown or illegal here; the message names it.
        """
        for n, step in enumerate(trace.steps):
            call = PRIMITIVES.get(step.primitive)
            if call is None:
                raise ScheduleError(
                    f"replay: step {n}, {step}: no such primitive; there are {sorted(PRIMITIVES)}"
                )
            try:
                call(self, *step.args)
            except ScheduleError as error:
                raise ScheduleError(f"replay: step {n}, {step}: {error}") from None
            except (TypeError, ValueError) as error:
                raise ScheduleError(
                    f"replay: step {n}, {step}: malformed arguments ({error})"
                ) from None


def _number(expr: Expr) -> Argument:
    from tilewright.tensor.expr import const_value

    value = const_value(expr)
    return expr if value is None else int(value)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    name: getattr(Schedule, name)
    for name in (
        "split", "fuse", "reorder", "vectorize", "parallel", "unroll", "tensorize", "compute_at", "reverse_compute_at",
        "compute_inline", "cache_read", "cache_write", "set_scope", "transform_layout", "decompose_reduction", "rfactor",
        "prefetch", "pragma", "storage_align", "double_buffer",
    )
}  # fmt: skip

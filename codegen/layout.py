"""Where each buffer of a program lives: parameter, packed, workspace, a thread's part of it, stack."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.ranges import bounds
from tilewright.errors import BuildError
from tilewright.schedule.nests import touches
from tilewright.schedule.program import Alignment, Buffer, For, LoopKind, Program, Role, Scope
from tilewright.tensor.dtype import DType

__all__ = ["SLACK", "Layout", "Place", "lay_out"]

SLACK = 512  # bytes behind each temporary and packed buffer that vector reads may touch


@dataclass(frozen=True)
class Place:
    """One buffer: element strides and where its memory starts."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    role: Role
    register: bool
    per_thread: bool
    offset: int  # bytes into the workspace (or into a thread's part of it)

    @property
    def size(self) -> int:
        """Elements, including what pads the rows of register tiles."""
        return self.strides[0] * self.shape[0] if self.shape else 1

    @property
    def dense(self) -> bool:
        """Whether nothing lies between elements."""
        return self.strides == _strides(self.shape)

    @property
    def padded(self) -> bool:
        """Whether vector reads may run past the end of a row."""
        return self.role not in (Role.INPUT, Role.CONST, Role.OUTPUT)


@dataclass(frozen=True)
class Layout:
    """All buffers of a program by name, and the workspace they need."""

    places: dict[str, Place]
    shared_bytes: int
    thread_bytes: int

    def total(self, n_threads: int) -> int:
        """Bytes of workspace for that many threads."""
        return self.shared_bytes + n_threads * self.thread_bytes


def _shape(buffer: Buffer) -> tuple[int, ...]:
    out = []
    for n in buffer.shape:
        high = bounds(n, {})[1]
        if high == float("inf"):
            raise BuildError(
                f"buffer {buffer.name}: the size {n} is not a number; choose all knobs first"
            )
        out.append(int(high))
    return tuple(out)


def _strides(shape: tuple[int, ...], alignment: tuple[Alignment, ...] = ()) -> tuple[int, ...]:
    wanted = {a.dimension: a for a in alignment}
    out: list[int] = []
    step = 1
    for d, n in reversed(list(enumerate(shape))):
        a = wanted.get(d)
        if a is not None:
            step += (a.offset - step) % a.factor
        out.insert(0, step)
        step *= n
    return tuple(out)


def lay_out(program: Program, vector_bits: int) -> Layout:
    """Give every buffer a place."""
    places: dict[str, Place] = {}
    shared = thread = 0
    for b in program.buffers:
        shape = _shape(b)
        register = b.scope is Scope.REGISTER
        padded = shape
        if register and shape:
            lanes = max(1, vector_bits // (8 * b.dtype.n_bytes))
            padded = (*shape[:-1], -(-shape[-1] // lanes) * lanes)
        strides = _strides(padded, b.alignment)
        per_thread = False
        offset = 0
        if register and sum(touches(s, b.name) for s in program.body) > 1:
            raise BuildError(
                f"buffer {b.name}: several nests use it, so it cannot stay in registers; "
                "move them into one loop, or leave it in memory"
            )
        if b.role is Role.TEMP and not register:
            size = strides[0] * padded[0] * b.dtype.n_bytes if shape else b.dtype.n_bytes
            size = -(-(size + SLACK) // 64) * 64
            per_thread = _inside_parallel(program, b.name)
            if per_thread:
                offset, thread = thread, thread + size
            else:
                offset, shared = shared, shared + size
        places[b.name] = Place(
            b.name,
            padded if register else shape,
            strides,
            b.dtype,
            b.role,
            register,
            per_thread,
            offset,
        )
    return Layout(places, shared, -(-thread // 4096) * 4096 if thread else 0)


def _inside_parallel(program: Program, name: str) -> bool:
    users = [s for s in program.body if touches(s, name)]
    return len(users) == 1 and isinstance(users[0], For) and users[0].kind is LoopKind.PARALLEL

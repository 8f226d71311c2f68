"""Random legal schedules: numbers to primitives, what is refused is skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from tests.schedule import workloads

from tilewright.errors import ScheduleError
from tilewright.schedule.intrinsic import Dot, Interleave
from tilewright.schedule.program import For, walk_stmts
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import DType, Workload, ops, te

__all__ = ["WORKLOADS", "Choice", "choices", "take"]

Choice = tuple[int, int, int, int]


def shared() -> Workload:
    """An intermediate of two readers, one of which drops a dimension."""
    x = te.placeholder((4, 3), name="X")
    e = te.compute((4, 3), lambda i, j: x[i, j] + 1.0, name="E")
    g = te.compute((4,), lambda i: e[i, 0] * 2.0, name="G")
    return Workload.of(te.compute((4, 3), lambda i, j: e[i, j] + g[i], name="Y"))


def window() -> Workload:
    """A reduction that overlapping windows read."""
    x = te.placeholder((8, 3), name="X")
    s = ops.reduce(x, "sum", [1], keepdims=False, name="S")
    k = te.reduce_axis(3, "k")
    return Workload.of(te.compute((6,), lambda i: te.max(s[i + k], k), name="Y"))


def at_load() -> Workload:
    """A product, and sums of its constant operand, which are computed at load time."""
    x = te.placeholder((3, 4), name="X")
    w = te.placeholder((4, 5), name="W", const=True)
    sums = ops.reduce(w, "sum", [0], name="S")
    total = ops.matmul(x, w, name="T")
    return Workload.of(te.compute((3, 5), lambda i, j: total[i, j] - sums[0, j], name="Y"))


WORKLOADS = {
    "matmul": workloads.matmul(3, 4, 5),
    "matmul_const": workloads.matmul(3, 4, 6, const=True, epilogue=False),
    "conv": workloads.conv(2, 2, 4, 3, 2),
    "softmax": workloads.softmax(2, 5),
    "matmul_bytes": workloads.bytes_matmul(3, 5, 4),
    "transpose": workloads.transpose(3, 5),
    "shared": shared(),
    "window": window(),
    "at_load": at_load(),
}

choices: st.SearchStrategy[list[Choice]] = st.lists(
    st.tuples(*[st.integers(0, 255)] * 3, st.integers(1, 5)), max_size=8
)


def _split(s: Schedule, a: str, _: str, n: int) -> object:
    return s.split(a, [n])


def _split_twice(s: Schedule, a: str, _: str, n: int) -> object:
    return s.split(a, [n, 2])


def _reorder(s: Schedule, a: str, b: str, _: int) -> None:
    s.reorder(a, b)


def _fuse(s: Schedule, a: str, b: str, _: int) -> object:
    return s.fuse(a, b)


def _tensorize(s: Schedule, block: str, _: str, n: int) -> None:
    """The two innermost loops of a block as a dot product, or as a copy that interleaves."""
    if len(s.loops(block)) < 2:
        raise ScheduleError(f"tensorize({block}): there are no two loops")
    lane, group = s.loops(block)[-2:]
    if s.program.blocks()[block].reduce:
        s.tensorize(lane, group, Dot(DType.UINT8, DType.INT8, DType.INT32, 4 if n % 2 else 2))
    else:
        s.tensorize(lane, group, Interleave(4 if n % 2 else 2))


def _prefetch(s: Schedule, buffer: str, block: str, n: int) -> None:
    loops = s.loops(block)
    if loops:
        s.prefetch(block, buffer, loops[n % len(loops)], n)


def _stage(s: Schedule, buffer: str, block: str, n: int) -> None:
    loops = s.loops(block)
    copy = s.cache_read(block, buffer)
    if loops:
        s.compute_at(copy, loops[n % len(loops)])
        s.double_buffer(copy)


LOOPS: tuple[Callable[[Schedule, str, str, int], object], ...] = (
    _split, _split_twice, _reorder, _fuse,
    lambda s, a, b, n: s.vectorize(a), lambda s, a, b, n: s.unroll(a), lambda s, a, b, n: s.parallel(a),
)  # fmt: skip
BLOCKS: tuple[Callable[[Schedule, str, str, int], object], ...] = (
    lambda s, block, loop, n: s.compute_at(block, loop),
    lambda s, block, loop, n: s.reverse_compute_at(block, loop),
    lambda s, block, loop, n: s.compute_inline(block),
    lambda s, block, loop, n: s.cache_write(block),
    lambda s, block, loop, n: s.decompose_reduction(block, loop),
    lambda s, block, loop, n: s.rfactor(block, loop),
    _tensorize,
    lambda s, block, loop, n: s.pragma(block, "nontemporal"),
)
BUFFERS: tuple[Callable[[Schedule, str, str, int], object], ...] = (
    lambda s, buffer, block, n: s.cache_read(block, buffer),
    lambda s, buffer, block, n: s.cache_read(block, buffer, [(0, n)]),
    lambda s, buffer, block, n: s.cache_read(block, buffer, [(1, n)]),
    lambda s, buffer, block, n: s.cache_read(block, buffer, [(1, n)], pad=True),
    lambda s, buffer, block, n: s.transform_layout(buffer, [1, 0]),
    lambda s, buffer, block, n: s.transform_layout(buffer, [0, 2, 1], [(0, n)]),
    lambda s, buffer, block, n: s.transform_layout(buffer, [1, 3, 0, 2], [(0, n), (1, 2)]),
    lambda s, buffer, block, n: s.set_scope(buffer, "register"),
    _prefetch,
    _stage,
    lambda s, buffer, block, n: s.double_buffer(buffer),
    lambda s, buffer, block, n: s.storage_align(buffer, 0, n + 2, n),
)


def _pick(items: Sequence[str], n: int) -> str:
    return items[n % len(items)]


def take(s: Schedule, drawn: Sequence[Choice]) -> int:
    """Apply the choices that are legal; return how many there were."""
    legal = 0
    for which, a, b, n in drawn:
        loops = [f.var.name for f in walk_stmts(s.program.body) if isinstance(f, For)]
        blocks, buffers = s.blocks(), [x.name for x in s.program.buffers]
        if not loops:
            return legal
        k = which % (len(LOOPS) + len(BLOCKS) + len(BUFFERS))
        try:
            if k < len(LOOPS):
                LOOPS[k](s, _pick(loops, a), _pick(loops, b), n)
            elif k < len(LOOPS) + len(BLOCKS):
                BLOCKS[k - len(LOOPS)](s, _pick(blocks, a), _pick(loops, b), n)
            else:
                BUFFERS[k - len(LOOPS) - len(BLOCKS)](s, _pick(buffers, a), _pick(blocks, b), n)
        except ScheduleError:
            continue
        legal += 1
    return legal

"""A program to the text of an LLVM module: entries, parallel regions, one function a nest."""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.irbuilder import FunctionBuilder, Module
from tilewright.codegen.kernel import Param
from tilewright.codegen.layout import Place, lay_out
from tilewright.codegen.nontemporal import finish_past_caches
from tilewright.codegen.ranges import resolve
from tilewright.codegen.state import State
from tilewright.codegen.statements import counted_loop, emit_body, emit_parts
from tilewright.errors import BuildError
from tilewright.schedule.loops import reduction_loops
from tilewright.schedule.nests import touches
from tilewright.schedule.program import (
    For,
    LoopKind,
    Program,
    Role,
    Stmt,
    Store,
    map_stmts,
    walk_stmts,
)
from tilewright.schedule.reduction import decompose_reduction
from tilewright.tensor.expr import Knob, walk

__all__ = ["Emitted", "emit_module"]

KERNEL, PREPACK = "tw_kernel", "tw_prepack"


class Emitted:
    """The text of a module and what its caller must provide."""

    def __init__(
        self, program: Program, vector_bits: int, n_threads: int, features: frozenset[str]
    ) -> None:
        self.program = explicit(program)
        self.layout = lay_out(self.program, vector_bits)
        self.vector_bits = vector_bits
        self.n_threads = n_threads
        self.module = Module(features)
        self._n = 0

    @property
    def params(self) -> tuple[Param, ...]:
        """The caller's arrays, inputs then outputs."""
        return tuple(self._param(b.name) for b in self.program.params)

    @property
    def packed(self) -> tuple[Param, ...]:
        """The buffers filled at load time."""
        return tuple(self._param(b.name) for b in self.program.buffers if b.role is Role.PACKED)

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory of one call."""
        return self.layout.total(self.n_threads)

    def _param(self, name: str) -> Param:
        place = self.layout.places[name]
        shape = place.shape if place.dense else (place.size,)
        return Param(name, shape, place.dtype, place.role)

    # ------------------------------------------------------------- entries

    def entry(self, symbol: str, nests: list[Stmt]) -> None:
        """A function that runs nests in order."""
        fb = FunctionBuilder(
            self.module, f"define void @{symbol}(ptr %args, ptr %workspace, ptr %runtime) nounwind"
        )
        pointers: dict[str, str] = {}
        for n, p in enumerate((*self.params, *self.packed)):
            slot = fb.value(f"getelementptr ptr, ptr %args, i64 {n}")
            pointers[p.name] = fb.value(f"load ptr, ptr {slot}, align 8")
        threads = fb.value(f"getelementptr i8, ptr %workspace, i64 {self.layout.shared_bytes}")
        for place in self.layout.places.values():
            if place.role is Role.TEMP and not place.register:
                base = threads if place.per_thread else "%workspace"
                pointers[place.name] = fb.value(f"getelementptr i8, ptr {base}, i64 {place.offset}")
        for nest in nests:
            self._nest(fb, nest, pointers, threads)
        fb.line("ret void")
        fb.finish()

    def _nest(
        self, fb: FunctionBuilder, nest: Stmt, pointers: dict[str, str], threads: str
    ) -> None:
        used = [p for p in self.layout.places.values() if not p.register and touches(nest, p.name)]
        self._n += 1
        name = f"nest{self._n}"
        shared = isinstance(nest, For) and nest.kind is LoopKind.PARALLEL
        arguments = ", ".join(f"ptr noalias {pointers[p.name]}" for p in used)
        if not shared:
            self._body(name, nest, used, shared=False)
            fb.line(f"call void @{name}({arguments})")
            return
        assert isinstance(nest, For)
        trips = resolve(nest.extent, {})
        if trips is None:
            raise BuildError(
                f"parallel loop {nest.var.name}: its extent {nest.extent} is not a number"
            )
        self._body(name, nest, used, shared=True)
        if self.n_threads == 1 or trips == 1:
            comma = ", " if arguments else ""
            fb.line(f"call void @{name}({arguments}{comma}i64 0, i64 {trips})")
            return
        self._share(name, used)
        context = fb.alloca(f"[{len(used) + 1} x ptr], align 8")
        for n, p in enumerate(used):
            slot = fb.value(f"getelementptr ptr, ptr {context}, i64 {n}")
            fb.line(f"store ptr {pointers[p.name]}, ptr {slot}, align 8")
        run = fb.value("load ptr, ptr %runtime, align 8")
        fb.line(f"call void {run}(ptr %runtime, ptr @{name}.share, ptr {context}, i64 {trips})")

    def _share(self, name: str, used: list[Place]) -> None:
        """What one thread calls: unpack the context, find the thread's own scratch."""
        fb = FunctionBuilder(
            self.module,
            f"define internal void @{name}.share(ptr %context, i64 %low, i64 %high, i64 %thread) nounwind",
        )
        arguments = []
        offset = fb.value(f"mul i64 %thread, {self.layout.thread_bytes}")
        for n, p in enumerate(used):
            slot = fb.value(f"getelementptr ptr, ptr %context, i64 {n}")
            pointer = fb.value(f"load ptr, ptr {slot}, align 8")
            if p.per_thread:
                pointer = fb.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            arguments.append(f"ptr noalias {pointer}, ")
        fb.line(f"call void @{name}({''.join(arguments)}i64 %low, i64 %high)")
        fb.line("ret void")
        fb.finish()

    def _body(self, name: str, nest: Stmt, used: list[Place], *, shared: bool) -> None:
        written = {s.buffer for s in walk_stmts((nest,)) if isinstance(s, Store)}
        params = [
            f"ptr noalias {'' if p.name in written else 'readonly '}%b{n}"
            for n, p in enumerate(used)
        ]
        if shared:
            params += ["i64 %low", "i64 %high"]
        fb = FunctionBuilder(
            self.module, f"define internal void @{name}({', '.join(params)}) nounwind noinline"
        )
        pointers = {p.name: f"%b{n}" for n, p in enumerate(used)}
        for p in self.layout.places.values():
            if p.register and touches(nest, p.name):
                ty = "i8" if p.dtype.value == "bool" else _element(p)
                pointers[p.name] = fb.alloca(f"[{p.size} x {ty}], align 64")
        st = State(fb, self.layout, self.vector_bits, pointers)
        if shared:
            assert isinstance(nest, For)
            trips = resolve(nest.extent, {}) or 1
            loop = nest
            counted_loop(
                st,
                loop.var,
                "%low",
                "%high",
                0,
                trips - 1,
                lambda: emit_parts(st, loop),
                guard=True,
            )
        else:
            emit_body(st, (nest,))
        finish_past_caches(fb)
        fb.line("ret void")
        fb.finish()


def _element(p: Place) -> str:
    from tilewright.codegen.irbuilder import llvm_type

    return llvm_type(p.dtype)


def explicit(program: Program) -> Program:
    """Give every reduction its initialisation as a block of its own."""
    for b in program.buffers:
        for n in b.shape:
            if any(isinstance(k, Knob) for k in walk(n)):
                raise BuildError(
                    f"emit: buffer {b.name} still depends on knobs; choose a row first"
                )
    for block, store in program.blocks().items():
        if store.init is None:
            continue
        reduced = reduction_loops(program, block)
        if reduced:
            program = decompose_reduction(program, block, reduced[0].var)
        else:

            def plain(s: Stmt, block: str = block) -> Stmt:
                if isinstance(s, Store) and s.block == block:
                    return replace(s, reduce=None, init=None)
                return s

            program = program.with_body(map_stmts(program.body, plain))
    return program


def emit_module(
    program: Program, vector_bits: int, n_threads: int, features: frozenset[str] = frozenset()
) -> Emitted:
    """Write a concrete program as LLVM assembly, with instructions of the target's `features` where they help."""
    out = Emitted(program, vector_bits, n_threads, features)
    packed = {b.name for b in out.program.buffers if b.role is Role.PACKED}

    def packs(nest: Stmt) -> bool:
        return any(isinstance(s, Store) and s.buffer in packed for s in walk_stmts((nest,)))

    nests = list(out.program.body)
    if packed:
        out.entry(PREPACK, [n for n in nests if packs(n)])
    out.entry(KERNEL, [n for n in nests if not packs(n)])
    return out

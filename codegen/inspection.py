"""What the machine code of a kernel does in its innermost loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.codegen.assembly import Function, functions_of, innermost_loops
from tilewright.codegen.compile import assembly
from tilewright.codegen.emit import emit_module
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.schedule.program import Program

__all__ = ["InnerLoop", "Inspection", "inspect_assembly", "inspect_kernel"]


@dataclass(frozen=True)
class InnerLoop:
    """Counts over the instructions of one loop that holds no other loop.

    Attributes
    ----------
    function, label : str
        Where it is in the assembly.
    instructions : int
    multiply_adds : int
        Of vectors: fused multiply-adds and dot products.
    vector_loads, vector_stores : int
        Instructions that read or write memory and a vector register; loads include operands in memory,
        and one element spread over all lanes.
    broadcasts : int
        Of these loads, those inside of an arithmetic instruction (AVX-512's ``{1to16}``).
    gathers : int
        Gathers and scatters.
    spills : int
        Of these loads and stores, those on the stack.
    reloads : int
        Reads and writes of the stack with other registers, such as addresses.
    calls : tuple of str
        Functions that it calls.
    """

    function: str
    label: str
    instructions: int
    multiply_adds: int
    vector_loads: int
    vector_stores: int
    broadcasts: int
    gathers: int
    spills: int
    reloads: int
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Inspection:
    """Innermost loops of a kernel, and the functions outside of it that it calls anywhere."""

    loops: tuple[InnerLoop, ...]
    library_calls: tuple[str, ...]
    assembly: str

    @property
    def spills(self) -> int:
        """Of all innermost loops together."""
        return sum(loop.spills for loop in self.loops)


@dataclass(frozen=True)
class _Syntax:
    """How instructions of an instruction set are told apart."""

    memory: re.Pattern[str]
    stack: re.Pattern[str]
    frame: re.Pattern[str]  # the stack by its frame pointer
    sets_frame: re.Pattern[str]
    vector: re.Pattern[str]
    multiply_add: re.Pattern[str]
    store: re.Pattern[str]
    gather: re.Pattern[str]
    call: re.Pattern[str]


_X86 = _Syntax(
    memory=re.compile(r"\([^)]*%[^)]*\)"),
    stack=re.compile(r"\(%rsp"),
    frame=re.compile(r"\(%rbp"),
    sets_frame=re.compile(r"movq %rsp, %rbp"),
    vector=re.compile(r"%[xyz]mm\d"),
    multiply_add=re.compile(r"vfn?m(add|sub|addsub|subadd)(132|213|231)p[sdh]|vpdp|vdp|vpmadd"),
    store=re.compile(r"v?p?(mov|extr|compress|cvtps2ph)\S* .*\)(\s*\{%k\d\})?$"),
    gather=re.compile(r"vp?(gather|scatter)"),
    call=re.compile(r"callq?\s+([^@*\s]+)"),  # not through a pointer, as for threads
)
_ARM = _Syntax(
    memory=re.compile(r"\[(x\d+|sp)"),
    stack=re.compile(r"\[sp"),
    frame=re.compile(r"\[x29"),
    sets_frame=re.compile(r"(mov|add) x29, sp"),
    vector=re.compile(r"\b[qvdsh]\d"),
    multiply_add=re.compile(r"fml[as]|ml[as] v|[su]dot|usdot|bfdot|bfmmla|[su]mmla"),
    store=re.compile(r"st"),
    gather=re.compile(r"(ld|st)1\S* \{\s*z.*\[(z|x\d+, z)"),
    call=re.compile(r"bl\s+(\S+)"),
)
_SYNTAX = {"x86_64": _X86, "aarch64": _ARM}


def inspect_kernel(program: Program, target: Target) -> Inspection:
    """Compile a program for a target, which need not be this machine, and read the assembly.

    Raises
    ------
    BuildError
        If it cannot be compiled, or the target's assembly is of a kind that is not known here.

    Examples
    --------
    >>> from tilewright.tensor import Workload, ops, te
    >>> from tilewright.schedule.lower import lower
    >>> a, b = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    >>> inspect_kernel(lower(Workload.of(ops.matmul(a, b))), Target.host(1)).library_calls
    ()
    """
    features = frozenset(target.features.split(","))
    module = emit_module(program, target.vector_bits, target.n_threads, features).module
    return inspect_assembly(assembly(module.text(), target), target.triple)


def inspect_assembly(text: str, triple: str) -> Inspection:
    """Read the assembly of a kernel.

    Raises
    ------
    BuildError
        If it is of a kind that is not known here.
    """
    arch = triple.split("-")[0].replace("arm64", "aarch64").replace("amd64", "x86_64")
    syntax = _SYNTAX.get(arch)
    if syntax is None:
        known = ", ".join(_SYNTAX)
        raise BuildError(f"inspect_assembly({triple}): cannot read this assembly; only {known}")
    functions = list(functions_of(text))
    own = {f.name for f in functions}
    loops: list[InnerLoop] = []
    called: set[str] = set()
    for f in functions:
        every = [i for b in f.blocks for i in b.instructions]
        called.update(_calls(every, syntax))
        stack = [syntax.stack]
        if any(syntax.sets_frame.match(i) for i in every):
            stack.append(syntax.frame)
        for blocks in innermost_loops(f):
            inside = [i for b in blocks for i in b.instructions]
            loops.append(_count(f, blocks[0].label, inside, syntax, stack))
    return Inspection(tuple(loops), tuple(sorted(called - own)), text)


def _count(
    f: Function, label: str, inside: list[str], syntax: _Syntax, stack: Sequence[re.Pattern[str]]
) -> InnerLoop:
    touching = [i for i in inside if syntax.memory.search(i) and not i.startswith("lea")]
    vectors = [i for i in touching if syntax.vector.search(i)]
    stores = [i for i in vectors if syntax.store.match(i)]
    on_stack = [i for i in touching if any(s.search(i) for s in stack)]
    spills = [i for i in on_stack if syntax.vector.search(i)]
    return InnerLoop(
        function=f.name,
        label=label,
        instructions=len(inside),
        multiply_adds=sum(bool(syntax.multiply_add.match(i)) for i in inside),
        vector_loads=len(vectors) - len(stores),
        vector_stores=len(stores),
        broadcasts=sum("{1to" in i for i in vectors),
        gathers=sum(bool(syntax.gather.match(i)) for i in inside),
        spills=len(spills),
        reloads=len(on_stack) - len(spills),
        calls=tuple(_calls(inside, syntax)),
    )


def _calls(instructions: list[str], syntax: _Syntax) -> list[str]:
    found = [syntax.call.match(i) for i in instructions]
    return [m[1] for m in found if m]

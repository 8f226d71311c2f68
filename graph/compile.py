"""From a fused graph and a source of schedules to a compiled model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codegen.kernel import KernelObject
from tilewright.codegen.target import Target
from tilewright.graph.fusion import FusedGraph, Group
from tilewright.graph.memory import plan_memory
from tilewright.graph.model import CompiledModel
from tilewright.graph.plan import Call, Input, Plan
from tilewright.graph.replay import Check, Lookup, Transfer, choose_kernel
from tilewright.schedule.task import Task

__all__ = ["Lookup", "compile_graph", "extract_tasks"]


def extract_tasks(fused: FusedGraph, target: Target) -> list[tuple[tuple[Task, ...], int]]:
    """The distinct tasks of a model, each followed by its alternatives, and how often one runs it."""
    return [(tuple(Task(w, target) for w in forms), n) for forms, n in fused.weights()]


def compile_graph(
    fused: FusedGraph,
    target: Target,
    lookup: Lookup | None = None,
    *,
    draft: bool = True,
    transfer: Transfer | None = None,
    check: Check | None = None,
) -> CompiledModel:
    """Compile every group and lay out memory.

    Parameters
    ----------
    fused : FusedGraph
    target : Target
    lookup : callable, optional
        From a workload to the trace to use, or None where nothing is known. A trace that is no
        longer legal is reported in the model's `report`.
    draft : bool
        Whether a kernel of which nothing is known gets the schedule that the draft model predicts to be
        fastest, rather than the plain default schedule.
    transfer : callable, optional
        From a workload without a record to schedules of others. Those are used that are legal and that the
        analytic model does not predict to be much slower than the draft; the report names their source.
    check : callable, optional
        From a workload and its kernel to what is wrong with it, or None. A kernel that fails is
        reported and replaced.

    Raises
    ------
    BuildError
        If a kernel cannot be compiled, or is wrong, even with its default schedule.
    """
    memory = plan_memory(fused)
    constants: dict[str, NDArray[Any]] = {}
    kernels: list[KernelObject] = []
    index: dict[str, tuple[int, str]] = {}
    calls: list[Call] = []

    def place(name: str) -> tuple[str, Any]:
        root = fused.root(name)
        if root in memory.offsets:
            return ("arena", memory.offsets[root])
        constants.setdefault(root, np.ascontiguousarray(fused.graph.constants[root]))
        return ("constant", root)

    for group in fused.groups:
        key = group.workload.key
        if key not in index:
            kernel, origin = choose_kernel(
                group.workload, target, lookup=lookup, transfer=transfer, check=check, draft=draft
            )
            index[key] = (len(kernels), origin)
            kernels.append(kernel)
        number, origin = index[key]
        calls.append(Call(number, _places(group, place), group.workload.name, origin))
    values = fused.graph.values
    inputs = tuple(Input(v.name, v.shape, str(v.dtype), place(v.name)) for v in fused.graph.inputs)
    outputs = tuple(
        Input(o, values[o].shape, str(values[o].dtype), place(o)) for o in fused.graph.outputs
    )
    plan = Plan(target, inputs, outputs, tuple(kernels), tuple(calls), constants, memory.n_bytes)
    return CompiledModel(plan)


def _places(group: Group, place: Callable[[str], tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    return (*(place(i) for i in group.inputs), place(group.output))

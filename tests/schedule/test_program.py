"""Programs: lookup, traversal, the first program of a workload, the interpreter's checks."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from tests.schedule import workloads

from tilewright.errors import ScheduleError
from tilewright.schedule.interpret import interpret
from tilewright.schedule.lower import lower
from tilewright.schedule.program import For, Program, Role, Store, map_stmts, walk_stmts
from tilewright.tensor import Workload, ops, te
from tilewright.tensor.dtype import DType
from tilewright.tensor.evaluate import evaluate
from tilewright.tensor.expr import Const, Knob, Var

MATMUL = lower(workloads.matmul(const=True))


def test_a_workload_becomes_one_nest_a_stage() -> None:
    assert str(lower(workloads.softmax())) == inspect.cleandoc("""
        def kernel(X: float32[3, 13], Y: float32[3, 13]):
            M = alloc(float32, [3])  # temp
            E = alloc(float32, [3, 13])  # temp
            S = alloc(float32, [3])  # temp
            for i in range(3):
                for k1 in range(13):
                    M[i] = max(M[i], X[i, k1])  # init -inf
            for E.i in range(3):
                for j in range(13):
                    E[E.i, j] = exp(X[E.i, j] - M[E.i])
            for S.i in range(3):
                for k2 in range(13):
                    S[S.i] += E[S.i, k2]  # init 0.0
            for Y.i in range(3):
                for Y.j in range(13):
                    Y[Y.i, Y.j] = E[Y.i, Y.j] / S[Y.i]
        """)


def test_buffers_have_roles_and_parameters_their_order() -> None:
    roles = {b.name: b.role for b in MATMUL.buffers}
    assert roles == {"A": Role.INPUT, "B": Role.CONST, "D": Role.OUTPUT, "C": Role.TEMP}
    assert [b.name for b in MATMUL.params] == ["A", "B", "D"]


def test_scalars_have_no_loops() -> None:
    program = lower(Workload.of(ops.elementwise("y", te.exp, te.placeholder((), name="x"))))
    assert str(program).splitlines()[1:] == ["    y[] = exp(x[])"]


def test_paths_lead_from_the_outermost_loop_to_the_store() -> None:
    loops, store = MATMUL.path("C")
    assert [f.var.name for f in loops] == ["i", "j", "k"]
    assert store is MATMUL.blocks()["C"]


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ScheduleError) as error:
        MATMUL.buffer("Q")
    assert str(error.value) == "buffer('Q'): no such buffer; there are ['A', 'B', 'D', 'C']"
    with pytest.raises(ScheduleError) as error:
        MATMUL.path("Q")
    assert str(error.value) == "block('Q'): no such block; there are ['C', 'D']"


def test_statements_are_walked_parents_first_and_rebuilt_bottom_up() -> None:
    names = [s.var.name if isinstance(s, For) else s.block for s in walk_stmts(MATMUL.body)]
    assert names == ["i", "j", "k", "C", "D.i", "D.j", "D"]
    assert map_stmts(MATMUL.body, lambda s: s) == MATMUL.body
    twice = map_stmts(MATMUL.body, lambda s: (s, s) if isinstance(s, Store) else s)
    assert sum(isinstance(s, Store) for s in walk_stmts(twice)) == 4
    assert map_stmts(MATMUL.body, lambda s: () if isinstance(s, For) else s) == ()


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_identities_leave_every_value_alone(op: str, dtype: DType) -> None:
    if dtype is DType.BOOL and op in ("sum", "prod"):
        return
    neutral = dtype.numpy.type(te.identity(op, dtype).value)
    f = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    for value in (0, 1, 100):
        x = dtype.numpy.type(value)
        assert f(neutral, x) == x


@pytest.mark.parametrize(
    "workload",
    [workloads.matmul(), workloads.conv(), workloads.softmax(), workloads.transpose()],
)
def test_the_first_program_computes_the_workload(workload: Workload) -> None:
    data = workloads.arrays(workload)
    found, expected = interpret(lower(workload), data), evaluate(workload, data)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)


def test_the_interpreter_refuses_an_index_outside() -> None:
    x = Const(9)
    body = map_stmts(
        MATMUL.body, lambda s: replace(s, indices=(x, x)) if isinstance(s, Store) else s
    )
    with pytest.raises(ScheduleError) as error:
        interpret(MATMUL.with_body(body), workloads.arrays(workloads.matmul()))
    assert str(error.value) == "interpret: C[9, 9] is outside of its shape [7, 11]"


def test_the_interpreter_shows_what_is_read_before_it_is_written() -> None:
    swapped = Program(MATMUL.buffers, MATMUL.body[::-1])
    found = interpret(swapped, workloads.arrays(workloads.matmul()))
    assert np.isnan(found[0]).all()


def test_the_interpreter_refuses_open_knobs() -> None:
    body = (For(Var("i"), Knob("t"), MATMUL.body),)
    with pytest.raises(ScheduleError, match=r"interpret: the program holds the open knob t"):
        interpret(MATMUL.with_body(body), workloads.arrays(workloads.matmul()))

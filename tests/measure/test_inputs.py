from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.schedule.workloads import matmul, softmax

from tilewright.measure.inputs import make_inputs
from tilewright.tensor import Workload, te
from tilewright.tensor.expr import Expr


def gather(n: int, rows: int = 1000) -> Workload:
    table = te.placeholder((n, 3), name="T")
    index = te.placeholder((rows,), "int64", name="I")
    return Workload.of(te.compute((rows, 3), lambda i, j: table[index[i], j], name="G"))


def test_shapes_and_types_are_those_of_the_workload() -> None:
    x = te.placeholder((3, 4), "float64", name="X")
    y = te.placeholder((), "int8", name="Y")
    z = te.placeholder((4,), "bool", name="Z")
    out = te.compute(
        (3, 4),
        lambda i, j: te.select(z[j], x[i, j], te.cast(y[()], "float64")),
        name="O",
    )
    workload = Workload.of(out)
    found = make_inputs(workload)
    assert [(a.shape, a.dtype) for a in found] == [
        (p.shape, p.dtype.numpy) for p in workload.inputs
    ]


def test_equal_workloads_get_equal_data_and_others_do_not() -> None:
    one, two, other = (make_inputs(w) for w in (matmul(), matmul(), matmul(epilogue=False)))
    assert all((a == b).all() for a, b in zip(one, two))
    assert not (one[0] == other[0]).all()


def test_another_process_makes_the_same_data() -> None:
    code = (
        "from tests.schedule.workloads import softmax\n"
        "from tilewright.measure.inputs import make_inputs\n"
        "print(float(make_inputs(softmax())[0].sum()).hex())"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == float(make_inputs(softmax())[0].sum()).hex()


def test_floats_are_finite_of_both_signs_and_moderate() -> None:
    (x,) = make_inputs(softmax(40, 50))
    assert np.isfinite(x).all() and x.min() < 0 < x.max()
    assert abs(x.mean()) < 0.1 and 0.4 < x.std() < 0.6


@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_integers_that_index_stay_inside_and_reach_everything(n: int) -> None:
    workload = gather(n)
    (index,) = (a for p, a in zip(workload.inputs, make_inputs(workload)) if p.dtype.is_int)
    assert index.min() == 0 and index.max() < n
    assert len(np.unique(index)) > 0.9 * n


def test_an_index_into_two_tensors_stays_inside_the_smaller() -> None:
    small, large = te.placeholder((3,), name="S"), te.placeholder((50,), name="L")
    index = te.placeholder((400,), "int32", name="I")

    def at(i: Expr) -> Expr:
        return te.cast(index[i], "int64")

    workload = Workload.of(te.compute((400,), lambda i: large[at(i)] + small[at(i)], name="O"))
    (values,) = (a for p, a in zip(workload.inputs, make_inputs(workload)) if p.dtype.is_int)
    assert set(np.unique(values)) == {0, 1, 2}


def test_flags_are_of_both_values() -> None:
    z = te.placeholder((100,), "bool", name="Z")
    workload = Workload.of(te.compute((100,), lambda i: te.select(z[i], 1.0, 2.0), name="O"))
    (flags,) = make_inputs(workload)
    assert flags.dtype == np.bool_ and 20 < flags.sum() < 80

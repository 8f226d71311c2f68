"""Every operator agrees with the reference evaluator: random configurations, candidates of all sketches."""

from __future__ import annotations

import pytest
from tests.operators.agreement import disagreements
from tests.operators.cases import OPERATORS
from tests.operators.draws import Draw

from tilewright.codegen.target import Target
from tilewright.tensor import Workload, ops

COSTLY = ("conv", "conv_transpose", "pool")  # to compile
QUICK = [(name, seed) for name in OPERATORS for seed in range(2 if name in COSTLY else 5)]
MANY = range(5, 45)


def check(name: str, seed: int, n_sketches: int) -> None:
    d = Draw([seed, list(OPERATORS).index(name)])
    workload = Workload.of(OPERATORS[name](d), name)
    target = Target.host(1 + seed % 2)
    wrong = [
        f"{label}: {problem}\n{trace}"
        for label, trace, problem in disagreements(workload, target, n_sketches, d.rng)
        if problem
    ]
    assert not wrong, "\n".join([str(workload), *wrong])


def test_every_operator_of_the_library_has_cases() -> None:
    same = {
        "conv2d": "conv", "layer_norm": "norm", "rms_norm": "norm", "log_softmax": "softmax", "slice_": "slice",
    }  # fmt: skip
    functions = set(ops.__all__) - {"broadcast_shape"}
    assert {same.get(f, f) for f in functions} == set(OPERATORS) - {"cast"}


@pytest.mark.parametrize(("name", "seed"), QUICK)
def test_kernels_of_random_configurations_agree(name: str, seed: int) -> None:
    check(name, seed, 3 if name not in COSTLY else 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_of_many_random_configurations_agree(name: str, seed: int) -> None:
    check(name, seed, 5)

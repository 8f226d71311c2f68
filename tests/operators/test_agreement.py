"""Every operator agrees with the reference evaluator: random configurations, candidates of all sketches."""

from __future__ import annotations

import zlib

import pytest
from tests.operators import cases, nodes
from tests.operators.agreement import disagreements
from tests.operators.draws import Draw
from tests.operators.targets import TARGETS

from tilewright.tensor import Workload, ops

CASES = {**cases.OPERATORS, **nodes.NODES}
COSTLY = ("conv", "conv_transpose", "pool", "resize", "lrn")  # to compile
QUICK = [
    (name, seed)
    for name in CASES
    for seed in range(4 if name in cases.OPERATORS and name not in COSTLY else 1)
]
MANY = range(4, 36)


def check(name: str, seed: int, n_sketches: int) -> None:
    number = zlib.crc32(name.encode())  # so that a new operator leaves the others' cases alone
    d = Draw([seed, number])
    workload = Workload.of(CASES[name](d), name)
    target = TARGETS[(seed + number) % len(TARGETS)]
    wrong = [
        f"{label}: {problem}\n{trace}"
        for label, trace, problem in disagreements(workload, target, n_sketches, d.rng)
        if problem
    ]
    assert not wrong, "\n".join([str(workload), target.fingerprint, *wrong])


def test_every_operator_of_the_library_has_cases() -> None:
    same = {
        "conv2d": "conv", "layer_norm": "norm", "rms_norm": "norm", "log_softmax": "softmax", "slice_": "slice", "padded": "conv",
    }  # fmt: skip
    functions = set(ops.__all__) - {"broadcast_shape"}
    assert {same.get(f, f) for f in functions} == set(cases.OPERATORS) - {"cast"}


def test_cases_are_the_same_every_time() -> None:
    for make in CASES.values():
        assert str(Workload.of(make(Draw([3])))) == str(Workload.of(make(Draw([3]))))


@pytest.mark.parametrize(("name", "seed"), QUICK)
def test_kernels_of_random_configurations_agree(name: str, seed: int) -> None:
    check(name, seed, 3 if name in cases.OPERATORS else 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_many_random_configurations_agree(name: str, seed: int) -> None:
    check(name, seed, 4)

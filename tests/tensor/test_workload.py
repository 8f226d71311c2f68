"""Workloads: stages, keys, counts."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from tilewright.errors import TensorError
from tilewright.tensor import Workload, ops, te

SCRIPT = """
from tilewright.tensor import Workload, ops, te
a, b = te.placeholder((8, 9), name="a"), te.placeholder((9, 7), name="b", const=True)
c = ops.matmul(a, b)
d = ops.elementwise("d", lambda v: te.select(v > 0.0, v, te.exp(v) - 1.0), ops.softmax(c))
w = Workload.of(d)
print(w.key, w.anchor_key)
"""


def matmul_relu(
    names: str = "abcd", *, m: int = 8, dtype: str = "float32", const: bool = False, scale: float = 0.0
) -> Workload:  # fmt: skip
    a, b, c, d = tuple(names)
    left = te.placeholder((m, 9), dtype, a)
    right = te.placeholder((9, 7), dtype, b, const=const)
    k = te.reduce_axis(9, f"k{a}")
    p, q = f"row{a}", f"col{a}"
    product = te.compute((m, 7), lambda *i: te.sum(left[i[0], k] * right[k, i[1]], k), c, axes=[p, q])  # fmt: skip
    return Workload.of(ops.elementwise(d, lambda v: te.maximum(v, scale), product))


def test_the_key_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    scope: dict[str, Workload] = {}
    exec(SCRIPT.replace("print", "pass;"), scope)
    w = scope["w"]
    assert found == {f"{w.key} {w.anchor_key}\n"}
    assert len(w.key) == 32 and int(w.key, 16) >= 0


def test_names_do_not_change_the_key() -> None:
    assert matmul_relu("abcd").key == matmul_relu("zyxw").key


@pytest.mark.parametrize(
    "other",
    [
        lambda: matmul_relu(m=9),
        lambda: matmul_relu(dtype="float64"),
        lambda: matmul_relu(const=True),
        lambda: matmul_relu(scale=1.0),
    ],
)
def test_shape_type_constness_and_body_change_the_key(other: Callable[[], Workload]) -> None:
    assert other().key != matmul_relu().key


def test_grouping_changes_the_key() -> None:
    x = te.placeholder((8,), name="x")
    bodies = [
        lambda i: x[-(i // 2) + 3], lambda i: x[(-i) // 2 + 4], lambda i: (-x[i]) ** 2.0, lambda i: -(x[i] ** 2.0)
    ]  # fmt: skip
    keys = {Workload.of(te.compute((8,), f, name="y")).key for f in bodies}
    assert len(keys) == len(bodies)


def test_the_order_of_operands_and_outputs_is_part_of_the_key() -> None:
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    p, q = (ops.elementwise(n, lambda u, v: u - v, a, b) for n in "pq")
    r = ops.elementwise("r", te.exp, a)
    assert Workload((a, b), (p,)).key != Workload((b, a), (q,)).key
    assert Workload((a, b), (p, r)).key != Workload((a, b), (r, p)).key


def test_workloads_with_one_anchor_share_its_key() -> None:
    plain, scaled = matmul_relu(), matmul_relu(scale=2.0)
    assert plain.key != scaled.key
    assert plain.anchor_key == scaled.anchor_key
    assert plain.anchor is not None
    assert plain.anchor_key == Workload.of(plain.anchor).key
    assert plain.anchor_key != matmul_relu(const=True).anchor_key


def test_a_workload_without_reduction_is_its_own_anchor() -> None:
    w = Workload.of(ops.elementwise("y", te.exp, te.placeholder((4,))))
    assert w.anchor is None
    assert w.anchor_key == w.key


def test_the_anchor_is_the_stage_of_most_work() -> None:
    a, b = te.placeholder((16, 32), name="a"), te.placeholder((32, 16), name="b")
    w = Workload.of(ops.softmax(ops.matmul(a, b), name="s"))
    assert w.anchor is not None and w.anchor.name == "C"


def test_stages_come_after_what_they_read() -> None:
    w = Workload.of(ops.softmax(te.placeholder((4, 5)), name="s"))
    assert [s.name for s in w.stages] == ["s.max", "s.exp", "s.sum", "s.inv", "s"]
    assert str(w).splitlines() == [
        "x = placeholder([4, 5], float32)",
        "s.max[i0 < 4, i1 < 1] = max(x[i0, r1], axis=[r1])",
        "s.exp[i0 < 4, i1 < 5] = exp(x[i0, i1] - s.max[i0, 0])",
        "s.sum[i0 < 4, i1 < 1] = sum(s.exp[i0, r1], axis=[r1])",
        "s.inv[i0 < 4, i1 < 1] = 1.0 / s.sum[i0, 0]",
        "s[i0 < 4, i1 < 5] = s.exp[i0, i1] * s.inv[i0, 0]",
    ]


def test_a_deep_chain_needs_no_recursion() -> None:
    x: te.Tensor = te.placeholder((2,), name="x")
    for n in range(3000):
        x = te.compute((2,), lambda i, x=x: x[i] + 1.0, name=f"y{n}")
    assert isinstance(x, te.Compute)
    assert len(Workload.of(x).stages) == 3000


def test_operations_and_bytes_are_counted() -> None:
    w = matmul_relu()
    assert w.flops == 2 * 8 * 9 * 7 + 8 * 7
    assert w.n_bytes == 4 * (8 * 9 + 9 * 7 + 8 * 7)


def test_a_workload_survives_pickling() -> None:
    w = matmul_relu(const=True)
    again = pickle.loads(pickle.dumps(w))
    assert again.key == w.key and str(again) == str(w)


def test_a_missing_input_is_refused() -> None:
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    y = ops.elementwise("y", lambda u, v: u + v, a, b)
    with pytest.raises(TensorError, match=r"Workload\(w\): inputs lack the placeholder\(s\) b"):
        Workload((a,), (y,), "w")


def test_a_name_may_occur_only_once() -> None:
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="a")
    y = ops.elementwise("y", lambda u, v: u + v, a, b)
    with pytest.raises(TensorError, match=r"the name\(s\) a occur twice; rename one"):
        Workload.of(y)

"""Lines in the formats of AutoTVM and of TVM's auto-scheduler, made by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tilewright.errors import RecordError
from tilewright.records import read_ansor, read_autotvm, read_foreign, to_frame

TENSORS = [["TENSOR", [8, 16], "float32"], ["TENSOR", [4, 16], "float32"], None, "float32"]


def autotvm(index: int, costs: list[float], error: int = 0) -> str:
    config = {
        "index": index, "code_hash": None,
        "entity": [["tile_y", "sp", [-1, 4]], ["tile_x", "sp", [-1, 8]], ["auto_unroll", "ot", 1500], ["vec", "an", "try"]],
    }  # fmt: skip
    return json.dumps({
        "input": ["llvm -mcpu=znver4", "dense_pack.x86", TENSORS, {}], "config": config,
        "result": [costs, error, 1.25, 1600000000.5], "version": 0.2, "tvm_version": "0.8.dev0",
    })  # fmt: skip


def ansor(costs: list[float], error: int = 0) -> str:
    target = "llvm -keys=cpu -mcpu=znver4"
    steps = [
        ["SP", 2, 0, 8, [1, 2, 4], 1],
        ["RE", 2, [0, 2, 1]],
        ["AN", 2, 0, 3],
        ["PR", 2, 0, "auto_unroll_max_step$16"],
    ]
    hardware = [2, 64, 64, 0, 0, 0, 0, 0]
    task = [json.dumps(["matmul_add", 8, 8, 16, "float32"]), target, hardware, "", 1]
    return json.dumps({"i": [task, [[], steps]], "r": [costs, error, 2.5, 1600000001], "v": "v0.6"})


def test_an_autotvm_log_is_a_table_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(autotvm(3, [1e-3, 3e-3]) + "\n" + autotvm(4, [1e9], 4) + "\n")
    frame = read_autotvm(path)
    assert list(frame["name"]) == ["dense_pack.x86[8x16,4x16,float32]"] * 2
    assert list(frame["status"]) == ["OK", "RUNTIME_DEVICE"]
    assert list(frame["value"]) == [pytest.approx(2e-3), math.inf]
    assert frame["spread"][0] == pytest.approx(0.5) and list(frame["n_samples"]) == [2, 0]
    assert list(frame["row_id"]) == ["3", "4"] and list(frame["trial"]) == [0, 1]
    assert (
        frame["knob.tile_y"][0] == "-1x4"
        and frame["knob.auto_unroll"][0] == 1500
        and frame["knob.vec"][0] == "try"
    )
    assert str(frame["time"][0]) == "2020-09-13 12:26:40.500000+00:00"
    assert set(to_frame([]).columns) <= set(frame.columns) and frame["package"][0] == "tvm 0.8.dev0"


def test_an_auto_scheduler_log_is_a_table_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(ansor([4e-4]) + "\n" + ansor([], 6) + "\n" + ansor([1e10], 7))
    frame = read_ansor(path)
    assert list(frame["name"]) == ["matmul_add[8,8,16,float32]"] * 3
    assert list(frame["status"]) == ["OK", "BUILD_TIMEOUT", "RUN_TIMEOUT"]
    assert list(frame["value"]) == [4e-4, math.inf, math.inf] and frame["sketch"][0] == 4
    assert frame["target"][0] == "llvm -keys=cpu -mcpu=znver4" and frame["run_s"][0] == 2.5


def test_lines_of_both_kinds_may_stand_in_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(ansor([1e-3]) + "\n" + autotvm(0, [2e-3]))
    assert list(read_foreign(path)["study"]) == ["ansor", "autotvm"]


@pytest.mark.parametrize(
    "bad",
    ["{", "[1]", "7", "{}", '{"i": 3}', '{"input": []}', '{"i": [["w"], []], "r": []}', '{"r": [[0.1], 0, 1, 2]}',
     ansor([]), ansor([-1.0]), ansor([math.nan]), autotvm(0, [0.0]), "\x00", "[" * 100_000],
)  # fmt: skip
def test_a_bad_line_is_skipped_and_named(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "log"
    path.write_text(bad + "\n" + ansor([1e-3]))
    frame = read_foreign(path)
    assert list(frame["value"]) == [1e-3]
    (problem,) = frame.attrs["problems"]
    assert problem.startswith("line 1: ")


def test_an_unknown_error_number_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(ansor([1e-3], 42))
    frame = read_ansor(tmp_path / "log")
    assert list(frame["status"]) == ["ERROR_42"] and frame["value"][0] == math.inf


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such log"):
        read_ansor(tmp_path / "absent")

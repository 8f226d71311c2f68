"""Measuring a data set, judging models on it, training on it. Nothing here looks at a time."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import costmodel, dataset, pretrain
from benchmarks.costmodel import FOLDS, evaluate, splits
from benchmarks.dataset import data_of, measure, read
from benchmarks.workloads import Spec, workload
from click.testing import CliRunner
from tests.tuner.doubles import FormulaPool

import tilewright as tw
from tilewright.costmodel import AnalyticModel, RandomModel, Ridge, load_weights
from tilewright.errors import RecordError
from tilewright.records import RecordStore
from tilewright.schedule.features import FEATURE_SCHEMA
from tilewright.schedule.space import Space

SPECS: list[Spec] = [
    {"kind": "matmul", "m": m, "n": 24, "k": 16, "const": True} for m in (16, 24, 32, 40, 48)
] + [{"kind": "softmax", "x": [r, 64]} for r in (8, 16, 24, 32, 40)]
HOST = tw.Target.host(1)


def measured(path: Path, *, seconds: float = 1e9, specs: list[Spec] = SPECS) -> int:
    pool = FormulaPool(failures=True)
    return measure(specs, [HOST], path, pool, candidates=12, seconds=seconds, seed=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.jsonl.xz"
    assert measured(path) == 0
    return path


def test_a_line_is_a_workload_and_what_was_measured(made: Path) -> None:
    lines = list(read(made))
    assert [e["spec"] for e in lines] == SPECS
    assert not made.with_name(made.name + ".part").exists()
    text = lzma.open(made, "rt").read()
    assert "row_id" not in text and len(lines[0]["candidates"]) >= 8
    statuses = {c[2] for e in lines for c in e["candidates"]}
    assert "OK" in statuses and len(statuses) > 1 and "LOST" not in statuses


def test_features_are_derived_again(made: Path) -> None:
    line = next(read(made))
    space = Space(tw.Task(workload(SPECS[0]), HOST))
    rows, seconds, dropped = dataset.rows_of(line, space)
    assert dropped == 0 and len(rows) == len(seconds) == len(line["candidates"])
    assert not rows[0].any(), "the default comes first"
    expected = {tuple(c[1]) for c in line["candidates"]}
    assert {tuple(space.knobs(r).values()) for r in rows} == expected
    data = data_of([line])
    np.testing.assert_array_equal(data.x, space.features(rows))
    assert data.y.max() == 1.0 and (data.y[np.isinf(seconds)] == 0).all()


def test_candidates_of_other_rules_are_dropped_and_counted(made: Path) -> None:
    line = next(read(made))
    n = len(line["candidates"])
    line["sketches"][-1]["name"] = "gone"
    gone = sum(c[0] == len(line["sketches"]) - 1 for c in line["candidates"])
    data = data_of([line])
    assert data.n_dropped == gone > 0 and len(data.y) == n - gone
    for s in line["sketches"]:
        s["name"] = "gone"
    with pytest.raises(RecordError, match="no candidate of this version's spaces"):
        data_of([line])


def timeless(path: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in e.items() if k != "time"} for e in read(path)]


def test_measuring_goes_on_where_it_ended(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.xz"
    assert measured(path, specs=SPECS[:3]) == 0
    assert measured(path, seconds=0.0) == len(SPECS) - 3, "no time: nothing is lost or added"
    assert len(list(read(path))) == 3
    part = path.with_name(path.name + ".part")  # what a killed run leaves: a torn last line
    part.write_bytes(lzma.decompress(path.read_bytes()) + b'{"format":1,"spec":{"ki')
    assert measured(path) == 0
    assert timeless(path) == timeless(made)


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"format": 99}\n')
    with pytest.raises(RecordError, match="format 99"):
        list(read(tmp_path / "d.jsonl"))


def test_no_workload_is_on_both_sides_of_a_split(made: Path) -> None:
    lines = list(read(made))
    data = data_of([*lines, *lines])  # every workload twice, as with two thread counts
    names = []
    for name, folds in splits(data):
        names.append(name)
        assert len(folds) == FOLDS
        assert np.sum(folds, axis=0).tolist() == [1] * len(data.workloads), "each is tested once"
        for held_out in folds:
            inside = {w for w, out in zip(data.workloads, held_out) if out}
            outside = {w for w, out in zip(data.workloads, held_out) if not out}
            assert not inside & outside
            if name == "held_out_workloads":
                kinds = {k for k, out in zip(data.kinds, held_out) if out}
                assert not kinds & {k for k, out in zip(data.kinds, held_out) if not out}
    assert names == ["held_out_shapes", "held_out_workloads"]


def test_a_model_that_knows_beats_one_that_does_not(made: Path) -> None:
    data = data_of(read(made))
    truth = data.x[:, 0]  # the draft model's logarithm of seconds
    known = dataset.Data(data.x, np.exp(-truth), data.groups, data.workloads, data.kinds, 0)
    good, blind = evaluate(AnalyticModel, known), evaluate(RandomModel, known)
    for split in good:
        assert set(good[split]) == {"pairwise", "peak1", "peak5", "kendall"}
        assert good[split]["pairwise"] > 0.99 and blind[split]["pairwise"] < 0.7


def test_the_command_writes_the_figures_of_each_split(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = CliRunner().invoke(
        costmodel.main, [str(made), "--models", "ridge,random", "--json", str(out)], catch_exceptions=False
    )  # fmt: skip
    assert done.exit_code == 0 and "| held_out_shapes | ridge |" in done.output
    found = json.loads(out.read_text())
    assert set(found) == {"held_out_shapes", "held_out_workloads"}
    for figures in found.values():
        assert set(figures) == {"pairwise", "peak1", "peak5", "kendall"}
    assert found == evaluate(lambda: Ridge(), data_of(read(made)))


def test_a_log_of_the_suite_is_data_too(tmp_path: Path) -> None:
    from benchmarks.tables import tasks_named

    from tilewright.tuner import Study

    tasks = tasks_named("matmul_128", HOST) + tasks_named("softmax_1x32000", HOST)
    Study(tasks, RecordStore(tmp_path / "log.jsonl"), FormulaPool()).run(24)
    data = costmodel.load(tmp_path / "log.jsonl")
    assert len(data.y) == 24 and set(data.kinds) == {"matmul", "softmax"} and data.n_dropped == 0


def test_weights_are_trained_from_measured_trials(tmp_path: Path) -> None:
    data, out = tmp_path / "data.jsonl.xz", tmp_path / "weights"
    with tw.LocalPool() as pool:
        specs = [SPECS[0], SPECS[1], SPECS[5], SPECS[6]]
        measure(specs, [HOST], data, pool, candidates=8, seconds=1e9, seed=0)
    done = CliRunner().invoke(pretrain.main, [str(data), "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    model = load_weights(out)
    assert model is not None and model.n_fitted_ == len(data_of(read(data)).y)
    facts = json.loads((out / "cpu.json").read_text())
    assert facts["feature_schema"] == FEATURE_SCHEMA and facts["data"]["workloads"] == 4
    assert facts["data"]["targets"] == [f"{HOST.cpu}, 1 thread(s)"]
    assert set(facts["metrics"]) == {"held_out_shapes", "held_out_workloads"}

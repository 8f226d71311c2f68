"""The written schema, real records, and the way from every earlier version."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tilewright.errors import RecordError
from tilewright.records import SCHEMA, Record, RecordStore
from tilewright.records.migrate import MIGRATIONS, migrate

HERE = Path(__file__).resolve().parent
REAL = HERE.parents[1] / "benchmarks" / "records" / "znver4.jsonl"


@pytest.fixture(scope="module")
def schema() -> Any:
    text = importlib.resources.files("tilewright.records").joinpath("schema.json").read_text()
    loaded = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_real_records_meet_the_schema(schema: Any) -> None:
    found = [json.loads(line) for line in lines(REAL)]
    assert len(found) > 100
    for line in found:
        schema.validate(line)


def test_every_field_is_required_and_nothing_else_is_allowed(schema: Any) -> None:
    record = json.loads(lines(HERE / "schemas" / f"v{SCHEMA}.jsonl")[1])
    schema.validate(record)
    for field in record:
        assert not schema.is_valid({k: v for k, v in record.items() if k != field}), field
    assert not schema.is_valid(record | {"note": "x"})


@pytest.mark.parametrize(
    "change",
    [
        {"value": None},
        {"value": 0},
        {"status": "WRONG"},
        {"trace": [[]]},
        {"trace": [["split", 1.5]]},
        {"trace": [[4]]},
        {"checksum": "x"},
        {"stage": "dessert"},
        {"schema": SCHEMA + 1},
        {"row": ["1"]},
        {"knobs": {"x": []}},
        {"provenance": {}},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(schema: Any, change: dict[str, Any]) -> None:
    from tilewright.records.record import _checksum

    record = json.loads(lines(HERE / "schemas" / f"v{SCHEMA}.jsonl")[1]) | change
    assert not schema.is_valid(record)
    if "checksum" not in change:
        record["checksum"] = _checksum({k: v for k, v in record.items() if k != "checksum"})
    with pytest.raises(RecordError):
        Record.from_line(json.dumps(record)).trace  # noqa: B018


def test_the_schema_states_the_current_version(schema: Any) -> None:
    assert schema.schema["properties"]["schema"]["const"] == SCHEMA


def test_there_is_a_migration_from_every_earlier_version() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA))


@pytest.mark.parametrize("version", range(1, SCHEMA + 1))
def test_a_log_of_every_version_reads_as_records_of_today(schema: Any, version: int) -> None:
    path = HERE / "schemas" / f"v{version}.jsonl"
    assert {json.loads(line)["schema"] for line in lines(path)} == {version}
    store = RecordStore(path)
    assert len(store) >= 3 and store.problems == ()
    for r in store:
        schema.validate(json.loads(r.to_line()))
    if version == SCHEMA:
        assert [r.to_line() for r in store] == lines(path)


def test_migrations_run_one_after_another_and_leave_the_input_alone() -> None:
    steps = {
        1: lambda p: {"schema": 1, "label": p["name"]},
        2: lambda p: p | {"label": p["label"] + "!"},
    }
    old = {"schema": 1, "name": "x"}
    assert migrate(old, 3, steps) == {"schema": 3, "label": "x!"}
    assert migrate(old, 2, steps) == {"schema": 2, "label": "x"}
    assert old == {"schema": 1, "name": "x"}


def test_a_missing_migration_is_named() -> None:
    with pytest.raises(RecordError, match="no way from schema 2 to 3"):
        migrate({"schema": 2}, 3, {})

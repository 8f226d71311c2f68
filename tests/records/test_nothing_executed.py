"""Reading a record or a compiled model executes nothing that it does not declare."""

from __future__ import annotations

import ast
import builtins
import pickle
from pathlib import Path

import pytest

from tilewright.records import Record, RecordStore

ROOT = Path(__file__).resolve().parents[2]
READERS = [
    *sorted((ROOT / "records").glob("*.py")), ROOT / "graph" / "plan.py", ROOT / "graph" / "model.py", ROOT / "graph" / "replay.py",
    ROOT / "schedule" / "trace.py", ROOT / "src" / "tilewright" / "compiling.py", ROOT / "src" / "tilewright" / "cli" / "run.py",
]  # fmt: skip
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "subprocess",
    "runpy",
    "code",
}
CALLS = {
    "eval",
    "exec",
    "__import__",
    "getattr",
    "setattr",
    "system",
    "popen",
    "literal_eval",
    "read_pickle",
}
ALLOWED = {
    ("record.py", "getattr"),  # over the names of its own fields
    ("run.py", "compile"),  # tilewright's own, of an ONNX model
}


def uses(source: str) -> set[str]:
    """Names of modules and calls in a source by which data could become code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[0] for a in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & MODULES
        elif isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            found |= {name} & CALLS
            if name == "compile" and isinstance(node.func, ast.Name):
                found.add("compile")
            if any(
                k.arg == "allow_pickle"
                and not (isinstance(k.value, ast.Constant) and k.value.value is False)
                for k in node.keywords
            ):
                found.add("allow_pickle")
    return found


@pytest.mark.parametrize("path", READERS, ids=lambda p: p.name)
def test_a_reader_has_no_way_to_turn_data_into_code(path: Path) -> None:
    assert {(path.name, u) for u in uses(path.read_text())} <= ALLOWED


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from pickle import loads", "eval('1')", "builtins.exec(x)", "getattr(a, name)", "os.system('x')",
     "np.load(f, allow_pickle=True)", "compile(text, '', 'exec')", "pd.read_pickle(p)"],
)  # fmt: skip
def test_the_search_sees_what_it_looks_for(source: str) -> None:
    assert uses(source)


def test_hostile_text_in_every_field_stays_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "__import__('os').system('echo harm')"
    r = Record(
        evil,
        evil,
        evil,
        evil,
        evil,
        "OK",
        1.0,
        trace_text=f'[["{evil}","{{0.__class__}}"]]',
        knobs=((evil, evil),),
        message=evil,
    )
    RecordStore(tmp_path / "log").append(r)
    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, lambda *_: pytest.fail("executed"))
    monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("unpickled"))
    (found,) = RecordStore(tmp_path / "log")
    assert found == r and found.trace.steps[0].primitive == evil
    assert found.trace.steps[0].args == ("{0.__class__}",)

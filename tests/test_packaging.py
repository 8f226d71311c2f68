"""The package as it is installed: its folders, links, imports and weight."""

from __future__ import annotations

import ast
import configparser
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

ROOT = Path(__file__).resolve().parents[1]
FACE = ROOT / "src" / "tilewright"
FOLDERS = sorted(p.parent.name for p in ROOT.glob("*/__init__.py"))
HEAVY = (
    "numpy",
    "onnx",
    "onnxruntime",
    "pandas",
    "ray",
    "sklearn",
    "xgboost",
    "llvmlite",
    "matplotlib",
    "rich",
)

MAY_IMPORT = {
    "tensor": set(),
    "schedule": {"tensor"},
    "codegen": {"tensor", "schedule"},
    "runtime": {"tensor", "schedule", "codegen"},
    "costmodel": {"tensor", "schedule"},
    "records": {"tensor", "schedule"},
    "measure": {"tensor", "schedule", "codegen", "runtime"},
    "tuner": {"tensor", "schedule", "codegen", "runtime", "costmodel", "measure", "records"},
    "graph": {"tensor", "schedule", "codegen", "runtime", "records"},
}
FOR_ALL = {"errors", "settings"}


def packages() -> list[str]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config["options"]["packages"].split()


def imported(source: str) -> set[str]:
    """Names of the tilewright folders and modules that a source imports outside of type checking."""
    tree = ast.parse(source)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {n.split(".")[1] for n in names if n.startswith("tilewright.")}
    return found


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_setup_lists_exactly_the_packages_that_exist() -> None:
    found = {"tilewright"}
    for folder, _, files in os.walk(FACE, followlinks=True):
        if "__init__.py" in files:
            found.add(".".join(("tilewright", *Path(folder).relative_to(FACE).parts)))
    assert sorted(packages()) == sorted(found)


def test_every_folder_has_a_relative_link_in_the_face() -> None:
    assert sorted(MAY_IMPORT) == FOLDERS
    for name in FOLDERS:
        link = FACE / name
        assert link.is_symlink(), name
        assert link.readlink() == Path("..") / ".." / name


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_refuses_to_be_a_top_level_package(folder: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport {folder}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"import this folder as tilewright.{folder}" in done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_one_way(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | FOR_ALL | {folder, "__version__"}
    for path in sorted((ROOT / folder).rglob("*.py")):
        wrong = imported(path.read_text()) - allowed
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def test_imported_sees_the_forms_of_import_and_not_type_checking() -> None:
    source = (
        "import tilewright.graph.load\nfrom tilewright.tuner import Study\nfrom tilewright import records\n"
        "if TYPE_CHECKING:\n    from tilewright.measure import Pool\n"
    )
    assert imported(source) == {"graph", "tuner", "records"}


def environment_reads(source: str) -> list[str]:
    """Uses of the environment, except ``{**os.environ, ...}``, which hands it on to a child."""
    tree = ast.parse(source)
    handed_on = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values)
        if key is None
    }
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
        if id(node) not in handed_on
    ]


def test_only_settings_reads_the_environment() -> None:
    for folder in (*FOLDERS, "src/tilewright"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            reads = environment_reads(path.read_text())
            assert not reads or path.name == "settings.py", path.relative_to(ROOT)


def test_a_read_of_the_environment_is_told_from_handing_it_on() -> None:
    assert environment_reads("run(env={**os.environ, 'A': '1'})") == []
    assert environment_reads("os.environ['A'], os.getenv('B')") == ["os.environ", "os.getenv"]


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, tilewright\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert run_python(code).strip() == "[]"


@pytest.mark.slow
def test_import_takes_less_than_0_3_seconds() -> None:
    code = "import time; t = time.perf_counter(); import tilewright; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.3


@pytest.mark.parametrize("name", tilewright.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(tilewright, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tilewright.nothing  # noqa: B018


def test_the_typed_names_are_the_lazy_names() -> None:
    tree = ast.parse((FACE / "__init__.py").read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    typed = {a.name: n.module for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    home = importlib.import_module("tilewright")._HOME
    assert typed == {name: f"tilewright.{module}" for name, module in home.items()}
    assert sorted(home) == sorted(set(tilewright.__all__) - {"__version__"})


def test_the_version_in_setup_is_the_version_in_the_package() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["version"] == tilewright.__version__


def test_every_package_file_of_the_readme_and_licence_is_there() -> None:
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", ".ci/run"):
        assert (ROOT / name).stat().st_size > 100, name

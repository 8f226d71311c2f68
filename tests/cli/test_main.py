"""The entry point: exit codes and one-line errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilewright.cli import group, invoke

COMMANDS = ("bench", "compile", "inspect", "doctor", "records", "run", "space", "tune")


def test_the_commands_are_these() -> None:
    assert sorted(group.commands) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([command, "--help"]) == 0
    assert "Usage: tilewright " + command in capsys.readouterr().out


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert "tilewright, version" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ["nothing"],
        ["tune"],
        ["tune", "model.onnx", "--op", "matmul:8x8x8"],
        ["tune", "--op", "matmul:8x8x8", "--trials", "0"],
        ["tune", "--op", "matmul:8x8x8", "--budget", "soon"],
        ["tune", "--op", "matmul:8x8x8", "--pool", "cloud"],
        ["tune", "model.onnx", "--shape", "x"],
        ["tune", "model.onnx", "--shape", "x=1,0"],
        ["bench"],
        ["bench", "--op", "matmul:8x8x8", "--threads", "0"],
        ["compile", "model.onnx"],
        ["run"],
        ["run", "model.tw", "--input", "x"],
        ["space"],
        ["records"],
        ["records", "merge", "-o", "out.jsonl"],
    ],
)
def test_wrong_usage_is_exit_code_2_with_a_word_on_stderr(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(args) == 2
    captured = capsys.readouterr()
    assert "Usage" in captured.err


def test_an_error_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_DEBUG", raising=False)
    assert invoke(["space", "--op", "matmull:8x8x8"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: --op matmull:8x8x8: no operator 'matmull'")
    assert captured.err.count("\n") == 1


def test_a_missing_file_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["records", "show", "missing.jsonl"]) == 1
    assert capsys.readouterr().err.startswith("error: records(missing.jsonl): no such log")


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.errors import TilewrightError

    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    with pytest.raises(TilewrightError):
        invoke(["space", "--op", "matmull:8x8x8"])


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "version" in done.stdout


def test_a_reader_that_stops_is_no_error() -> None:
    shell = f"{sys.executable} -m tilewright --help | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.startswith("Usage")

"""Tune a real model on this machine, replay the log in a second process, race it against its peers.

The model is the text-direction classifier in PyPI's ``rapidocr-onnxruntime``. Every step is an ordinary command
that is printed before it runs.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "demo"
SHAPE = "x=1,3,48,192"
TRIALS = 300
BUDGET = "7min"


def model_path() -> Path:
    """The model's file inside the installed package, which need not be importable."""
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("demo: the model is missing: pip install --no-deps -r requirements-models.txt")
    return (
        Path(spec.submodule_search_locations[0]) / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    )


def tilewright(*args: str | Path) -> None:
    """Run a command in a process of its own and stop the demo if it fails."""
    words = [str(a) for a in args]
    print(f"\n$ tilewright {shlex.join(words)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "tilewright", *words]).returncode
    if code:
        sys.exit(code)


def main() -> None:
    start = time.monotonic()
    OUT.mkdir(exist_ok=True)
    model, log, curve = model_path(), OUT / "records.jsonl", OUT / "curve.png"
    tilewright(
        "tune", model, "--shape", SHAPE, "--trials", str(TRIALS), "--budget", BUDGET, "--records", log, "--plot", curve,
    )  # fmt: skip
    compiled, figures = OUT / "classifier.tw", OUT / "bench.json"
    tilewright("compile", model, "--shape", SHAPE, "--records", log, "-o", compiled)
    tilewright("run", compiled)
    tilewright("bench", model, "--shape", SHAPE, "--records", log, "--json", figures)
    result = json.loads(figures.read_text())
    median = {r["name"]: r["median_s"] for r in result["results"]}
    print(
        f"\ntuned: {median['default'] / median['tuned']:.2f} times as fast as the default schedules,",
        end=" ",
    )
    print(f"{median['onnxruntime'] / median['tuned']:.2f} times as fast as ONNX Runtime")
    print(f"log {log}\ncurve {curve}\nfigures {figures}")
    print(
        f"the demo took {(time.monotonic() - start) / 60:.1f} minutes; run it again and the study goes on"
    )


if __name__ == "__main__":
    main()

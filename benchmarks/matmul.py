"""matmul 512 x 512 x 512 float32 on one thread: tuned here and now, beside NumPy and ONNX Runtime.

python benchmarks/matmul.py [--trials 128] [--threads 1]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "matmul.jsonl"
        common = [
            "--op",
            "matmul:512x512x512",
            "--threads",
            str(args.threads),
            "--records",
            str(log),
        ]
        for command in (["tune", *common, "--trials", str(args.trials)], ["bench", *common]):
            subprocess.run([sys.executable, "-m", "tilewright", *command], check=True)


if __name__ == "__main__":
    main()

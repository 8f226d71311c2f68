from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_file_has_a_rate_for_each_sketch_and_pool(tmp_path: Path) -> None:
    out = tmp_path / "rates.json"
    command = [sys.executable, "benchmarks/throughput.py", "--rows", "256", "--trials", "4", "--json", str(out)]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT, timeout=120, stdout=subprocess.PIPE)
    found = json.loads(out.read_text())
    assert set(found["trials_per_s"]) == {"local"} and len(found["candidates_per_s"]) == 2
    assert all(
        rate > 0 for rates in (found["trials_per_s"], found["candidates_per_s"]) for rate in rates.values()
    )  # fmt: skip
    for shares in found["shares"].values():
        assert abs(sum(shares.values()) - 1) < 1e-9

"""Run a study on a log until it is killed: ``python -m tests.tuner.endless_study LOG TRIALS``."""

from __future__ import annotations

import sys

from tests.tuner.doubles import FormulaPool, task

from tilewright.records import RecordStore
from tilewright.tuner import Study

if __name__ == "__main__":
    study = Study([(task(), 1.0), (task(64, 32, 16), 3.0)], RecordStore(sys.argv[1]), FormulaPool())
    print("started", flush=True)
    study.run(int(sys.argv[2]))
    print("finished", study.n_trials, flush=True)

"""Tables about a study: each `x_info(study)` is what `plot_x(study)` draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tilewright.costmodel.model import CostModel
from tilewright.costmodel.pretrained import default_model
from tilewright.records.record import Stage
from tilewright.tuner.examples import examples
from tilewright.tuner.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["allocation_info", "curve_info", "ranking_info", "trials_info"]


def curve_info(study: Study) -> pd.DataFrame:
    """Best-so-far of this run: columns trial, seconds (since its start), model_s."""
    return study.curve_info()


def trials_info(study: Study) -> pd.DataFrame:
    """One row a trial in the log: trial, task, status, value (seconds), share (of the task's best speed), best_share.

    `share` is 0 for a failure; `best_share` is the largest share so far within the task.
    """
    import pandas as pd

    keys = {s.task.workload.key: s.task.name for s in study.states}
    targets = {s.task.target.fingerprint for s in study.states}
    rows = [
        {"trial": r.trial, "task": keys[r.workload], "status": r.status, "value": r.value}
        for r in study.store
        if r.stage is Stage.TRIAL and r.workload in keys and r.target in targets
    ]
    frame = pd.DataFrame(rows, columns=["trial", "task", "status", "value"]).sort_values("trial")
    frame["value"] = frame["value"].astype(float)
    best = frame.groupby("task")["value"].transform("min")
    frame["share"] = np.where(np.isfinite(frame["value"]), best / frame["value"], 0.0)
    frame["best_share"] = frame.groupby("task")["share"].cummax()
    return frame.reset_index(drop=True)


def allocation_info(study: Study) -> pd.DataFrame:
    """One row a task: trials, seconds of the model before and after, bound_s, and why it gets no more trials."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "task": s.task.name, "trials": len(s.ids), "default_s": s.weight * s.default_s,
                "best_s": s.weight * s.best_s, "bound_s": s.weight * s.progress.bound_s,
                "why": s.progress.why_not(s.task),
            }
            for s in study.states
        ]
    )  # fmt: skip


def ranking_info(
    study: Study, make: Callable[[], CostModel] = default_model, *, share: float = 0.5
) -> pd.DataFrame:
    """How well a model that saw the first trials ranks the later ones.

    Parameters
    ----------
    make : callable
        Gives a new model, which is fitted to the first `share` of each task's trials.

    Returns
    -------
    DataFrame
        One row a later trial: task, share (of the task's best speed), score.
    """
    import pandas as pd

    columns = ["task", "share", "score"]
    found = examples(study.states)
    if found is None:
        return pd.DataFrame(columns=columns)
    x, y, groups = found
    late = np.zeros(len(y), dtype=bool)
    for g in np.unique(groups):
        own = np.flatnonzero(groups == g)
        late[own[int(np.ceil(share * len(own))) :]] = True
    model = make().fit(x[~late], y[~late], groups[~late])
    names = [study.states[g].task.name for g in groups[late]]
    return pd.DataFrame({"task": names, "share": y[late], "score": model.predict(x[late])})

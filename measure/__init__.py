"""Building, checking and timing candidates in processes that may crash."""

if __name__ != "tilewright.measure":
    raise ImportError("import this folder as tilewright.measure; it is no top-level package")

from tilewright.measure.local import LocalPool
from tilewright.measure.outcome import MeasureInput, MeasureResult, Status
from tilewright.measure.pool import Pool
from tilewright.measure.ray_pool import RayPool
from tilewright.measure.replay import ReplayPool
from tilewright.measure.table import Table

__all__ = [
    "LocalPool", "MeasureInput", "MeasureResult", "Pool", "RayPool", "ReplayPool", "Status", "Table",
]  # fmt: skip

"""A task: a workload on a target, the unit of tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.tensor.workload import Workload

if TYPE_CHECKING:
    from tilewright.codegen.target import Target

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What to compute, and on which hardware."""

    workload: Workload
    target: Target

    @property
    def key(self) -> str:
        """Workload key and target fingerprint: what records are looked up by."""
        return f"{self.workload.key}@{self.target.fingerprint}"

    @property
    def name(self) -> str:
        """The workload's readable name."""
        return self.workload.name

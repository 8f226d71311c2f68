"""Tuning records: one trial a line in an append-only log, and what is asked of such logs."""

if __name__ != "tilewright.records":
    raise ImportError("import this folder as tilewright.records; it is no top-level package")

from tilewright.records.compare import Change, TaskStats, diff, stats
from tilewright.records.export import export
from tilewright.records.foreign import read_ansor, read_autotvm, read_foreign
from tilewright.records.frame import to_frame
from tilewright.records.index import LogIndex, index_path
from tilewright.records.lookup import Lookups, open_lookups
from tilewright.records.manage import (
    DedupReport,
    DistillReport,
    MergeReport,
    ValidateReport,
    dedup,
    distill,
    merge,
    validate,
)
from tilewright.records.query import best, confirmed, nearest, similar
from tilewright.records.record import SCHEMA, Provenance, Record, Stage
from tilewright.records.store import Problem, RecordStore

__all__ = [
    "SCHEMA",
    "Change",
    "DedupReport",
    "DistillReport",
    "LogIndex",
    "Lookups",
    "MergeReport",
    "Problem",
    "Provenance",
    "Record",
    "RecordStore",
    "Stage",
    "TaskStats",
    "ValidateReport",
    "best",
    "confirmed",
    "dedup",
    "diff",
    "distill",
    "export",
    "index_path",
    "merge",
    "nearest",
    "open_lookups",
    "read_ansor",
    "read_autotvm",
    "read_foreign",
    "similar",
    "stats",
    "to_frame",
    "validate",
]

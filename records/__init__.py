"""Tuning records: one trial a line in an append-only log, and what is asked of such logs."""

if __name__ != "tilewright.records":
    raise ImportError("import this folder as tilewright.records; it is no top-level package")

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
    "ValidateReport",
    "best",
    "confirmed",
    "dedup",
    "distill",
    "index_path",
    "merge",
    "nearest",
    "open_lookups",
    "similar",
    "to_frame",
    "validate",
]

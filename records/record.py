"""One trial on disk: a line of JSON with a checksum."""

from __future__ import annotations

import enum
import hashlib
import json
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import RecordError
from tilewright.records.migrate import SCHEMA, migrate

if TYPE_CHECKING:
    from tilewright.schedule.trace import Trace

__all__ = ["SCHEMA", "KnobValue", "Provenance", "Record", "Stage"]

KnobValue: TypeAlias = int | float | bool | str


class Stage(enum.Enum):
    """Why a candidate was measured."""

    TRIAL = "trial"  # proposed by a searcher; counts towards the trial budget
    FINAL = "final"  # one of the leaders, measured again side by side; decides the winner


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a record comes from.

    Parameters
    ----------
    host : str
    time : float
        Seconds since the epoch.
    seed : int
    package, llvm : str
        Versions.
    study : str
        Identifies the study; a study that is run again continues under the same name.
    """

    host: str = ""
    time: float = 0.0
    seed: int = 0
    package: str = ""
    llvm: str = ""
    study: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One measured candidate.

    Parameters
    ----------
    workload, anchor : str
        Keys of the workload and of its anchor.
    name : str
        Readable form of the workload.
    target : str
        Fingerprint of the target.
    row_id : str
        Stable id of the candidate within its space.
    status : str
        Name of the outcome, ``"OK"`` for a checked and timed candidate.
    value : float
        Comparable seconds of one call; infinite unless the status is OK.
    trace_text : str
        JSON text of the trace; ``"null"`` where no legal trace exists. Meaning depends on nothing else.
    sketch : int
    row : tuple of int
        Sketch id and choice indices, to continue a search in the same space.
    knobs : tuple of (str, value)
        Readable knob values, sorted by name.
    seconds, reference_seconds : tuple of float
        Samples of one call of the candidate and of the reference kernel beside it.
    message : str
        Why the candidate failed.
    build_s, run_s : float
        What measuring cost.
    trial : int
        Number of the trial within its study.
    default : bool
        Whether this is candidate zero, the default schedule.
    stage : Stage
    provenance : Provenance
    schema : int
    """

    workload: str
    anchor: str
    name: str
    target: str
    row_id: str
    status: str
    value: float
    trace_text: str = "null"
    sketch: int = 0
    row: tuple[int, ...] = ()
    knobs: tuple[tuple[str, KnobValue], ...] = ()
    seconds: tuple[float, ...] = ()
    reference_seconds: tuple[float, ...] = ()
    message: str = ""
    build_s: float = 0.0
    run_s: float = 0.0
    trial: int = 0
    default: bool = False
    stage: Stage = Stage.TRIAL
    provenance: Provenance = Provenance()
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.ok and not (math.isfinite(self.value) and self.value > 0):
            raise RecordError(
                f"Record({self.row_id}): status OK with a value of {self.value} seconds"
            )
        if not self.ok and self.value != math.inf:
            raise RecordError(
                f"Record({self.row_id}): status {self.status} with a value of {self.value}; pass math.inf"
            )

    @property
    def ok(self) -> bool:
        """Whether the candidate was built, found correct and timed."""
        return self.status == "OK"

    @property
    def task_key(self) -> tuple[str, str]:
        """Workload key and target fingerprint: what a lookup asks for."""
        return self.workload, self.target

    @property
    def time(self) -> float:
        """When it was measured, in seconds since the epoch."""
        return self.provenance.time

    @property
    def trace(self) -> Trace:
        """The schedule steps, ready to replay.

        Raises
        ------
        RecordError
            If the candidate has no legal trace, or what is stored is no trace.
        """
        from tilewright.schedule.trace import Trace

        steps = json.loads(self.trace_text)
        if steps is None:
            raise RecordError(
                f"Record({self.row_id}).trace: the candidate has no legal trace: {self.message}"
            )
        return Trace.from_json(steps)

    @property
    def checksum(self) -> str:
        """16 hexadecimal digits over everything else in the line."""
        return _checksum(self._payload())

    def to_line(self) -> str:
        """The record as one line of JSON with sorted keys, without the newline."""
        payload = self._payload()
        payload["checksum"] = _checksum(payload)
        return _dump(payload)

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Read a line.

        Raises
        ------
        RecordError
            If the line is no record, was damaged, or comes from a newer schema.
        """
        payload = _parse(line)
        if payload["schema"] > SCHEMA:
            raise RecordError(
                f"record line: schema {payload['schema']} is newer than {SCHEMA}; update tilewright to read it"
            )
        claimed = payload.pop("checksum", None)
        try:
            actual = _checksum(payload)
            if claimed != actual:
                raise RecordError(
                    f"record line: checksum {actual} differs from the stated {claimed}; the line was changed"
                )
            return _from_payload(migrate(payload))
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as e:
            raise RecordError(f"record line: malformed field: {type(e).__name__}: {e}") from None

    def _payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        payload["trace"] = json.loads(payload.pop("trace_text"))
        payload["value"] = self.value if self.ok else None
        payload["knobs"] = dict(self.knobs)
        payload["stage"] = self.stage.value
        payload["provenance"] = {
            f.name: getattr(self.provenance, f.name) for f in fields(Provenance)
        }
        return payload


def _parse(line: str) -> dict[str, Any]:
    """The object in a line, which states a schema."""
    try:
        payload = json.loads(line, parse_constant=_no_constant)
    except json.JSONDecodeError as e:
        raise RecordError(f"record line: not JSON: {e.msg} at column {e.colno}") from None
    except (ValueError, RecursionError) as e:  # NaN, numbers of thousands of digits, deep nesting
        raise RecordError(f"record line: not JSON that a record can hold: {e}") from None
    if not isinstance(payload, dict) or type(payload.get("schema")) is not int:
        raise RecordError("record line: JSON, but no record: it has no schema number")
    if payload["schema"] < 1:
        raise RecordError(f"record line: schema {payload['schema']}; the first one is 1")
    return payload


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _from_payload(payload: dict[str, Any]) -> Record:
    unknown = sorted(set(payload) - set(_TYPES))
    if unknown:
        raise ValueError(f"unknown field(s) {', '.join(unknown)}")
    _check_types(payload, _TYPES)
    _check_types(payload["provenance"], _PROVENANCE_TYPES)
    for number in (payload["build_s"], payload["run_s"], payload["provenance"]["time"]):
        float(number)  # refuses integers that are too large
    for n in (payload["sketch"], payload["trial"], payload["provenance"]["seed"]):
        if not -(2**63) <= n < 2**63:
            raise ValueError(f"{n} does not fit 64 bits")
    if any(not isinstance(v, (int, float, str)) for v in payload["knobs"].values()):
        raise TypeError("knobs hold something other than numbers, booleans and text")
    p = dict(payload)
    p["trace_text"] = _dump(p.pop("trace"))
    p["value"] = math.inf if p["value"] is None else float(p["value"])
    p["knobs"] = tuple(sorted(p["knobs"].items()))
    p["stage"] = Stage(p["stage"])
    p["provenance"] = Provenance(**p["provenance"])
    if any(type(n) is not int for n in p["row"]):
        raise TypeError("row holds something other than integers")
    p["row"] = tuple(p["row"])
    for samples in ("seconds", "reference_seconds"):
        if any(type(n) not in (int, float) for n in p[samples]):
            raise TypeError(f"{samples} holds something other than numbers")
        p[samples] = tuple(map(float, p[samples]))
    return Record(**p)


_NUMBER = (int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    "workload": (str,), "anchor": (str,), "name": (str,), "target": (str,), "row_id": (str,), "status": (str,),
    "value": (int, float, type(None)), "trace": (list, type(None)), "sketch": (int,), "row": (list,),
    "knobs": (dict,), "seconds": (list,), "reference_seconds": (list,), "message": (str,), "build_s": _NUMBER,
    "run_s": _NUMBER, "trial": (int,), "default": (bool,), "stage": (str,), "provenance": (dict,),
    "schema": (int,),
}  # fmt: skip
_PROVENANCE_TYPES: dict[str, tuple[type, ...]] = {
    "host": (str,), "time": _NUMBER, "seed": (int,), "package": (str,), "llvm": (str,), "study": (str,),
}  # fmt: skip


def _check_types(data: dict[str, Any], types: dict[str, tuple[type, ...]]) -> None:
    for name, value in data.items():
        if name in types and type(value) not in types[name]:
            raise TypeError(f"{name} is of type {type(value).__name__}")


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(payload: dict[str, Any]) -> str:
    return hashlib.sha256(_dump(payload).encode()).hexdigest()[:16]

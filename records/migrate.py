"""From older line formats to the current one, a version at a time.

A line keeps the checksum of the version that wrote it: it is checked before anything is migrated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tilewright.errors import RecordError

__all__ = ["MIGRATIONS", "SCHEMA", "Migration", "migrate"]

Migration: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

SCHEMA = 1
"""Version of the line format, described by ``records/schema.json``.

A reader refuses newer lines and keeps the rest of the log; older ones go through `migrate`.
"""

MIGRATIONS: dict[int, Migration] = {}
"""For each version n but the last, the function that makes an object of version n + 1 of one of version n.

The first version is still the current one, so there are none yet. A new version adds its function here, a file
of lines of the version before to ``tests/records/schemas``, and describes itself in ``schema.json``.
"""


def migrate(
    payload: dict[str, Any], version: int = SCHEMA, migrations: Mapping[int, Migration] = MIGRATIONS
) -> dict[str, Any]:
    """Bring the object of a line, without its checksum, to a version.

    Parameters
    ----------
    payload : dict
        States its version as ``schema``. It is not changed.
    version : int
        What to make of it; the current version by default.

    Raises
    ------
    RecordError
        If a version on the way has no migration.

    Examples
    --------
    >>> add = {1: lambda p: p | {"note": ""}}
    >>> migrate({"schema": 1, "name": "x"}, 2, add)
    {'schema': 2, 'name': 'x', 'note': ''}
    """
    out = payload
    for n in range(payload["schema"], version):
        step = migrations.get(n)
        if step is None:
            raise RecordError(
                f"migrate: no way from schema {n} to {n + 1}; there are {sorted(migrations)}"
            )
        out = step(dict(out)) | {"schema": n + 1}
    return out

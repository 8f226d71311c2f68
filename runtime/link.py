"""Object code into this process."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Sequence
from typing import Any

from tilewright.errors import BuildError

__all__ = ["Linked", "link_object"]

_jit: list[Any] = []
_count = itertools.count()


class Linked:
    """Code in memory; it is released with this object."""

    def __init__(self, tracker: Any, symbols: Sequence[str]) -> None:
        self._tracker = tracker
        self.addresses = {s: int(tracker[s]) for s in symbols}


def link_object(code: bytes, symbols: Sequence[str]) -> Linked:
    """Load an object file and find its symbols.

    Raises
    ------
    BuildError
        If the object cannot be linked, for example because it is of another architecture.
    """
    import llvmlite.binding as llvm

    # Some versions of LLVM link an object of another architecture without a word.
    if code[:4] == b"\x7fELF" and code[18:20] != (_own_machine() or code[18:20]):
        raise BuildError("link: the object code does not load here: it is of another architecture")
    if not _jit:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _jit.append(llvm.create_lljit_compiler())
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for s in symbols:
        builder.export_symbol(s)
    try:
        tracker = builder.link(_jit[0], f"tilewright{next(_count)}")
    except RuntimeError as error:
        raise BuildError(f"link: the object code does not load here: {error}") from None
    return Linked(tracker, symbols)


@functools.cache
def _own_machine() -> bytes:
    """The field e_machine of this process's ELF file; empty where it has none."""
    with open(sys.executable, "rb") as file:
        head = file.read(20)
    return head[18:20] if head[:4] == b"\x7fELF" else b""

"""A small writer of LLVM IR text, one function at a time."""

from __future__ import annotations

import struct

import numpy as np

from tilewright.tensor.dtype import DType

__all__ = ["FunctionBuilder", "Module", "constant", "llvm_type", "vector_type"]

_TYPES = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "float", DType.BFLOAT16: "float",
    DType.INT64: "i64", DType.INT32: "i32", DType.INT8: "i8", DType.UINT8: "i8", DType.BOOL: "i1",
}  # fmt: skip


def llvm_type(dtype: DType) -> str:
    """The type of one value in registers, where float16 and bfloat16 are float32."""
    return _TYPES[dtype]


def vector_type(dtype: DType, width: int) -> str:
    """The type of `width` values; width 1 is a scalar."""
    return _TYPES[dtype] if width == 1 else f"<{width} x {_TYPES[dtype]}>"


def constant(value: float | int | bool, dtype: DType) -> str:
    """A scalar literal."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    if dtype is DType.FLOAT64:
        return "0x" + struct.pack(">d", float(value)).hex().upper()
    if dtype is not DType.FLOAT32:
        with np.errstate(over="ignore"):
            value = float(dtype.numpy.type(value))
    try:
        single = struct.unpack(">f", struct.pack(">f", float(value)))[0]
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    return "0x" + struct.pack(">d", single).hex().upper()


class Module:
    """Declarations and finished functions; `features` are the target's, such as ``+avx512f``."""

    def __init__(self, features: frozenset[str] = frozenset()) -> None:
        self.features = features
        self.declarations: dict[str, None] = {}
        self.functions: list[str] = []

    def text(self) -> str:
        """The module as LLVM assembly."""
        return "\n".join([*self.declarations, *self.functions])


class FunctionBuilder:
    """The text of one function; names are fresh within it."""

    def __init__(self, module: Module, header: str) -> None:
        self.module = module
        self.header = header
        self.entry: list[str] = []  # allocas
        self.lines: list[str] = []
        self.block = "entry"
        self.past_caches = False  # whether it has stores that a fence must follow
        self._count = 0

    def new(self, hint: str = "t") -> str:
        """A fresh SSA name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def label(self, hint: str = "b") -> str:
        """A fresh block name."""
        self._count += 1
        return f"{hint}{self._count}"

    def line(self, text: str) -> None:
        """Append an instruction."""
        self.lines.append(text)

    def value(self, text: str) -> str:
        """Append an instruction and name its result."""
        name = self.new()
        self.lines.append(f"{name} = {text}")
        return name

    def declare(self, text: str) -> None:
        """Register a declaration of the module, once."""
        self.module.declarations[text] = None

    def alloca(self, text: str) -> str:
        """Reserve stack memory in the entry block."""
        name = self.new("a")
        self.entry.append(f"{name} = alloca {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def finish(self) -> None:
        """Close the function and hand it to the module."""
        body = "\n".join(f"  {x}" if not x.endswith(":") else x for x in [*self.entry, *self.lines])
        self.module.functions.append(f"{self.header} {{\nentry:\n{body}\n}}\n")

"""A loop around one elementary function, at any vector width."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.codegen import harness

from tilewright.codegen.compile import compile_text
from tilewright.codegen.irbuilder import FunctionBuilder, Module, vector_type
from tilewright.codegen.target import Target
from tilewright.codegen.vectormath import emit_pow, emit_unary
from tilewright.tensor.dtype import DType

_F = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def module_text(op: str, width: int, dtype: DType, special: bool = False) -> str:
    """LLVM assembly of ``out[i] = op(x[i], y[i])`` for `n` a positive multiple of the width."""
    module = Module(frozenset(Target.host(1).features.split(",")) if special else frozenset())
    b = FunctionBuilder(module, "define void @f(ptr %out, ptr %x, ptr %y, i64 %n)")
    ty, size = vector_type(dtype, width), dtype.n_bytes
    b.line("br label %loop")
    b.start("loop")
    b.line("%i = phi i64 [0, %entry], [%next, %loop]")
    offset = b.value(f"mul i64 %i, {size}")
    x, y, out = (b.value(f"getelementptr i8, ptr {p}, i64 {offset}") for p in ("%x", "%y", "%out"))
    first = b.value(f"load {ty}, ptr {x}, align {size}")
    second = b.value(f"load {ty}, ptr {y}, align {size}")
    if op == "pow":
        value = emit_pow(b, first, second, width, dtype)
    else:
        value = emit_unary(b, op, first, width, dtype)
    b.line(f"store {ty} {value}, ptr {out}, align {size}")
    b.line(f"%next = add i64 %i, {width}")
    b.line("%more = icmp slt i64 %next, %n")
    b.line("br i1 %more, label %loop, label %done")
    b.start("done")
    b.line("ret void")
    b.finish()
    return module.text()


def build(op: str, width: int, dtype: DType, special: bool = False) -> Callable[..., NDArray[Any]]:
    """The function on arrays of any length."""
    code, _ = compile_text(module_text(op, width, dtype, special), Target.host(1))
    tracker = harness.link(code, ["f"])

    def call(x: NDArray[Any], y: NDArray[Any] | None = None) -> NDArray[Any]:
        n = x.size
        operands = []
        for v in (x, x if y is None else y):
            padded = np.zeros(-(-n // width) * width, dtype.numpy)
            padded[:n] = v
            operands.append(padded)
        out = np.full_like(operands[0], 7)
        _F(tracker["f"])(
            out.ctypes.data, operands[0].ctypes.data, operands[1].ctypes.data, out.size
        )
        return out[:n]

    return call

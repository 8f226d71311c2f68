"""The instructions of x86-64 and AArch64 that compute dot products of short groups.

An instruction that wants other signs serves as well: for an unsigned a, ``a ^ 128`` read as signed is
``a - 128``, and the other way round; what is added by that, 128 times the sum of the other factor, is
computed by a second instruction. It does not depend on a, so it is shared by all rows of a tile.
"""

from __future__ import annotations

from tilewright.codegen.irbuilder import FunctionBuilder
from tilewright.schedule.intrinsic import Dot
from tilewright.tensor.dtype import DType

__all__ = ["DotMachine"]

_SIGNED, _UNSIGNED = DType.INT8, DType.UINT8


class DotMachine:
    """Writes a `Dot` for the target of a module."""

    def __init__(self, fb: FunctionBuilder, dot: Dot) -> None:
        self.fb, self.dot = fb, dot
        self.features = fb.module.features

    @property
    def _arm(self) -> bool:
        return "+neon" in self.features or "+dotprod" in self.features or "+bf16" in self.features

    def lanes(self, vector_bits: int) -> int:
        """Lanes of the widest instruction that a vector length allows."""
        wide = {DType.FLOAT32: "+avx512bf16"}.get(
            self.dot.accumulator, "+avx512vnni" if self.dot.group == 4 else "+avx512bw"
        )
        most = 128 if self._arm else 512 if wide in self.features else 256
        return min(vector_bits, most) // 32

    def emit(self, total: str, x: str, y: str, width: int) -> str:
        """The accumulators plus the sums of products.

        `x` and `y` hold `width` groups, their elements as integers of the same size.
        """
        if self.dot.accumulator is DType.FLOAT32:
            return self._bfloat(total, x, y, width)
        if self.dot.group == 2:
            return self._pairs(total, x, y, width)
        return self._bytes(total, x, y, width)

    # ---------------------------------------------------------------- bytes

    def _bytes(self, total: str, x: str, y: str, width: int) -> str:
        a, b = self.dot.a, self.dot.b
        if self._arm:
            if a is b:
                return self._call(f"aarch64.neon.{'s' if a is _SIGNED else 'u'}dot", total, x, y, width)  # fmt: skip
            if a is _SIGNED:
                x, y = y, x
            if "+i8mm" in self.features:
                return self._call("aarch64.neon.usdot", total, x, y, width)
            # (x - 128)*y + 128*y, where both fit signed bytes
            near = self._call("aarch64.neon.sdot", total, self._flip(x, width), y, width)
            return self._plus(near, self._sums("aarch64.neon.sdot", y, width, first=False), width)
        op = "x86.avx512.vpdpbusd"
        if a is not b:
            return self._call(op, total, *((x, y) if a is _UNSIGNED else (y, x)), width)
        if a is _UNSIGNED:  # x*(y - 128) + 128*x
            near = self._call(op, total, x, self._flip(y, width), width)
            return self._plus(near, self._sums(op, x, width, first=True), width)
        near = self._call(op, total, self._flip(x, width), y, width)  # (x + 128)*y - 128*y
        return self._plus(near, self._sums(op, y, width, first=False), width, "sub")

    def _call(self, op: str, total: str, x: str, y: str, width: int) -> str:
        arm = op.startswith("aarch64")
        acc, row = f"<{width} x i32>", f"<{4 * width} x i8>"
        name = f"@llvm.{op}.v{width}i32.v{4 * width}i8" if arm else f"@llvm.{op}.{32 * width}"
        given = row
        if not arm:  # declared with words, which any LLVM reads
            x, y = (self.fb.value(f"bitcast {row} {v} to {acc}") for v in (x, y))
            given = acc
        self.fb.declare(f"declare {acc} {name}({acc}, {given}, {given})")
        return self.fb.value(f"call {acc} {name}({acc} {total}, {given} {x}, {given} {y})")

    def _flip(self, v: str, width: int) -> str:
        return self.fb.value(f"xor <{4 * width} x i8> {v}, {self._all(-128, width)}")

    def _all(self, value: int, width: int) -> str:
        return "<" + ", ".join([f"i8 {value}"] * (4 * width)) + ">"

    def _sums(self, op: str, v: str, width: int, *, first: bool) -> str:
        """128 times the sum of each group."""
        one = self._all(1, width)
        pair = (v, one) if first else (one, v)
        sums = self._call(op, "zeroinitializer", *pair, width)
        shift = "<" + ", ".join(["i32 7"] * width) + ">"
        return self.fb.value(f"shl <{width} x i32> {sums}, {shift}")

    def _plus(self, x: str, y: str, width: int, op: str = "add") -> str:
        return self.fb.value(f"{op} <{width} x i32> {x}, {y}")

    # ---------------------------------------------------------------- pairs

    def _pairs(self, total: str, x: str, y: str, width: int) -> str:
        """As 16-bit integers, whose products and sums of two are exact."""
        n = 2 * width
        wide = []
        for v, dtype in ((x, self.dot.a), (y, self.dot.b)):
            op = "sext" if dtype is _SIGNED else "zext"
            wide.append(self.fb.value(f"{op} <{n} x i8> {v} to <{n} x i16>"))
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[width]
        ty, acc = f"<{n} x i16>", f"<{width} x i32>"
        self.fb.declare(f"declare {acc} @llvm.x86.{name}({ty}, {ty})")
        sums = self.fb.value(f"call {acc} @llvm.x86.{name}({ty} {wide[0]}, {ty} {wide[1]})")
        return self._plus(total, sums, width)

    def _bfloat(self, total: str, x: str, y: str, width: int) -> str:
        n = 2 * width
        row, acc = f"<{n} x bfloat>", f"<{width} x float>"
        x, y = (self.fb.value(f"bitcast <{n} x i16> {v} to {row}") for v in (x, y))
        name = (
            f"@llvm.aarch64.neon.bfdot.v{width}f32.v{n}bf16"
            if self._arm
            else f"@llvm.x86.avx512bf16.dpbf16ps.{32 * width}"
        )
        self.fb.declare(f"declare {acc} {name}({acc}, {row}, {row})")
        return self.fb.value(f"call {acc} {name}({acc} {total}, {row} {x}, {row} {y})")

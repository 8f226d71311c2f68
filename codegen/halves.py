"""float16 and bfloat16, which exist in memory only: registers hold them as float32.

Conversions round to nearest, ties to even, keep infinities and NaN, and never call a library: where
the target has no instruction they are integer arithmetic on whole vectors. Subnormal numbers are kept
as well, but for those of bfloat16 (below 1.2e-38) where AVX-512's own conversion makes them zero.
"""

from __future__ import annotations

from tilewright.codegen.irbuilder import FunctionBuilder, constant
from tilewright.tensor.dtype import DType

__all__ = ["HALVES", "memory_half", "narrow", "widen"]

HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _native(fb: FunctionBuilder) -> bool:
    return "+f16c" in fb.module.features or "+neon" in fb.module.features


def _rounds(fb: FunctionBuilder, width: int) -> bool:
    """Whether there is an instruction from float32 to bfloat16 (which takes subnormal numbers for 0)."""
    return width in (4, 8, 16, 32) and "+avx512bf16" in fb.module.features


def memory_half(fb: FunctionBuilder, dtype: DType) -> str:
    """The type of one element in memory."""
    return "half" if dtype is DType.FLOAT16 and _native(fb) else "i16"


class _Words:
    """Arithmetic on 32-bit words and float32 of one width."""

    def __init__(self, fb: FunctionBuilder, width: int) -> None:
        self.fb, self.width = fb, width
        self.i32, self.f32, self.i16 = (self._of(t) for t in ("i32", "float", "i16"))
        self.i1 = self._of("i1")

    def _of(self, scalar: str) -> str:
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def c(self, value: int) -> str:
        return (
            str(value) if self.width == 1 else "<" + ", ".join([f"i32 {value}"] * self.width) + ">"
        )

    def op(self, name: str, x: str, y: str | int) -> str:
        return self.fb.value(f"{name} {self.i32} {x}, {self.c(y) if isinstance(y, int) else y}")

    def pick(self, test: str, x: str, y: str) -> str:
        return self.fb.value(f"select {self.i1} {test}, {self.i32} {x}, {self.i32} {y}")

    def bits(self, x: str) -> str:
        return self.fb.value(f"bitcast {self.f32} {x} to {self.i32}")

    def number(self, x: str) -> str:
        return self.fb.value(f"bitcast {self.i32} {x} to {self.f32}")

    def real(self, name: str, x: str, y: str) -> str:
        return self.fb.value(f"{name} {self.f32} {x}, {y}")


def widen(fb: FunctionBuilder, name: str, dtype: DType, width: int) -> str:
    """Elements as they lie in memory to float32."""
    w = _Words(fb, width)
    if memory_half(fb, dtype) == "half":
        half = "half" if width == 1 else f"<{width} x half>"
        return fb.value(f"fpext {half} {name} to {w.f32}")
    word = fb.value(f"zext {w.i16} {name} to {w.i32}")
    if dtype is DType.BFLOAT16:
        return w.number(w.op("shl", word, 16))
    size = w.op("shl", w.op("and", word, 0x7FFF), 13)
    scaled = w.real("fmul", w.number(size), _float(w, 2.0**112))  # exact, subnormal numbers too
    special = w.op("icmp uge", size, 0x7C00 << 13)
    bits = w.pick(special, w.op("or", size, 0x7F800000), w.bits(scaled))
    sign = w.op("shl", w.op("and", word, 0x8000), 16)
    return w.number(w.op("or", bits, sign))


def narrow(fb: FunctionBuilder, name: str, dtype: DType, width: int) -> str:
    """float32 to elements as they lie in memory."""
    w = _Words(fb, width)
    if memory_half(fb, dtype) == "half":
        half = "half" if width == 1 else f"<{width} x half>"
        return fb.value(f"fptrunc {w.f32} {name} to {half}")
    if dtype is DType.BFLOAT16 and _rounds(fb, width):
        row = f"<{width} x bfloat>"
        short = fb.value(f"fptrunc {w.f32} {name} to {row}")
        return fb.value(f"bitcast {row} {short} to {w.i16}")
    bits = w.bits(name)
    size = w.op("and", bits, 0x7FFFFFFF)
    nan = w.op("icmp ugt", size, 0x7F800000)
    if dtype is DType.BFLOAT16:
        quiet = w.op("or", w.op("lshr", bits, 16), 0x40)
        out = w.pick(nan, quiet, w.op("lshr", _to_even(w, bits, 16), 16))
    else:
        sign = w.op("and", w.op("lshr", bits, 16), 0x8000)
        normal = w.op("lshr", _to_even(w, w.op("sub", size, 112 << 23), 13), 13)
        # the last bit of a number near 1/2 is the smallest step of float16
        near = w.real("fadd", w.number(size), _float(w, 0.5))
        small = w.op("sub", w.bits(near), 0x3F000000)
        out = w.pick(w.op("icmp ult", size, 0x38800000), small, normal)
        out = w.pick(
            w.op("icmp uge", size, 0x477FF000), w.c(0x7C00), out
        )  # 65520 rounds to infinity
        out = w.op("or", w.pick(nan, w.c(0x7E00), out), sign)
    return fb.value(f"trunc {w.i32} {out} to {w.i16}")


def _to_even(w: _Words, bits: str, drop: int) -> str:
    """Add what makes cutting off `drop` bits round to nearest even."""
    odd = w.op("and", w.op("lshr", bits, drop), 1)
    return w.op("add", w.op("add", bits, odd), (1 << (drop - 1)) - 1)


def _float(w: _Words, value: float) -> str:
    text = constant(value, DType.FLOAT32)
    return text if w.width == 1 else "<" + ", ".join([f"float {text}"] * w.width) + ">"

"""Vectorised elementary functions as straight-line LLVM IR.

Errors (float32, against float64 over dense sweeps, checked by tests): exp 1 ulp, log 1, tanh 3,
sigmoid 3, erf 6, rsqrt 1.5; sin and cos 1 for arguments up to 1e5; pow 1.5. In float64: exp, log,
tanh, sigmoid, erf and pow within 1e-14 relative (pow: times the size of ``y*log(x)``).

References: argument reduction after Cody & Waite (1980), rounding by adding 1.5*2^23; exp by a fit
on the reduced interval (Taylor in float64), sin/cos by Taylor; log by the series of atanh; tanh near
zero by Lambert's continued fraction; erf by a rational fit; in float64 by its series below 1 and
1 - exp(-x^2)*R((x - 2.5)/(x + 2.5)) above.
"""

from __future__ import annotations

import math

from tilewright.codegen.irbuilder import FunctionBuilder, constant, llvm_type, vector_type
from tilewright.errors import BuildError
from tilewright.tensor.dtype import DType

__all__ = ["emit_pow", "emit_unary"]

# erf(x) = x * P(x^2) / Q(x^2) for |x| <= 3.9, relative error 2e-8; iteratively reweighted least squares
_ERF_CLAMP = 3.9
_ERF_TOP = (1.1283791476361618, 0.1896661364025315, 0.05266799452708733, 0.0037383174938972977,
            0.00028506175236196106, 2.0664811212039105e-06)  # fmt: skip
_ERF_BOTTOM = (1.0, 0.5014200186670458, 0.11381867639264667, 0.014914219387045532, 0.0011573696171181165,
               3.827007884975095e-05)  # fmt: skip
# exp(r) for |r| <= log(2)/2, relative error 3e-9; least squares
_EXP = (1.0, 1.0, 0.49999993431891715, 0.1666652039676696, 0.041668390831150495, 0.008368745320397521, 0.001381453790346921)  # fmt: skip
# exp(x^2)*erfc(x) for 1 <= x <= 6 in (x - 2.5)/(x + 2.5), relative error 5e-15; least squares
_ERFCX = (0.2108063640611435, -0.371736733948986, 0.25171319321740043, -0.12503305237693002, 0.03992253907997232,
          -0.003993701259817, -0.0026423661147168165, 0.0008759175414253989, 0.00022838308540058845,
          -0.00012890124572279596, -3.4210182380846136e-05, 1.87639064561963e-05, 7.717865221813208e-06,
          -2.7758239426892692e-06, -2.3196915873903184e-06, 7.108796241769543e-07, 1.0073891079393732e-06)  # fmt: skip
_LN2_HI = {DType.FLOAT32: 0.693359375, DType.FLOAT64: 6.93147180369123816490e-01}


class _Ops:
    """Arithmetic on named values of one width and type."""

    def __init__(self, b: FunctionBuilder, width: int, dtype: DType) -> None:
        self.b, self.width, self.dtype = b, width, dtype
        self.ty = vector_type(dtype, width)
        self.int = DType.INT64 if dtype is DType.FLOAT64 else DType.INT32
        self.ity = vector_type(self.int, width)
        self.suffix = (f"v{width}" if width > 1 else "") + (
            "f64" if dtype is DType.FLOAT64 else "f32"
        )

    def c(self, value: float) -> str:
        return self._spread(constant(value, self.dtype), llvm_type(self.dtype))

    def ci(self, value: int) -> str:
        return self._spread(str(value), llvm_type(self.int))

    def _spread(self, text: str, scalar: str) -> str:
        return text if self.width == 1 else "<" + ", ".join([f"{scalar} {text}"] * self.width) + ">"

    def op(self, name: str, x: str, y: str) -> str:
        return self.b.value(f"{name} {self.ty} {x}, {y}")

    def iop(self, name: str, x: str, y: str) -> str:
        return self.b.value(f"{name} {self.ity} {x}, {y}")

    def call(self, name: str, *args: str) -> str:
        full = f"@llvm.{name}.{self.suffix}"
        self.b.declare(f"declare {self.ty} {full}({', '.join([self.ty] * len(args))})")
        return self.b.value(f"call {self.ty} {full}({', '.join(f'{self.ty} {a}' for a in args)})")

    def fma(self, x: str, y: str, z: str) -> str:
        return self.call("fma", x, y, z)

    def poly(self, x: str, coefficients: tuple[float, ...]) -> str:
        """Horner's scheme, lowest degree first."""
        out = self.c(coefficients[-1])
        for value in coefficients[-2::-1]:
            out = self.fma(out, x, self.c(value))
        return out

    @property
    def scales(self) -> bool:
        """Whether the target has an instruction for x * 2**n (AVX-512's scalef), with gradual underflow."""
        bits, features = self.width * self.dtype.n_bytes * 8, self.b.module.features
        return "+avx512f" in features and (
            bits == 512 or (bits in (128, 256) and "+avx512vl" in features)
        )

    def scale(self, x: str, n: str) -> str:
        """x * 2**n for an integral n."""
        bits = self.width * self.dtype.n_bytes * 8
        name = f"@llvm.x86.avx512.mask.scalef.p{'d' if self.dtype is DType.FLOAT64 else 's'}.{bits}"
        mask = "i16" if self.width == 16 else "i8"
        more = ", i32" if bits == 512 else ""
        self.b.declare(f"declare {self.ty} {name}({self.ty}, {self.ty}, {self.ty}, {mask}{more})")
        rounding = ", i32 4" if bits == 512 else ""  # the current mode
        return self.b.value(
            f"call {self.ty} {name}({self.ty} {x}, {self.ty} {n}, {self.ty} zeroinitializer, {mask} -1{rounding})"
        )

    def cmp(self, test: str, x: str, y: str) -> str:
        return self.b.value(f"fcmp {test} {self.ty} {x}, {y}")

    def select(self, test: str, x: str, y: str) -> str:
        bits = "i1" if self.width == 1 else f"<{self.width} x i1>"
        return self.b.value(f"select {bits} {test}, {self.ty} {x}, {self.ty} {y}")

    def bits(self, x: str) -> str:
        return self.b.value(f"bitcast {self.ty} {x} to {self.ity}")

    def unbits(self, x: str) -> str:
        return self.b.value(f"bitcast {self.ity} {x} to {self.ty}")

    def to_int(self, x: str) -> str:
        return self.b.value(f"fptosi {self.ty} {x} to {self.ity}")

    def to_float(self, x: str) -> str:
        return self.b.value(f"sitofp {self.ity} {x} to {self.ty}")

    def to(self, x: str, dtype: DType) -> str:
        op = "fpext" if dtype is DType.FLOAT64 else "fptrunc"
        return self.b.value(f"{op} {self.ty} {x} to {vector_type(dtype, self.width)}")


def emit_unary(b: FunctionBuilder, op: str, x: str, width: int, dtype: DType) -> str:
    """Write the instructions of a function of one argument.

    Raises
    ------
    BuildError
        If there is no such function for the type.
    """
    if dtype not in (DType.FLOAT32, DType.FLOAT64):
        raise BuildError(f"{op}({dtype}): defined on float32 and float64; cast first")
    o = _Ops(b, width, dtype)
    match op:
        case "exp":
            return _exp(o, x)
        case "log":
            return _log(o, x)
        case "sigmoid":
            return o.op(
                "fdiv", o.c(1.0), o.op("fadd", o.c(1.0), _exp(o, b.value(f"fneg {o.ty} {x}")))
            )
        case "tanh":
            return _tanh(o, x)
        case "rsqrt":
            return o.op("fdiv", o.c(1.0), o.call("sqrt", x))
        case "erf":
            return _erf(o, x) if dtype is DType.FLOAT32 else _erf_double(o, x)
        case "sin" | "cos":
            return _sincos(o, x, op == "cos")
    raise BuildError(f"{op}({dtype}): there is no vectorised version")


def _reduced_exp(o: _Ops, x: str, bias: int) -> tuple[str, str, str]:
    """``exp(x)`` as ``p * 2**n``: p, a value whose bits end in ``n + bias``, and that as a number.

    Adding 1.5*2^23 (1.5*2^52) rounds to an integer and leaves it in the low bits.
    """
    double = o.dtype is DType.FLOAT64
    magic = o.c((1.5 * 2**52 if double else 1.5 * 2**23) + bias)
    shifted = o.fma(x, o.c(math.log2(math.e)), magic)
    n = o.op("fsub", shifted, magic)
    hi = _LN2_HI[o.dtype]
    r = o.fma(n, o.c(-hi), x)
    r = o.fma(n, o.c(-1.90821492927058770002e-10 if double else hi - math.log(2)), r)
    p = o.poly(r, tuple(1.0 / math.factorial(k) for k in range(14)) if double else _EXP)
    return p, o.bits(shifted), n


def _exp(o: _Ops, x: str) -> str:
    """With infinities and gradual underflow: 2**n is applied in two halves."""
    double = o.dtype is DType.FLOAT64
    low, high = (-746.0, 710.0) if double else (-104.0, 89.0)
    x = o.select(o.cmp("ogt", x, o.c(high)), o.c(high), x)  # keeps NaN
    x = o.select(o.cmp("olt", x, o.c(low)), o.c(low), x)
    bias, shift = (1023, 52) if double else (127, 23)
    if o.scales:
        p, _, n = _reduced_exp(o, x, 0)
        return o.scale(p, n)
    p, whole, _ = _reduced_exp(o, x, 2 * bias)
    half = o.iop("lshr", whole, o.ci(1))
    rest = o.iop("sub", whole, half)
    for part in (half, rest):
        p = o.op("fmul", p, o.unbits(o.iop("shl", part, o.ci(shift))))
    return p


def _exp_inside(o: _Ops, x: str) -> str:
    """For arguments whose exponential is far from overflow and underflow; keeps NaN."""
    bias, shift = (1023, 52) if o.dtype is DType.FLOAT64 else (127, 23)
    if o.scales:
        p, _, n = _reduced_exp(o, x, 0)
        return o.scale(p, n)
    p, whole, _ = _reduced_exp(o, x, bias)
    return o.op("fmul", p, o.unbits(o.iop("shl", whole, o.ci(shift))))


def _log(o: _Ops, x: str) -> str:
    double = o.dtype is DType.FLOAT64
    shift, scale = (52, 2.0**54) if double else (23, 2.0**25)
    tiny = o.c(2.0**-1022 if double else 2.0**-126)
    small = o.cmp("olt", x, tiny)
    scaled = o.select(small, o.op("fmul", x, o.c(scale)), x)
    raw = o.bits(scaled)
    # exponent so that the mantissa lies in [sqrt(1/2), sqrt(2))
    offset = int.from_bytes(o.dtype.numpy.type(math.sqrt(0.5)).tobytes(), "little")
    e = o.iop("ashr", o.iop("sub", raw, o.ci(offset)), o.ci(shift))
    m = o.unbits(o.iop("sub", raw, o.iop("shl", e, o.ci(shift))))
    n = o.to_float(e)
    n = o.select(small, o.op("fsub", n, o.c(math.log2(scale))), n)
    f = o.op("fsub", m, o.c(1.0))
    s = o.op("fdiv", f, o.op("fadd", m, o.c(1.0)))
    z = o.op("fmul", s, s)
    terms = 10 if double else 5
    series = o.poly(z, tuple(2.0 / (2 * k + 3) for k in range(terms)))
    # log(m) = 2s + s*z*series, and 2s = f - s*f without rounding twice
    hi = _LN2_HI[o.dtype]
    low = o.c(1.90821492927058770002e-10 if double else math.log(2) - hi)
    correction = o.op("fmul", s, o.fma(z, series, o.b.value(f"fneg {o.ty} {f}")))
    correction = o.fma(n, low, correction)
    y = o.fma(n, o.c(hi), o.op("fadd", f, correction))
    y = o.select(o.cmp("oeq", x, o.c(math.inf)), x, y)
    y = o.select(o.cmp("oeq", x, o.c(0.0)), o.c(-math.inf), y)
    return o.select(o.cmp("ult", x, o.c(0.0)), o.c(math.nan), y)


def _tanh(o: _Ops, x: str) -> str:
    size = o.call("fabs", x)
    z = o.op("fmul", x, x)
    if o.dtype is DType.FLOAT64:
        top = o.poly(z, (2027025.0, 270270.0, 6930.0, 36.0))
        bottom = o.poly(z, (2027025.0, 945945.0, 51975.0, 630.0, 1.0))
        limit = 0.25
    else:
        top = o.poly(z, (10395.0, 1260.0, 21.0))
        bottom = o.poly(z, (10395.0, 4725.0, 210.0, 1.0))
        limit = 0.55
    # 1 - 2/(exp(2x) + 1) otherwise; one division serves both
    double = o.dtype is DType.FLOAT64
    most = o.c(20.0 if double else 10.0)
    inside = o.select(o.cmp("ogt", size, most), most, size)
    e = _exp_inside(o, o.op("fadd", inside, inside))
    near = o.cmp("olt", size, o.c(limit))
    up = o.select(near, o.op("fmul", size, top), o.op("fsub", e, o.c(1.0)))
    down = o.select(near, bottom, o.op("fadd", e, o.c(1.0)))
    return o.call("copysign", o.op("fdiv", up, down), x)


def _erf(o: _Ops, x: str) -> str:
    size = o.call("fabs", x)
    size = o.select(o.cmp("ogt", size, o.c(_ERF_CLAMP)), o.c(_ERF_CLAMP), size)  # keeps NaN
    z = o.op("fmul", size, size)
    y = o.op("fdiv", o.op("fmul", size, o.poly(z, _ERF_TOP)), o.poly(z, _ERF_BOTTOM))
    y = o.select(o.cmp("ogt", y, o.c(1.0)), o.c(1.0), y)
    return o.call("copysign", y, x)


def _erf_double(o: _Ops, x: str) -> str:
    size = o.call("fabs", x)
    z = o.op("fmul", x, x)
    scale = 2.0 / math.sqrt(math.pi)
    series = [scale * (-1.0) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(19)]
    near = o.op("fmul", x, o.poly(z, tuple(series)))
    t = o.select(o.cmp("ogt", size, o.c(6.0)), o.c(6.0), size)
    place = o.op("fdiv", o.op("fsub", t, o.c(2.5)), o.op("fadd", t, o.c(2.5)))
    e = _exp_inside(o, o.b.value(f"fneg {o.ty} {o.op('fmul', t, t)}"))
    far = o.fma(o.b.value(f"fneg {o.ty} {e}"), o.poly(place, _ERFCX), o.c(1.0))
    return o.select(o.cmp("olt", size, o.c(1.0)), near, o.call("copysign", far, x))


def _sincos(o: _Ops, x: str, cosine: bool) -> str:
    """In float64 whatever the type, so that one reduction serves all."""
    if o.dtype is DType.FLOAT32:
        wide = _Ops(o.b, o.width, DType.FLOAT64)
        return wide.to(_sincos(wide, o.to(x, DType.FLOAT64), cosine), DType.FLOAT32)
    n = o.call("roundeven", o.op("fmul", x, o.c(2.0 / math.pi)))
    n = o.op("fadd", n, o.c(0.0))  # never -0, so that the reduction keeps the sign of -0
    r = o.fma(n, o.c(-1.57079632679489655800e00), x)
    r = o.fma(n, o.c(-6.12323399573676603587e-17), r)
    z = o.op("fmul", r, r)
    sine = o.fma(
        o.op("fmul", r, z),
        o.poly(z, tuple((-1.0) ** (k + 1) / math.factorial(2 * k + 3) for k in range(7))),
        r,
    )
    sine = o.call("copysign", sine, r)
    cos = o.poly(z, tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9)))
    large = o.cmp("uge", o.call("fabs", n), o.c(2.0**62))
    q = o.to_int(o.select(large, o.c(0.0), n))
    if cosine:
        q = o.iop("add", q, o.ci(1))
    odd = o.b.value(f"icmp ne {o.ity} {o.iop('and', q, o.ci(1))}, {o.ci(0)}")
    flip = o.b.value(f"icmp ne {o.ity} {o.iop('and', q, o.ci(2))}, {o.ci(0)}")
    y = o.select(odd, cos, sine)
    y = o.select(flip, o.b.value(f"fneg {o.ty} {y}"), y)
    return o.select(large, o.c(math.nan), y)


def emit_pow(b: FunctionBuilder, x: str, y: str, width: int, dtype: DType) -> str:
    """Write the instructions of x to the power y.

    Raises
    ------
    BuildError
        If the type is neither float32 nor float64.
    """
    if dtype not in (DType.FLOAT32, DType.FLOAT64):
        raise BuildError(f"pow({dtype}): defined on float32 and float64; cast first")
    o = _Ops(b, width, dtype)
    if dtype is DType.FLOAT32:
        wide = _Ops(b, width, DType.FLOAT64)
        return wide.to(_pow(wide, o.to(x, DType.FLOAT64), o.to(y, DType.FLOAT64)), DType.FLOAT32)
    return _pow(o, x, y)


def _pow(o: _Ops, x: str, y: str) -> str:
    """As C's Annex F has it for zeros, infinities and negative bases."""
    size = o.call("fabs", x)
    log = _log(o, size)
    unit = o.cmp("oeq", log, o.c(0.0))
    r = _exp(o, o.select(unit, o.c(0.0), o.op("fmul", y, log)))  # 1 even to the power of infinity
    whole = o.cmp("oeq", o.call("floor", y), y)
    half = o.op("fmul", y, o.c(0.5))
    even = o.cmp("oeq", o.call("floor", half), half)
    flipped = o.select(even, r, o.b.value(f"fneg {o.ty} {r}"))
    ends = o.cmp("oeq", log, o.call("copysign", o.c(math.inf), log))  # of zero and infinity
    signed = o.select(whole, flipped, o.select(ends, r, o.c(math.nan)))
    negative = o.cmp("olt", o.call("copysign", o.c(1.0), x), o.c(0.0))
    r = o.select(negative, signed, r)
    return o.select(o.cmp("oeq", y, o.c(0.0)), o.c(1.0), r)

"""Square blocks read along one axis and used along the other, transposed in registers."""

from __future__ import annotations

from tilewright.codegen.irbuilder import llvm_type
from tilewright.codegen.state import Lanes, State
from tilewright.schedule.program import Role
from tilewright.tensor.dtype import DType
from tilewright.tensor.expr import Load, Var

__all__ = ["block_axis", "transpose"]

LEAST = 4


def block_axis(st: State, e: Load, lanes: Lanes) -> Var | None:
    """An unrolled loop along which the load is contiguous and whose iterations fill a square block.

    The block is read at its first iteration; where the buffer is written in between, it is read again.
    """
    place = st.layout.places[e.buffer]
    width = lanes.width
    if width < LEAST or 2 * lanes.count < width or place.register or place.role is Role.OUTPUT:
        return None
    if not (e.dtype.is_float or e.dtype.is_int) or e.dtype.n_bytes < 4:
        return None
    for var, coefficient in st.linear(e.buffer, e.indices).terms:
        trips, now = st.unrolled.get(var, 0), st.names.get(var)
        if coefficient == 1 and isinstance(now, int) and now // width * width + width <= trips:
            return var
    return None


def transpose(st: State, rows: list[str], dtype: DType) -> list[str]:
    """Columns of a square block that is given as its rows.

    Swaps ever larger off-diagonal squares: one two-source shuffle a vector and round.
    """
    width, ty = len(rows), llvm_type(dtype)
    vector = f"<{width} x {ty}>"
    distance = 1
    while distance < width:
        new = list(rows)
        for n in range(width):
            if n & distance:
                continue
            a, b = rows[n], rows[n + distance]
            low = [j if not j & distance else width + j - distance for j in range(width)]
            high = [j + distance if not j & distance else width + j for j in range(width)]
            for k, picks in ((n, low), (n + distance, high)):
                lanes = ", ".join(f"i32 {p}" for p in picks)
                new[k] = st.fb.value(
                    f"shufflevector {vector} {a}, {vector} {b}, <{width} x i32> <{lanes}>"
                )
        rows = new
        distance *= 2
    return rows

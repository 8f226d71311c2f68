"""Vectorised mathematics."""
def emit_unary(b, op, x, width, dtype): raise NotImplementedError
def emit_pow(b, x, y, width, dtype): raise NotImplementedError

"""Print programs: Python-like, one statement a line, stable."""

from __future__ import annotations

from tilewright.schedule.program import For, LoopKind, Program, Role, Scope, Stmt, Store

__all__ = ["show_program"]

_SIGN = {"sum": "+=", "prod": "*="}


def show_program(program: Program) -> str:
    """The text of a program."""
    params = ", ".join(
        f"{b.name}: {b.dtype}[{', '.join(map(str, b.shape))}]" for b in program.params
    )
    lines = [f"def kernel({params}):"]
    for b in program.buffers:
        if b.role in (Role.TEMP, Role.PACKED):
            where = b.role.value if b.scope is Scope.GLOBAL else b.scope.value
            for a in b.alignment:
                where += f", stride {a.dimension} % {a.factor} == {a.offset}"
            if b.carried is not None:
                where += f", double over {b.carried.name}"
            lines.append(
                f"    {b.name} = alloc({b.dtype}, [{', '.join(map(str, b.shape))}])  # {where}"
            )
    _show(program.body, 1, lines)
    return "\n".join(lines)


def _show(body: tuple[Stmt, ...], depth: int, lines: list[str]) -> None:
    pad = "    " * depth
    for s in body:
        match s:
            case For(var, extent, inner, kind, parts, intrinsic):
                names = ", ".join(v.name for v, _ in parts) or var.name
                ranges = ", ".join(str(e) for _, e in parts) or str(extent)
                loop = "grid" if parts else "range"
                note = "" if kind is LoopKind.SERIAL else f"  # {intrinsic or kind.value}"
                lines.append(f"{pad}for {names} in {loop}({ranges}):{note}")
                _show(inner, depth + 1, lines)
            case Store(block, buffer, indices, value, reduce, init):
                lines += [f"{pad}prefetch({p.load})" for p in s.prefetches]
                where = f"{buffer}[{', '.join(map(str, indices))}]"
                notes = [] if block == buffer else [block]
                if init is not None:
                    notes.append(f"init {init}")
                notes += [p.value for p in s.pragmas]
                note = f"  # {', '.join(notes)}" if notes else ""
                if reduce in _SIGN:
                    lines.append(f"{pad}{where} {_SIGN[reduce]} {value}{note}")
                elif reduce:
                    lines.append(f"{pad}{where} = {reduce}({where}, {value}){note}")
                else:
                    lines.append(f"{pad}{where} = {value}{note}")

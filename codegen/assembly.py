"""Assembly text (x86 in AT&T syntax, AArch64) to functions, basic blocks and innermost loops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Block", "Function", "functions_of", "innermost_loops"]

_BRANCH = re.compile(r"(?:j[a-z]+|b(?:\.[a-z]+)?|cbn?z|tbn?z)\s+(?:.*,\s*)?(\.LBB\w+)$")
_GOES_ON = re.compile(r"(?!jmp|b\s|ret)")  # what may fall through to the next block


@dataclass
class Block:
    """Instructions that run one after the other."""

    label: str
    instructions: list[str] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)


@dataclass
class Function:
    """A function's blocks, in the order of the text; the first is its entry."""

    name: str
    blocks: list[Block]


def functions_of(text: str) -> Iterator[Function]:
    """The functions of an assembly file."""
    names = set(re.findall(r"\.type\s+(\S+?),\s*[@%]function", text))
    blocks: list[Block] = []
    name = ""
    for raw in text.splitlines():
        line = re.sub(r"\s*(?:#|//).*$", "", raw).strip().replace("\t", " ")
        if line.startswith(".Lfunc_end") and name:
            yield Function(name, _connected(blocks))
            name = ""
        elif line.endswith(":") and line[:-1] in names:
            name, blocks = line[:-1], [Block(line[:-1])]
        elif name and line.startswith(".LBB") and line.endswith(":"):
            blocks.append(Block(line[:-1]))
        elif name and line and not line.startswith(".") and not line.endswith(":"):
            blocks[-1].instructions.append(line)
            if _BRANCH.match(line):
                blocks.append(Block(""))  # only its jump leaves a block


def _connected(blocks: list[Block]) -> list[Block]:
    at = {b.label: n for n, b in enumerate(blocks) if b.label}
    for n, b in enumerate(blocks):
        last = b.instructions[-1] if b.instructions else ""
        jump = _BRANCH.match(last)
        if jump:
            b.successors.append(at[jump[1]])
        if _GOES_ON.match(last) and n + 1 < len(blocks):
            b.successors.append(n + 1)
    return blocks


def innermost_loops(function: Function) -> list[list[Block]]:
    """The loops that hold no other loop, each as its blocks, its head first."""
    blocks = function.blocks
    loops: dict[int, set[int]] = {}
    for tail, head in _back_edges(blocks):
        loops.setdefault(head, {head}).update(_reaching(blocks, tail, head))
    return [
        [blocks[n] for n in (head, *sorted(body - {head}))]
        for head, body in sorted(loops.items())
        if not any(other in body for other in loops if other != head)
    ]


def _back_edges(blocks: list[Block]) -> list[tuple[int, int]]:
    """Edges to a block that is on the way from the entry, by depth-first search."""
    found: list[tuple[int, int]] = []
    open_, done = {0}, set[int]()
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        n, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            stack.pop()
            open_.discard(n)
            done.add(n)
        elif following in open_:
            found.append((n, following))
        elif following not in done:
            open_.add(following)
            stack.append((following, iter(blocks[following].successors)))
    return found


def _reaching(blocks: list[Block], tail: int, head: int) -> set[int]:
    """The blocks from which `tail` is reached without passing `head` (which is among them)."""
    before: dict[int, list[int]] = {}
    for n, b in enumerate(blocks):
        for s in b.successors:
            before.setdefault(s, []).append(n)
    seen, todo = {head}, [tail]
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            todo += before.get(n, [])
    return seen

"""Assembly is read as functions, blocks and innermost loops."""

from __future__ import annotations

from tilewright.codegen.assembly import functions_of, innermost_loops

NESTED = """
\t.type\tf,@function
f:
\tcmpq\t%r8, %rcx
\tjge\t.LBB0_4
.LBB0_1:
\tmovq\t%rsi, %r9
.LBB0_2:
\taddq\t$1, %r9       # a comment
\tjne\t.LBB0_5
.LBB0_3:
\tcmpq\t$3, %r9
\tjb\t.LBB0_2
\tincq\t%rcx
\tcmpq\t%r8, %rcx
\tjl\t.LBB0_1
.LBB0_4:
\tretq
.LBB0_5:
\tnegq\t%r9
\tjmp\t.LBB0_3
.Lfunc_end0:
\t.type\tg,@function
g:
\tretq
.Lfunc_end1:
"""


def test_functions_and_their_blocks_are_found() -> None:
    f, g = functions_of(NESTED)
    assert (f.name, g.name) == ("f", "g")
    assert [b.label for b in f.blocks if b.label] == [
        "f", ".LBB0_1", ".LBB0_2", ".LBB0_3", ".LBB0_4", ".LBB0_5",
    ]  # fmt: skip
    assert innermost_loops(g) == []


def test_an_innermost_loop_has_the_blocks_that_lie_behind_the_function_and_not_its_parents() -> (
    None
):
    (loop,) = innermost_loops(next(functions_of(NESTED)))
    assert [b.label for b in loop if b.label] == [".LBB0_2", ".LBB0_3", ".LBB0_5"]
    assert [i for b in loop for i in b.instructions] == [
        "addq $1, %r9", "jne .LBB0_5", "cmpq $3, %r9", "jb .LBB0_2", "negq %r9", "jmp .LBB0_3",
    ]  # fmt: skip


def test_two_loops_side_by_side_are_both_innermost() -> None:
    text = ".type f,@function\nf:\n.LBB0_1:\ndecq %rax\njne .LBB0_1\n.LBB0_2:\ndecq %rcx\njne .LBB0_2\nretq\n.Lfunc_end0:\n"
    (f,) = functions_of(text)
    assert [loop[0].label for loop in innermost_loops(f)] == [".LBB0_1", ".LBB0_2"]

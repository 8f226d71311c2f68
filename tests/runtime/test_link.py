from __future__ import annotations

import ctypes
import gc
from dataclasses import replace

import pytest

from tilewright.codegen.compile import compile_text
from tilewright.codegen.target import Target
from tilewright.errors import BuildError
from tilewright.runtime.link import link_object

HOST = Target.host(1)
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def adder(number: int, symbol: str = "add", target: Target = HOST) -> bytes:
    text = f"define i64 @{symbol}(i64 %x) {{\n  %y = add i64 %x, {number}\n  ret i64 %y\n}}\n"
    return compile_text(text, target)[0]


def test_a_linked_function_can_be_called() -> None:
    linked = link_object(adder(5), ["add"])
    assert FUNCTION(linked.addresses["add"])(2) == 7


def test_objects_with_equal_symbols_live_side_by_side() -> None:
    linked = [link_object(adder(n), ["add"]) for n in range(20)]
    assert [FUNCTION(x.addresses["add"])(1) for x in linked] == [n + 1 for n in range(20)]


def test_dropping_one_object_leaves_the_others() -> None:
    linked = [link_object(adder(n), ["add"]) for n in range(6)]
    del linked[::2]
    gc.collect()
    assert [FUNCTION(x.addresses["add"])(1) for x in linked] == [2, 4, 6]


def test_functions_of_the_process_are_found() -> None:
    text = "declare i64 @labs(i64)\ndefine i64 @f(i64 %x) {\n  %y = call i64 @labs(i64 %x)\n  ret i64 %y\n}\n"
    linked = link_object(compile_text(text, HOST)[0], ["f"])
    assert FUNCTION(linked.addresses["f"])(-3) == 3


def test_an_object_of_another_architecture_is_refused() -> None:
    arch = "aarch64" if HOST.triple.startswith("x86_64") else "x86_64"
    other = replace(HOST, triple=f"{arch}-unknown-linux-gnu", cpu="", features="")
    with pytest.raises(BuildError, match="link: the object code does not load here"):
        link_object(adder(1, target=other), ["add"])
    linked = link_object(adder(1), ["add"])  # the next one is no worse off
    assert FUNCTION(linked.addresses["add"])(1) == 2


@pytest.mark.parametrize("code", [b"", b"no object file", adder(1)[:100]])
def test_what_is_no_object_file_is_refused(code: bytes) -> None:
    with pytest.raises(BuildError, match="link: the object code does not load here"):
        link_object(code, ["add"])


def test_a_missing_symbol_is_refused() -> None:
    with pytest.raises(BuildError, match="link: "):
        link_object(adder(1, "other"), ["add"])


def test_an_unknown_function_is_refused() -> None:
    text = "declare void @tw_no_such_function()\ndefine void @f() {\n  call void @tw_no_such_function()\n  ret void\n}\n"
    with pytest.raises(BuildError, match="link: "):
        link_object(compile_text(text, HOST)[0], ["f"])

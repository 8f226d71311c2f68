"""Guarded memory: arrays that end at the edge of what is mapped."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import socket
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.measure.guarded import GUARD, Guarded
from tilewright.measure.process import run_child
from tilewright.measure.wire import send

SHAPES = [(), (0,), (1,), (16,), (33,), (3, 7), (1024,), (5000,)]
DTYPES = ["float32", "float64", "int8", "int64", "bool", "float16"]


def guarded(shape: tuple[int, ...] = (33,), dtype: str = "float32", shared: bool = True) -> Guarded:
    return Guarded(shape, np.dtype(dtype), shared=shared)


def ending(work: Callable[[], object]) -> str:
    """How a child ends that does the work: "fine", or the reason."""

    def wrapped(sock: socket.socket) -> None:
        faulthandler.disable()
        work()
        send(sock, ("end", "fine"))

    mine, theirs = socket.socketpair()
    with mine, theirs:
        found = run_child(wrapped, 30.0, theirs)
    return str(found.message or found.reason)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_array_is_aligned_writable_and_of_its_type(shape: tuple[int, ...], dtype: str) -> None:
    g = guarded(shape, dtype)
    assert g.array.shape == shape and g.array.dtype == dtype
    if g.array.size:
        assert g.array.ctypes.data % 64 == 0
    assert g.band_intact()
    g.array[...] = 1
    assert (g.array == 1).all() and g.band_intact()


@pytest.mark.parametrize("shape", SHAPES)
def test_poison_is_no_result(shape: tuple[int, ...]) -> None:
    floats, integers = guarded(shape), guarded(shape, "int32")
    for g in (floats, integers):
        g.array[...] = 1
        g.poison()
    assert np.isnan(floats.array).all() and (integers.array == 113).all()
    assert floats.band_intact() and integers.band_intact()


@pytest.mark.parametrize("offset", [-1, -64, 132, 140, 191])
def test_a_byte_written_beside_the_array_is_noticed(offset: int) -> None:
    g = guarded()  # 132 bytes, 60 more up to the unmapped page
    address = g.array.ctypes.data + offset
    ctypes.memset(address, 0, 1)
    assert not g.band_intact()
    g.poison()
    assert g.band_intact()


@pytest.mark.parametrize("offset", [0, 131])
def test_bytes_of_the_array_are_not_beside_it(offset: int) -> None:
    g = guarded()
    ctypes.memset(g.array.ctypes.data + offset, 0, 1)
    assert g.band_intact()


@pytest.mark.parametrize("offset", [192, 4096, GUARD])
@pytest.mark.parametrize("access", ["read", "write"])
def test_an_access_far_behind_the_array_ends_the_process(offset: int, access: str) -> None:
    address = guarded().array.ctypes.data + offset
    assert ending(lambda: touch(address, access)) == "signal SIGSEGV"


@pytest.mark.parametrize("access", ["read", "write"])
def test_an_access_far_before_the_array_ends_the_process(access: str) -> None:
    address = guarded().array.ctypes.data - 4096
    assert ending(lambda: touch(address, access)) == "signal SIGSEGV"


def touch(address: int, access: str) -> None:
    if access == "read":
        ctypes.string_at(address, 1)
    else:
        ctypes.memset(address, 0, 1)


def test_frozen_memory_can_be_read_and_not_written() -> None:
    g = guarded()
    g.array[...] = 3
    g.freeze()
    address = g.array.ctypes.data
    assert (g.array == 3).all()
    assert ending(lambda: touch(address, "read")) == "fine"
    assert ending(lambda: touch(address, "write")) == "signal SIGSEGV"


@pytest.mark.parametrize("shared", [True, False])
def test_only_shared_memory_brings_back_what_a_child_writes(shared: bool) -> None:
    g = guarded(shared=shared)
    g.array[...] = 0
    assert ending(lambda: g.array.fill(5)) == "fine"
    assert (g.array == (5 if shared else 0)).all()


def test_a_child_that_writes_beside_the_array_is_noticed_by_its_parent() -> None:
    g = guarded()
    address = g.array.ctypes.data + 132
    assert ending(lambda: touch(address, "write")) == "fine"
    assert not g.band_intact()


def test_closing_gives_the_memory_back() -> None:
    def mapped() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")

    before = mapped()
    for _ in range(50):
        g = guarded((1 << 20,))
        g.array = np.empty(0)
        g.close()
    assert mapped() < before + 10 * (1 << 22)


def test_more_than_there_is_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="for a guarded array"):
        guarded((1 << 55,), "int8")

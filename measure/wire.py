"""Messages between a pool and its helper processes, over a socket pair."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

__all__ = ["DEFAULT_BUILDER", "receive", "send"]

DEFAULT_BUILDER = "tilewright.codegen.build:build"


def send(sock: socket.socket, message: Any) -> None:
    """Send one message."""
    data = pickle.dumps(message, protocol=5)
    sock.sendall(struct.pack("<Q", len(data)) + data)


def _exactly(sock: socket.socket, n: int) -> bytes:
    out = bytearray()
    while len(out) < n:
        part = sock.recv(min(1 << 20, n - len(out)))
        if not part:
            raise EOFError("the other side closed the connection")
        out += part
    return bytes(out)


def receive(sock: socket.socket) -> Any:
    """Wait for one message; EOFError if the other side is gone."""
    (size,) = struct.unpack("<Q", _exactly(sock, 8))
    return pickle.loads(_exactly(sock, size))

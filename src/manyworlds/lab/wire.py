"""Messages between a lab and a process that it started: plain data, bytes, and arrays."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

Message = dict[str, Any]
"""Fields of a message: plain data, bytes, and arrays of numbers."""

_LENGTHS = struct.Struct("<QQ")  # of the text, and of the bytes that follow it
_PART = "\0"  # key of a place in those bytes
_DESCRIPTOR = "descriptor"


class Wire:
    """Stream of messages through a local socket; any thread may send, one receives.

    A message may be accompanied by a file descriptor.

    Args:
        end: one end of a pair of Unix sockets.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, object], descriptor: int | None = None) -> None:
        """Send a message, and perhaps a file descriptor, which stays open here.

        Raises:
            TypeError: a field is neither plain data nor bytes nor an array of numbers.
            OSError: the other process ended.
        """
        told = {**message, _DESCRIPTOR: True} if descriptor is not None else message
        text, parts = pack(told)
        lengths = _LENGTHS.pack(len(text), sum(map(len, parts)))
        with self._sending:
            self._socket.sendall(lengths + text)
            for part in parts:
                self._socket.sendall(part)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"\0"], [descriptor])

    def receive(self) -> Message:
        """Wait for a message; the receiver closes a file descriptor in `descriptor`.

        Raises:
            EOFError: the other process ended, or the wire was closed.
        """
        try:
            num_text, num_parts = _LENGTHS.unpack(self._read(_LENGTHS.size))
            message = unpack(self._read(num_text), self._read(num_parts))
            if _DESCRIPTOR in message:
                _, (message[_DESCRIPTOR],), *_ = socket.recv_fds(self._socket, 1, 1)
        except OSError as error:
            raise EOFError(str(error)) from error
        return message

    def close(self) -> None:
        """End the stream in both directions; a second call does nothing."""
        with contextlib.suppress(OSError):  # the other process ended before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, length: int) -> bytearray:
        buffer = bytearray(length)
        rest = memoryview(buffer)
        while rest:
            count = self._socket.recv_into(rest)
            if not count:
                raise EOFError("The other process ended.")
            rest = rest[count:]
        return buffer


def pack(message: Mapping[str, object]) -> tuple[bytes, list[memoryview]]:
    """Return a message as JSON, and the bytes that its places refer to.

    Raises:
        TypeError: a field is neither plain data nor bytes nor an array of numbers.
    """
    parts: list[memoryview] = []
    end = 0

    def place(value: object) -> object:
        nonlocal end
        if isinstance(value, np.generic):
            return value.item()
        rest: list[object] = []
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            rest = [value.dtype.str, list(value.shape)]
            value = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        elif not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"A message cannot contain {type(value).__name__}: {value!r:.80}.")
        part = memoryview(value).cast("B")
        parts.append(part)
        start, end = end, end + len(part)
        return {_PART: [start, end, *rest]}

    return json.dumps(message, default=place).encode(), parts


def unpack(text: bytes | bytearray, content: bytes | bytearray) -> Message:
    """Return the message that `pack` encoded; its arrays share memory with `content`."""

    def restore(found: dict[str, Any]) -> object:
        if _PART not in found:
            return found
        start, end, *rest = found[_PART]
        if not rest:
            return bytes(memoryview(content)[start:end])
        dtype, shape = rest
        count = math.prod(shape)
        return np.frombuffer(content, np.dtype(dtype), count, start).reshape(shape)

    return json.loads(text, object_hook=restore)

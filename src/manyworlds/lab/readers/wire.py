"""Messages between a lab and a process that it started: plain data, bytes, and arrays."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyworlds.lab.readers.packing import load_msgpack, pack_array, unpack_array

Message = dict[str, Any]
"""Fields of a message: plain data, bytes, and arrays of numbers."""

_LENGTH = struct.Struct("<Q")  # of the message that follows
_DESCRIPTOR = "descriptor"
_PAYLOAD = "payload"
_CHUNK = 2**16  # most bytes that are read at once


class Wire:
    """Stream of messages through a local socket; any thread may send, one receives.

    A message may be accompanied by a file descriptor, and by a payload: many bytes, which are not
    copied on the way.

    Args:
        end: one end of a pair of Unix sockets.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = threading.Lock()
        self._unread = bytearray()
        self._descriptors: deque[int] = deque()
        self._room = socket.CMSG_SPACE(struct.calcsize("i"))  # for one file descriptor

    def send(
        self,
        message: Mapping[str, object],
        descriptor: int | None = None,
        payload: memoryview | bytes | None = None,
    ) -> None:
        """Send a message.

        Args:
            message: its fields.
            descriptor: file descriptor, which stays open here.
            payload: bytes that come with the message.

        Raises:
            TypeError: a field is neither plain data nor bytes nor an array of numbers.
            OSError: the other process ended.
        """
        told = dict(message)
        if descriptor is not None:
            told[_DESCRIPTOR] = True
        if payload is not None:
            told[_PAYLOAD] = len(payload)
        content = pack(told)
        length = _LENGTH.pack(len(content))
        with self._sending:
            if descriptor is None:
                self._socket.sendall(length + content)
            else:
                socket.send_fds(self._socket, [length], [descriptor])
                self._socket.sendall(content)
            if payload is not None:
                self._socket.sendall(payload)

    def wait(self, timeout: float) -> bool:
        """Wait for a message, or for the end of the wire; return False if none comes in time.

        Args:
            timeout: the time [s].

        Raises:
            EOFError: the wire was closed.
        """
        if self._unread:
            return True
        waiting = select.poll()
        try:
            waiting.register(self._socket, select.POLLIN)
        except ValueError as error:  # a closed socket has no number
            raise EOFError(str(error)) from error
        return bool(waiting.poll(1000.0 * timeout))

    def receive(self) -> Message:
        """Wait for a message; the receiver closes a file descriptor in `descriptor`.

        A payload is in `payload`, as a bytearray.

        Raises:
            EOFError: the other process ended, or the wire was closed.
        """
        try:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
            message = unpack(self._read(length))
            if _PAYLOAD in message:
                message[_PAYLOAD] = self._read_payload(message[_PAYLOAD])
        except OSError as error:
            raise EOFError(str(error)) from error
        if _DESCRIPTOR in message:
            message[_DESCRIPTOR] = self._descriptors.popleft()
        return message

    @property
    def has_ended(self) -> bool:
        """True if the other process has ended, and all of its messages were received."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """End the stream in both directions; a second call does nothing."""
        with contextlib.suppress(OSError):  # the other process ended before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, length: int) -> bytes:
        """Return the next bytes; what came with them is kept for the next call."""
        while len(self._unread) < length:
            content, ancillary, *_ = self._socket.recvmsg(_CHUNK, self._room)
            if not content:
                raise EOFError("The other process ended.")
            self._unread += content
            for *_, packed in ancillary:
                self._descriptors += struct.unpack("i", packed)
        found = bytes(self._unread[:length])
        del self._unread[:length]
        return found

    def _read_payload(self, length: int) -> bytearray:
        """Return the next bytes, which are received into their place."""
        payload = bytearray(length)
        count = min(length, len(self._unread))
        payload[:count] = self._unread[:count]
        del self._unread[:count]
        with memoryview(payload) as view:
            while count < length:
                received = self._socket.recv_into(view[count:])
                if not received:
                    raise EOFError("The other process ended.")
                count += received
        return payload


def pack(message: Mapping[str, object]) -> bytes:
    """Return a message as msgpack; arrays are `packing.ARRAY`.

    Raises:
        TypeError: a field is neither plain data nor bytes nor an array of numbers.
    """
    msgpack = load_msgpack()
    try:
        return msgpack.packb(message, default=_plain, unicode_errors="surrogatepass")
    except (OverflowError, ValueError) as error:  # a number beyond 64 bits, too many levels
        raise TypeError(f"A message cannot contain this: {error}.") from error


def unpack(content: bytes) -> Message:
    """Return the message that `pack` encoded; its arrays are writable."""
    msgpack = load_msgpack()
    return msgpack.unpackb(
        content, ext_hook=_array, strict_map_key=False, unicode_errors="surrogatepass"
    )


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return pack_array(value)
    raise TypeError(f"A message cannot contain {type(value).__name__}: {value!r:.80}.")


def _array(kind: int, content: bytes) -> object:
    value = unpack_array(kind, content)
    return value.copy() if isinstance(value, np.ndarray) else value

"""Socket for requests that notices when the other side is gone, and what goes over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.lab.client.errors import BadValueError, error_of
from manyworlds.lab.readers.packing import load_msgpack, unpack_array
from manyworlds.lab.verb_methods import Reply
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import zmq

    from manyworlds.lab.readers.curve_access import ClientKeys

_POLL_S = 0.1  # longest wait in which a request to stop is not noticed


class LostError(Exception):
    """The connection ended.

    Args:
        sent: whether the request was sent before, so that it may have been carried out.
    """

    def __init__(self, sent: bool) -> None:
        super().__init__()
        self.sent = sent


class RequestSocket:
    """One socket for requests; after any error it cannot be used any more.

    Args:
        context: ZeroMQ's context.
        address: address of the server, such as `tcp://127.0.0.1:5559`.
        stopping: ends all waits.
        keys: keys of an encrypted port; None for a port without encryption.
    """

    def __init__(
        self,
        context: zmq.Context,
        address: str,
        stopping: threading.Event,
        keys: ClientKeys | None = None,
    ) -> None:
        self._zmq: Any = require_extra("zmq", "net")
        self._stopping = stopping
        self._socket = context.socket(self._zmq.REQ)
        self._socket.setsockopt(self._zmq.LINGER, 0)
        self._monitor = self._socket.get_monitor_socket(self._zmq.EVENT_DISCONNECTED)
        self._poller = self._zmq.Poller()
        self._poller.register(self._socket, self._zmq.POLLIN)
        self._poller.register(self._monitor, self._zmq.POLLIN)
        if keys is not None:
            keys.protect(self._socket)
        self._socket.connect(address)

    def ask(self, request: bytes, timeout: float) -> bytes:
        """Send a request, and return its reply.

        Args:
            request: the request.
            timeout: longest wait [s].

        Raises:
            LostError: the connection ended before the reply came.
            TimeoutError: no reply came in time.
        """
        if self._monitor.poll(0):
            raise LostError(sent=False)
        self._socket.send(request)
        end = time.monotonic() + timeout
        while not self._stopping.is_set():
            left = end - time.monotonic()
            if left <= 0.0:
                break
            ready = dict(self._poller.poll(1e3 * min(left, _POLL_S)))
            if self._socket in ready:
                return self._socket.recv()
            if self._monitor in ready:
                raise LostError(sent=True)
        raise TimeoutError

    def close(self) -> None:
        """Close the socket."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=0)


def pack_request(op: str, session: str | None, fields: Mapping[str, object]) -> bytes:
    """Return a request as bytes.

    Raises:
        BadValueError: a field is no plain data, and no array.
    """
    msgpack = load_msgpack()
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return msgpack.packb({"op": op, "session_id": session, **given}, default=_plain)
    except (TypeError, OverflowError, ValueError) as error:
        name = fields["verb"] if op == "call_verb" else op
        raise BadValueError("bad_value", f"{name}: {error}.") from error


def unpack_reply(content: bytes) -> Reply:
    """Return the fields of a reply.

    Raises:
        LabError: the lab refused the request.
    """
    reply = unpack_values(content)
    if reply["op"] == "error":
        raise error_of(reply["code"], reply["message"])
    del reply["op"]
    return reply


def unpack_values(content: bytes) -> Reply:
    """Return the fields of a message with arrays."""
    msgpack = load_msgpack()
    return msgpack.unpackb(content, ext_hook=unpack_array, strict_map_key=False)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # tensors of any library
        return value.tolist()  # type: ignore[attr-defined]
    raise TypeError(f"a field cannot be of type {type(value).__name__}")

"""Snapshots that the server of a lab publishes, for a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manyworlds.lab.client.request_socket import unpack_values
from manyworlds.lab.loop.shared_snapshots import SNAPSHOT_TOPIC, unpack_snapshot
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    from manyworlds.lab.readers.curve_access import ClientKeys

_QUEUE = 50  # snapshots that wait for the program
_ON_THE_WAY_MS = 1
_MOST = 1000  # snapshots that are read at once


class SnapshotStream:
    """Newest snapshot of those that come; it belongs to the thread that creates it.

    Args:
        address: address of the server's requests.
        ports: ports of the server by their use.
        keys: keys of encrypted ports; None for ports without encryption.
    """

    def __init__(self, address: str, ports: Mapping[str, int], keys: ClientKeys | None) -> None:
        self._zmq: Any = require_extra("zmq", "net")
        self._context = self._zmq.Context()
        self._socket = self._context.socket(self._zmq.SUB)
        if keys is not None:
            keys.protect(self._socket)
        self._socket.setsockopt(self._zmq.RCVHWM, _QUEUE)
        self._socket.setsockopt(self._zmq.SUBSCRIBE, SNAPSHOT_TOPIC)
        machine = address.rpartition(":")[0]
        port = ports["state" if keys is None else "secure state"]
        self._socket.connect(f"{machine}:{port}")

    def wait(self, seconds: float) -> Snapshot | None:
        """Return the newest snapshot that came since the last call, or None after a time [s]."""
        newest = None
        count = 0
        patience = int(1e3 * seconds)
        while count < _MOST and self._socket.poll(patience):
            newest = self._socket.recv_multipart()[1]
            count += 1
            # Where the queue was full, more messages are on their way to it.
            patience = _ON_THE_WAY_MS if count >= _QUEUE else 0
        if newest is None:
            return None
        return unpack_snapshot(unpack_values(newest))

    def close(self) -> None:
        """Close the connection."""
        self._context.destroy(linger=0)

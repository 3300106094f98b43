"""Calls of a lab by a process that it started: each waits for its reply at a socket of its own.

On one socket for all calls, a thread would read the replies and wake the callers up, and another
one the requests: two more threads that the processor has to start for each call.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from manyworlds.lab.loop.scheduling import prefer_wakeups
from manyworlds.lab.readers.wire import Message, Wire

_MOST = 8
"""Number of calls that one process can make at the same time; further ones wait."""


class CallChannels:
    """The caller's ends; any thread may call.

    Args:
        wire: wire that takes new sockets to the lab.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._turns = threading.BoundedSemaphore(_MOST)
        self._lock = threading.Lock()
        self._free: list[Wire] = []
        self._closed = False

    def ask(self, request: Message, descriptor: int | None = None) -> Message:
        """Send a request, perhaps with a file descriptor, and wait for its reply.

        Raises:
            TypeError: a field of the request cannot be sent.
            OSError: the lab has ended.
            EOFError: the lab has ended.
        """
        with self._turns:
            channel = self._take()
            try:
                channel.send(request, descriptor)
                reply = channel.receive()
            except TypeError:  # nothing was sent
                self._give_back(channel)
                raise
            except BaseException:  # the reply may still come
                channel.close()
                raise
            self._give_back(channel)
            return reply

    def close(self) -> None:
        """Close the sockets that no call uses; the lab closes the others."""
        with self._lock:
            self._closed = True
            while self._free:
                self._free.pop().close()

    def _take(self) -> Wire:
        with self._lock:
            if self._free:
                return self._free.pop()  # the one used last, whose thread is awake soonest
        near, far = socket.socketpair()
        channel = Wire(near)
        try:
            with far:
                self._wire.send({"channel": True}, far.fileno())
        except OSError:
            channel.close()
            raise
        return channel

    def _give_back(self, channel: Wire) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(channel)
                return
        channel.close()


class CallServer:
    """The lab's ends: a thread for each socket, which answers its requests one after another.

    Args:
        answer: called with a request, and with a function that sends the reply, in any thread.
    """

    def __init__(self, answer: Callable[[Message, Callable[[Message], None]], None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._channels: set[Wire] = set()
        self._closed = False

    def add(self, descriptor: int) -> None:
        """Answer the requests of a socket from now on."""
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)
        channel = Wire(end)
        with self._lock:
            if not self._closed:
                self._channels.add(channel)
                name = "manyworlds-link-call"
                threading.Thread(
                    target=self._serve, args=(channel,), name=name, daemon=True
                ).start()
                return
        channel.close()

    def close(self) -> None:
        """Close all sockets; calls that wait for a reply fail."""
        with self._lock:
            self._closed = True
            channels, self._channels = self._channels, set()
        for channel in channels:
            channel.close()

    def _serve(self, channel: Wire) -> None:
        prefer_wakeups()
        with contextlib.suppress(EOFError, OSError):  # an end of the socket was closed
            while True:
                self._answer(channel.receive(), channel.send)
        with self._lock:
            self._channels.discard(channel)
        channel.close()

"""Sockets that are bound as soon as their port is free, and say who holds it until then."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import zmq

State = Literal["waiting", "open", "closed"]

MOST_FRAMES = 16
"""Frames of a message that are kept; no message of a client needs as many."""
STATE_BACKLOG = 500
"""Messages about states that wait for a slow reader before further ones are dropped. One state can
have hundreds, one for each joint and sensor, which a fast reader gets at once."""
STATE_BUFFER = 2**19
"""Bytes of states that the operating system holds for a slow reader; with much less, large states
wait for the acknowledgments of a fast one."""
FIRST_S = 0.25
LONGEST_S = 5.0
"""Shortest and longest time between two attempts to open a port [s]."""
_LISTENING = "0A"  # state of a socket in /proc/net/tcp
_BACKLOG = 10_000  # messages that wait for a slow reader before further ones are dropped
_REMEDY = (
    ": end that process, and the server opens what is free then, or choose other ports, as with "
    "`manyworlds lab TARGET --serve --port-shift 100`."
)
_MOST_TOPICS = 10_000  # subscriptions that are remembered


class Port:
    """One socket and its port: `waiting` until it is bound, `open`, then `closed`.

    It belongs to the thread that calls `poll`.

    Args:
        context: ZeroMQ's context.
        use: word for what it is for, for messages.
        kind: type of the socket, such as `zmq.XPUB`.
        host: address to listen on.
        number: port; 0 takes any free one.
        report: receives a sentence when the port is in use, and when it is open after that.
        max_bytes: largest message; a peer that sends a larger one is disconnected.
        backlog: number of messages that wait for a slow reader before further ones are dropped.
        buffer: bytes that the operating system holds for each reader; 0 for its own choice, which
            may be megabytes.
        others: ports that do as well if this one is in use.
        secure: encrypts a socket before it is bound; None for none.
    """

    def __init__(
        self,
        context: zmq.Context,
        use: str,
        kind: int,
        host: str,
        number: int,
        report: Callable[[str], None],
        max_bytes: int,
        *,
        backlog: int = _BACKLOG,
        buffer: int = 0,
        others: Sequence[int] = (),
        secure: Callable[[zmq.Socket], None] | None = None,
    ) -> None:
        self._zmq: Any = require_extra("zmq", "net")
        self.use = use
        self.host = host
        self.number = number
        self.state: State = "waiting"
        self.error = ""
        """Reason why it waits; empty if it does not."""
        self.messages = 0
        """Number of messages that were sent or received."""
        self.is_secure = secure is not None
        """True if it is encrypted."""
        self._report = report
        self._others = others
        # Plain numbers and single frames: half the time of `send_multipart` with flags.
        self._last = int(self._zmq.NOBLOCK)
        self._more = self._last | int(self._zmq.SNDMORE)
        self._next = 0.0
        self._pause = FIRST_S
        self.socket = context.socket(kind)
        self.socket.setsockopt(self._zmq.LINGER, 0)
        self.socket.setsockopt(self._zmq.MAXMSGSIZE, max_bytes)
        self.socket.setsockopt(self._zmq.SNDHWM, backlog)
        self.socket.setsockopt(self._zmq.RCVHWM, backlog)
        if buffer:
            self.socket.setsockopt(self._zmq.SNDBUF, buffer)
        # With a domain, ZeroMQ refuses peers of its protocol's version 1, which has no handshake:
        # any web page can send such messages, as the content of an HTTP request.
        self.socket.setsockopt(self._zmq.ZAP_DOMAIN, b"local")
        if secure is not None:
            secure(self.socket)

    def poll(self, now: float) -> bool:
        """Bind the socket if it is time to try again; return True if it is open.

        Args:
            now: time [s].
        """
        if self.state != "waiting" or now < self._next:
            return self.state == "open"
        error = self._bind(self.number)
        if error is not None and not any(self._bind(number) is None for number in self._others):
            self._next = now + self._pause
            self._pause = min(2.0 * self._pause, LONGEST_S)
            self._wait(error)
            return False
        self.state = "open"
        end = self.socket.getsockopt(self._zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        self.number = int(end.rpartition(":")[2])
        if self.error:
            self._report(f"The {self.use} port {self.number} is free and open now.")
        self.error = ""
        return True

    def _bind(self, number: int) -> Exception | None:
        """Return the error if a port cannot be had."""
        try:
            self.socket.bind(f"tcp://{_in_address(self.host)}:{number or '*'}")
        except self._zmq.ZMQError as error:
            return error
        return None

    def _wait(self, error: Exception) -> None:
        text = why_waiting(self.use, self.number, error)
        if text != self.error:
            self._report(text)
        self.error = text

    def close(self) -> None:
        """Close the socket."""
        self.state = "closed"
        self.socket.close()

    def receive(self, most: int) -> Iterator[list[zmq.Frame]]:
        """Yield the messages that wait, as frames; of longer ones the first `MOST_FRAMES`."""
        for _ in range(most):
            try:
                frame = self.socket.recv(self._zmq.NOBLOCK, copy=False)
            except self._zmq.Again:
                return
            frames = [frame]
            while frame.more:
                frame = self.socket.recv(copy=False)
                if len(frames) < MOST_FRAMES:
                    frames.append(frame)
            self.messages += 1
            yield frames

    def send(self, *frames: bytes) -> None:
        """Send a message; it is dropped for peers that do not read."""
        try:
            for frame in frames[:-1]:
                self.socket.send(frame, self._more)
            self.socket.send(frames[-1], self._last)
        except self._zmq.Again:
            return
        self.messages += 1

    def describe(self) -> dict[str, object]:
        """Return use, number, state, error and number of messages as plain data."""
        return {
            "use": self.use,
            "port": self.number,
            "state": self.state,
            "error": self.error,
            "messages": self.messages,
            "secure": self.is_secure,
        }


class Outlet(Port):
    """Port that publishes, and knows what its peers have subscribed to: an `XPUB` socket."""

    wanted: frozenset[bytes] = frozenset()
    """Beginnings of the topics that peers want."""

    def read_subscriptions(self) -> bool:
        """Read who wants what; return True if that has changed."""
        wanted = set(self.wanted)
        for frames in self.receive(_MOST_TOPICS):
            event = frames[0].bytes
            if event[:1] == b"\x01" and len(wanted) < _MOST_TOPICS:
                wanted.add(event[1:])
            elif event[:1] == b"\x01":
                wanted.add(b"")  # too many to remember: everything
            elif event[:1] == b"\x00":
                wanted.discard(event[1:])
        before, self.wanted = self.wanted, frozenset(wanted)
        return before != self.wanted

    def wants(self, topic: bytes) -> bool:
        """Return True if a peer has subscribed to topics that begin so."""
        return any(topic.startswith(want) or want.startswith(topic) for want in self.wanted)


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def why_waiting(use: str, number: int, error: Exception) -> str:
    """Return the reason why a port is not open, as a sentence that names its holder."""
    reason = f"not available ({error})"
    if getattr(error, "errno", 0) == errno.EADDRINUSE:
        holder = holder_of(number)
        reason = f"in use by {holder}" if holder else "in use"
    return f"The {use} port {number} is {reason}{_REMEDY}"


def why_all_wait(ports: Sequence[Mapping[str, object]]) -> list[str]:
    """Return why ports are not open, as one sentence for all with the same reason.

    Args:
        ports: descriptions of ports, see `Port.describe`; those without an error do not count.
    """
    by_reason: dict[str, dict[str, str]] = {}
    for port in ports:
        error = str(port["error"])
        if error:
            reason = error.partition(f" port {port['port']} is ")[2]
            by_reason.setdefault(reason, {})[f"{port['use']} {port['port']}"] = error
    sentences = []
    for reason, errors in by_reason.items():
        if len(errors) > 1:
            sentences.append(f"The ports {', '.join(errors)} are {reason}")
        else:
            sentences += errors.values()
    return sentences


def holder_of(port: int) -> str:
    """Return the process that listens on a TCP port of this machine; empty if it is not known."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        path = Path(table)
        if not path.is_file():
            continue
        for line in path.read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{rest[5]}]")
    if not inodes:
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        if inodes & set(_links(process / "fd")):
            command = b""
            with contextlib.suppress(OSError):  # it has just ended
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
            return f"process {process.name} ({command.decode(errors='replace').strip()[:80]})"
    return ""


def _links(folder: Path) -> Iterator[str]:
    """Yield what a process has open; nothing if it is another user's, or has just ended."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            with contextlib.suppress(OSError):  # closed in the meantime
                yield os.readlink(file)

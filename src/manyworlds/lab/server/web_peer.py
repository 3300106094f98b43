"""One connection of the WebSocket, and the messages that wait for it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.server.messages import Encoding

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

_MOST_EVENTS = 100
_SILENT = 1011  # code of the end of a connection whose peer does not answer


class WebPeer:
    """Connection of a browser or a program.

    A peer that does not read gets the newest state and the newest events when it reads again;
    older ones are dropped and counted.

    Args:
        socket: the connection.
    """

    def __init__(self, socket: ServerConnection) -> None:
        self.encoding: Encoding = "msgpack"
        """Format of the newest message that came, which replies and other messages have."""
        self.topics: frozenset[str] = frozenset()
        self.noted = False
        """True after the first event, which describes the present."""
        self.dropped: Counter[str] = Counter()
        """Number of messages that were dropped, by topic."""
        self.num_answered = 0
        """Number of requests that were answered."""
        self.is_waiting = False
        """True while a request is being answered."""
        self._socket = socket
        self._period = 0.0
        self._due = 0.0
        self._frame = -1
        self._state = b""
        self._events: deque[bytes] = deque(maxlen=_MOST_EVENTS)
        self._wake = asyncio.Event()

    def subscribe(self, topics: Sequence[str], rate: float) -> None:
        """Receive these topics from now on, and states at most so often per second."""
        self._period = 1.0 / rate
        self._due = 0.0
        self._frame = -1
        self.noted = False
        self.topics = frozenset(topics)

    def is_due(self, now: float, frame: int) -> bool:
        """Return True if the peer is to get a state.

        Args:
            now: time [s].
            frame: number of the newest snapshot.
        """
        return now >= self._due and frame != self._frame and "state/full" in self.topics

    def note_state(self, now: float, frame: int) -> None:
        """Note that the peer is given a state; see `is_due`."""
        self._due = max(self._due + self._period, now)
        self._frame = frame

    def offer_state(self, content: bytes) -> None:
        """Give the peer a state, in place of one that it has not got yet."""
        self.dropped["state/full"] += bool(self._state)
        self._state = content
        self._wake.set()

    def offer_event(self, content: bytes) -> None:
        """Give the peer an event."""
        self.dropped["events"] += len(self._events) == _MOST_EVENTS
        self._events.append(content)
        self._wake.set()

    async def send(self, content: bytes) -> None:
        """Send a message: JSON as text, msgpack as bytes; wait while the peer does not read."""
        message = content.decode() if content[:1] == b"{" else content
        await self._socket.send(message)

    async def keep_alive(self, period: float) -> None:
        """Send pings, and end the connection of a peer that does not answer them.

        While the peer waits for an answer, for as long as the lab takes, few of its messages are
        read, and its pong may be behind them: that time does not count.

        Args:
            period: time between pings, and longest wait for an answer to one [s].
        """
        while True:
            await asyncio.sleep(period)
            answered = self.num_answered
            pong = asyncio.ensure_future(await self._socket.ping())
            await asyncio.wait([pong], timeout=period)
            if not (pong.done() or self.is_waiting or self.num_answered > answered):
                await self._socket.close(_SILENT, "no answer to a ping")
                return

    async def push(self) -> None:
        """Send what was offered, until the connection ends."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._events:
                await self.send(self._events.popleft())
            if self._state:
                state, self._state = self._state, b""
                await self.send(state)

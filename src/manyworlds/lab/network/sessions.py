"""Sessions of clients: one of them drives, the others observe."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from manyworlds.lab.network.config import Limits
from manyworlds.lab.network.messages import Encoding
from manyworlds.lab.network.notes import Notes
from manyworlds.lab.network.observations import Level

HEARTBEAT_S = 2.0
"""Time without a message after which a session with heartbeats ends [s]."""


@runtime_checkable
class Subscriber(Protocol):
    """Connection that receives messages which are no replies."""

    def subscribe(self, topics: Sequence[str], rate: float) -> None:
        """Receive these topics from now on, states at most so often per second."""
        ...


@dataclass(eq=False)
class Session:
    """One client, from its `hello` until it leaves."""

    peer: Hashable
    """Connection of the client."""
    name: str = ""
    """Name of the client, for people."""
    encoding: Encoding = "msgpack"
    observations: Level = "standard"
    heartbeats: bool = False
    """True if it ends after `HEARTBEAT_S` of silence; false if it ends with its connection."""
    seen: float = 0.0
    """Time of its last message [s]."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    mode_before: str = ""
    """Mode of the world before it changed that; empty if it did not."""

    def describe(self, drives: bool) -> dict[str, object]:
        """Return name, role and encoding as plain data."""
        return {
            "name": label(self),
            "drives": drives,
            "encoding": self.encoding,
            "heartbeats": self.heartbeats,
        }


class Sessions:
    """All sessions, and the one that drives.

    Args:
        limits: bounds on their number.
        takeover: whether the newest client without a role drives.
        on_loss: called with a session that no longer drives, because it left or was replaced.
    """

    def __init__(
        self, limits: Limits, takeover: bool, on_loss: Callable[[Session, str], None]
    ) -> None:
        self._limits, self._takeover, self._on_loss = limits, takeover, on_loss
        self._sessions: dict[str, Session] = {}
        self.driver: Session | None = None
        self.events = Notes()
        """Sentences about who drives, the newest last."""

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: object) -> Session | None:
        """Return the session of an id, or None."""
        return self._sessions.get(key) if isinstance(key, str) else None

    def of_peer(self, peer: Hashable) -> Session | None:
        """Return the newest session of a connection, or None."""
        mine = [session for session in self._sessions.values() if session.peer == peer]
        return mine[-1] if mine else None

    def note_message(self, peer: Hashable, now: float) -> None:
        """Note that a connection has sent something, which may wait for its answer."""
        for session in self:
            if session.peer == peer:
                session.seen = now

    def open(self, session: Session, drives: bool | None) -> None:
        """Add a session; an earlier one of the same connection ends.

        Args:
            session: the session.
            drives: true to drive in place of any other, false to observe; None drives if nobody
                does, or if the newest client always does.
        """
        earlier = self.of_peer(session.peer)
        took = earlier is not None and earlier is self.driver
        if earlier is not None:
            del self._sessions[earlier.id]
            if took:
                self.driver = None
                session.mode_before = earlier.mode_before
        while len(self._sessions) >= self._limits.max_sessions:
            watching = [s for s in self._sessions.values() if s is not self.driver]
            self.close(min(watching, key=lambda s: s.seen), "it was silent for longest")
        self._sessions[session.id] = session
        if drives or (drives is None and (self._takeover or self.driver is None)):
            self.take(session)

    def take(self, session: Session) -> None:
        """Let a session drive; the one that drove becomes an observer."""
        before, self.driver = self.driver, session
        if before is session:
            return
        self.events.append(f"{label(session)} drives")
        if before is not None:
            session.mode_before = session.mode_before or before.mode_before
            self.events.append(f"{label(before)} observes: {label(session)} took over")

    def release(self, session: Session, reason: str) -> None:
        """End the driving of a session; it stays as an observer."""
        if session is self.driver:
            self.driver = None
            self.events.append(f"{label(session)} does not drive any more: {reason}")
            self._on_loss(session, reason)

    def close(self, session: Session, reason: str) -> None:
        """End a session."""
        if self._sessions.pop(session.id, None) is not None:
            self.release(session, reason)

    def close_peer(self, peer: Hashable) -> None:
        """End the sessions of a connection that was lost, but for those with heartbeats."""
        for session in self:
            if session.peer == peer and not session.heartbeats:
                self.close(session, "its connection ended")

    def expire(self, now: float) -> None:
        """End sessions whose heartbeats stopped."""
        for session in self:
            if session.heartbeats and now - session.seen > HEARTBEAT_S:
                self.close(session, f"it was silent for {HEARTBEAT_S:g} s")


def label(session: Session) -> str:
    """Return how a session is called in messages."""
    return f"{session.name or 'client'} {session.id[:8]}"

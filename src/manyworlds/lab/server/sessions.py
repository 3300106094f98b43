"""Sessions of clients: one of them drives, the others observe."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from manyworlds.lab.server.config import Limits
from manyworlds.lab.server.messages import Encoding
from manyworlds.lab.server.notes import Notes

HEARTBEAT_S = 2.0
"""Time without a message after which a session with heartbeats ends [s]."""
_REQUEST_S = 0.1  # most that one request takes from the leases of all sessions
_PAUSE_S = 0.5  # most that one pause of the server takes from them
_MOST_ENDED = 100  # sessions whose end is remembered


class LeaseClock:
    """Time in which the server could read messages [s]; the leases of sessions are counted in it.

    It nearly stands still while the server answers a request, and while its process is stopped:
    then the heartbeats of all clients wait, and no session may end because of that.

    Args:
        clock: function that returns the time [s].
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._state: tuple[float, float | None] = 0.0, None
        """Time that does not count, and the beginning of the present request; replaced as a whole,
        because other threads read it."""
        self._looked = self()

    def __call__(self) -> float:
        """Return the time."""
        skipped, began = self._state
        now = self._clock()
        if began is not None:
            now = min(now, began + _REQUEST_S)
        return now - skipped

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Count at most a part of the time until the end of the context."""
        skipped = self._state[0]
        began = self._clock()
        self._state = skipped, began
        try:
            yield
        finally:
            excess = max(self._clock() - began - _REQUEST_S, 0.0)
            self._state = skipped + excess, None

    def look(self) -> None:
        """Note that the server looks for messages; of a long time since then, a part counts."""
        excess = max(self() - self._looked - _PAUSE_S, 0.0)
        self._state = self._state[0] + excess, None
        self._looked = self()


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
    heartbeats: bool = False
    """True if it ends after `HEARTBEAT_S` of silence; false if it ends with its connection."""
    seen: float = 0.0
    """Time of its last message, of a `LeaseClock` [s]."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    mode_before: str = ""
    """Mode of the world before it changed that; empty if it did not."""
    mode: str = ""
    """Mode in which it drives: that when it began to, or the one that it has set since then."""
    lost: str = ""
    """Reason why it does not drive any more, until its client is told."""

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
        mode: returns the mode of the world.
    """

    def __init__(
        self,
        limits: Limits,
        takeover: bool,
        on_loss: Callable[[Session, str], None],
        mode: Callable[[], str],
    ) -> None:
        self._limits = limits
        self._takeover = takeover
        self._on_loss = on_loss
        self._mode = mode
        self._ended: dict[str, str] = {}
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

    def why_ended(self, key: object) -> str:
        """Return the reason why the session of an id ended; empty if it is not known."""
        return self._ended.get(key, "") if isinstance(key, str) else ""

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
            self._remove(earlier, "its connection said hello again")
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
        session.mode = self._mode()
        session.lost = ""
        before, self.driver = self.driver, session
        if before is session:
            return
        self.events.append(f"{label(session)} drives")
        if before is not None:
            session.mode_before = session.mode_before or before.mode_before
            before.lost = f"{label(session)} took over"
            self.events.append(f"{label(before)} observes: {label(session)} took over")

    def release(self, session: Session, reason: str) -> None:
        """End the driving of a session; it stays as an observer."""
        if session is self.driver:
            self.driver = None
            session.lost = reason
            self.events.append(f"{label(session)} does not drive any more: {reason}")
            self._on_loss(session, reason)

    def close(self, session: Session, reason: str) -> None:
        """End a session."""
        if session.id in self._sessions:
            self._remove(session, reason)
            self.release(session, reason)

    def close_peer(self, peer: Hashable) -> None:
        """End the sessions of a connection that was lost, but for those with heartbeats."""
        for session in self:
            if session.peer == peer and not session.heartbeats:
                self.close(session, "its connection ended")
            elif session.peer == peer:
                session.peer = None  # a new connection may get the number of this one

    def expire(self, now: float) -> None:
        """End sessions whose heartbeats stopped before a time of the `LeaseClock`."""
        for session in self:
            if session.heartbeats and now - session.seen > HEARTBEAT_S:
                self.close(session, f"it was silent for {HEARTBEAT_S:g} s")

    def _remove(self, session: Session, reason: str) -> None:
        del self._sessions[session.id]
        self._ended[session.id] = reason
        while len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]


def label(session: Session) -> str:
    """Return how a session is called in messages."""
    return f"{session.name or 'client'} {session.id[:8]}"

"""Answers requests of clients, whatever carries them."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.face import LabFace
from manyworlds.lab.pictures.cameras import FaceCameras
from manyworlds.lab.server import images, session_operations
from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.held import HeldTwists
from manyworlds.lab.server.loss import leave_in_order
from manyworlds.lab.server.messages import Encoding, decode, encode
from manyworlds.lab.server.operations import (
    OPERATIONS,
    ClientOperation,
    NotYetError,
    Request,
    mode_of,
)
from manyworlds.lab.server.plugin import load_plugins
from manyworlds.lab.server.sessions import LeaseClock, Session, Sessions, label
from manyworlds.lab.verbs.fields import PlainMap

_LOG = logging.getLogger(__name__)

_WITH_OPERATIONS = images, session_operations
"""Modules that register operations of the lab's own protocol."""

_SESSIONLESS = ("hello", "meta")


class Dispatcher:
    """Answers requests: from bytes to bytes, for one live world at a time.

    Args:
        face: the world; None while there is none.
        cfg: settings; not modified.
        clock: function that returns the time [s].
        waits: whether a request waits for an answer that takes long; see `handle`.
        lab_id: id of the lab, by which clients notice that another one answers at a port; empty
            for a new one.

    Raises:
        ValueError: there is no such plugin.
    """

    def __init__(
        self,
        face: LabFace | None,
        cfg: LabServerCfg | None = None,
        clock: Callable[[], float] = time.monotonic,
        waits: bool = True,
        lab_id: str = "",
    ) -> None:
        self.lab_id = lab_id or str(uuid.uuid4())
        """Id of the lab."""
        self.cfg = LabServerCfg() if cfg is None else cfg
        self._clock = clock
        self.waits = waits
        """True if a request waits for an answer that takes long."""
        self.lease = LeaseClock(clock)
        """Clock of the leases of sessions."""
        self.sessions = Sessions(self.cfg.limits, self.cfg.takeover, self._lost, self._mode)
        self.requests: Counter[str] = Counter()
        """Number of requests, by operation."""
        self.errors: Counter[str] = Counter()
        """Number of errors, by code."""
        self.closing = False
        """True while the server ends: further requests are refused."""
        self.ports: Callable[[], list[dict[str, object]]] = list
        """Function that returns the ports of the server as plain data."""
        self.cameras: FaceCameras | None = None
        """Cameras of the present world."""
        self.held = HeldTwists(self.sessions.events.append)
        """Velocities that end by themselves."""
        self.face: LabFace | None = None
        self._allowance: dict[Hashable, tuple[float, float]] = {}
        self.plugins = load_plugins(self, self.cfg.plugins)
        """Plugins of the server."""
        self.operations: dict[str, ClientOperation] = dict(OPERATIONS)
        """Operations that clients may request, by name."""
        self._codes: dict[str, str] = {}
        for plugin in self.plugins:
            self.operations.update(plugin.operations)
            self._codes.update(plugin.codes)
        self.attach(face)

    def attach(self, face: LabFace | None) -> None:
        """Serve another world, or none until the next call; sessions stay."""
        self.close()
        self.face = face
        self.cameras = None if face is None else FaceCameras(face)
        for plugin in self.plugins:
            plugin.attach(face)

    def close(self) -> None:
        """End the streams of cameras, and velocities that are held."""
        self.held.expire(self.face, math.inf, None)
        if self.cameras is not None:
            self.cameras.close()

    def prepare(self) -> None:
        """Begin what takes long, so that the first client does not wait for it."""
        if self.face is not None:
            request = Request(self, self.face, Session(peer=None))
            for plugin in self.plugins:
                plugin.prepare(request)

    @property
    def now(self) -> float:
        """Time of the server's clock [s]."""
        return self._clock()

    def handle(
        self,
        request: bytes,
        peer: Hashable,
        reply_as: Encoding | None = None,
        again: bool = False,
    ) -> bytes:
        """Return the reply to a request.

        Args:
            request: JSON or msgpack.
            peer: connection that it came from.
            reply_as: format of the request, if that is known, and of the reply; None takes that of
                the session for the reply.
            again: whether the caller can hand the request in again a little later.

        Raises:
            NotYetError: the caller is to do so.
        """
        with self.lease.answering():
            return self._handle(request, peer, reply_as, again)

    def _handle(
        self, request: bytes, peer: Hashable, reply_as: Encoding | None, again: bool
    ) -> bytes:
        session = self.sessions.of_peer(peer)
        encoding = reply_as or (session.encoding if session is not None else "msgpack")
        name = "request"
        code = ""
        began = time.perf_counter()
        try:
            self._count_rate(peer)
            fields = decode(request, self.cfg.limits, reply_as)
            name = self._name(fields)
            self._check_lab(name, fields.get("lab_id"))
            session = self._session(name, fields.get("session_id"), peer)
            reply = self._answer(name, fields, session)
            encoding = reply_as or session.encoding
            content = encode({"op": f"{name}_ok", **reply}, encoding)
            self.requests[name] += 1
        except VerbError as error:
            if again and isinstance(error, NotYetError):
                raise
            code = self._codes.get(error.code, error.code)
            content = encode(self._error(code, str(error)), encoding)
        except Exception as error:
            # A defect of this program: the client and the log get it, and the world keeps running.
            _LOG.exception("The operation '%s' failed.", name)
            text = f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())}"
            code = "internal_error"
            content = encode(self._error(code, text), encoding)
        _LOG.debug("%s: %.2f ms %s", name, 1e3 * (time.perf_counter() - began), code)
        return content

    def disconnected(self, peer: Hashable) -> None:
        """End the sessions of a connection that was lost."""
        self._allowance.pop(peer, None)
        self.sessions.close_peer(peer)

    def tick(self) -> None:
        """End sessions whose heartbeats stopped, and velocities that are no longer held.

        Call it often, when no request waits.
        """
        self.sessions.expire(self.lease())
        self.held.expire(self.face, self._clock(), self.sessions.driver)

    def require_driver(self, session: Session, name: str) -> None:
        """Check that a session drives; it does if nobody else does.

        Raises:
            VerbError: another one drives.
        """
        driver = self.sessions.driver
        if driver is session:
            return
        reason, session.lost = session.lost, ""
        if driver is None and reason:
            raise VerbError(
                "session_expired",
                f"{name}: this session drives no more, because {reason}: take_driver changes that.",
            )
        if driver is None:
            self.sessions.take(session)
        else:
            raise VerbError(
                "session_expired",
                f"{name}: {label(driver)} drives this world, and this session observes: "
                "take_driver changes that.",
            )

    def _answer(self, name: str, fields: PlainMap, session: Session) -> PlainMap:
        operation = self._find(name)
        operation.check_present(fields)
        if self.closing:
            raise VerbError("shutting_down", f"{name}: the server ends.")
        if operation.category == "manager_required":
            self.present().sync_model()  # it may have been rebuilt
        if operation.writes:
            self.require_driver(session, name)
        face: Any = self.face
        return operation.answer(Request(self, face, session), fields)

    def present(self) -> LabFace:
        """Return the present world.

        Raises:
            VerbError: there is none.
        """
        if self.face is None:
            raise VerbError("no_active_manager", "There is no world at present: try again later.")
        return self.face

    def _find(self, name: str) -> ClientOperation:
        known = self.operations
        if name in known:
            return known[name]
        for plugin in self.plugins:
            refused = plugin.refuse(name)
            if refused is not None:
                raise refused
        raise VerbError(
            "unknown_op", f"There is no operation '{name[:80]}'{near(name[:80], known)}"
        )

    def _check_lab(self, name: str, lab_id: object) -> None:
        """Refuse a request for another lab, which had this port before.

        Raises:
            VerbError: it is one.
        """
        if lab_id not in (None, self.lab_id):
            raise VerbError(
                "another_lab",
                f"{name[:80]}: another lab than that of this client answers at this port now: "
                "connect to it.",
            )

    def _session(self, name: str, key: object, peer: Hashable) -> Session:
        """Return the session of a request, a new one for those that need none.

        Raises:
            VerbError: its session ended.
        """
        known = self.sessions.find(key)
        if name == "hello":
            return Session(peer=peer, seen=self.lease())
        if known is None and name in _SESSIONLESS:
            return self.sessions.of_peer(peer) or Session(peer=peer)
        if known is None:
            text = "there is no such session"
            reason = self.sessions.why_ended(key)
            if reason:
                text = f"the session ended, because {reason}"
            raise VerbError("session_expired", f"{name[:80]}: {text}: send hello first.")
        known.seen = self.lease()
        return known

    def _name(self, fields: Mapping[str, object]) -> str:
        name = fields.get("op")
        if not isinstance(name, str) or not name:
            raise VerbError("missing_op", "The request has no field 'op' with a name.")
        return name

    def _error(self, code: str, message: str) -> dict[str, object]:
        self.errors[code] += 1
        if not message.endswith((".", "?")):
            message += "."
        return {"op": "error", "code": code, "message": message}

    def _count_rate(self, peer: Hashable) -> None:
        """Refuse the requests of a client beyond its rate; it may save up those of a second."""
        rate = self.cfg.limits.max_rate
        now = self._clock()
        left, last = self._allowance.get(peer, (rate, now))
        left = min(rate, left + (now - last) * rate)
        self._allowance[peer] = max(left - 1.0, 0.0), now
        if left < 1.0:
            raise VerbError("rate_limited", f"More than {rate:g} requests per second.")

    def _mode(self) -> str:
        """Return the mode of the world; empty if there is none."""
        if self.face is None:
            return ""
        self.face.sync_model()
        return mode_of(self.face.snapshot)

    def _lost(self, session: Session, reason: str) -> None:
        """Leave the world in order after its driver was lost."""
        if self.face is None:
            return
        try:
            leave_in_order(self.face, session.mode_before, zero=self.cfg.on_loss == "zero")
        except VerbError as error:
            self.sessions.events.append(f"after the loss of {label(session)}: {error}")
            _LOG.warning("After the loss of %s (%s): %s", label(session), reason, error)

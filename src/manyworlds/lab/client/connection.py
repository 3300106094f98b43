"""Session of a client with a lab's server, over connections that end."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from manyworlds.lab.client.errors import (
    LabConnectionError,
    LabError,
    LabTimeoutError,
    LabVersionError,
    NotReadyError,
    SessionError,
)
from manyworlds.lab.client.request_socket import (
    LostError,
    RequestSocket,
    pack_request,
    unpack_reply,
)
from manyworlds.lab.client.snapshot_stream import SnapshotStream
from manyworlds.lab.verb_methods import Reply
from manyworlds.utils.extras import require_extra
from manyworlds.utils.web_access import is_local

if TYPE_CHECKING:
    from manyworlds.lab.readers.curve_access import ClientKeys

_LOG = logging.getLogger(__name__)

Role = Literal["driver", "observer", "takeover"]
"""`driver` drives if no other client does, `observer` never, `takeover` in place of any other."""

_BEAT_S = 0.5  # period of heartbeats; a session ends after 2 s without any
_FIRST_S = 0.05  # first pause between attempts to connect
_LONGEST_S = 2.0  # longest one
_LOADS_S = 0.1  # pause between requests while the lab loads its world
_PROTOCOL = 1


class Connection:
    """Session with the server of a lab.

    A connection that ends is made again, and the session goes on. A session that ended, because
    this program stood still or the server was started again, is an error of the next request, and
    of all further ones until `drive`, if this client drove; an observer says `hello` again. Another
    lab at the same port is an error in any case. A thread sends heartbeats, so that the lab notices
    within 2 s when this program was killed. It may be used in any thread.

    Args:
        address: address of the server, such as `tcp://127.0.0.1:5559`.
        name: name of this program, for people.
        role: part that it plays.
        timeout: longest wait for the reply to a request [s].
        patience: longest time of attempts to connect, and of waiting for the lab's world [s].
        keys: keys of an encrypted port; None for a port without encryption.

    Raises:
        MissingExtraError: the extra 'net' is not installed.
        LabConnectionError: no lab answers.
        LabVersionError: the server's protocol is another one.
    """

    def __init__(
        self,
        address: str,
        name: str,
        role: Role,
        timeout: float,
        patience: float,
        keys: ClientKeys | None = None,
    ) -> None:
        zmq: Any = require_extra("zmq", "net")
        require_extra("msgpack", "net")
        self.address = address
        self.timeout = timeout
        self.patience = patience
        self.greeting: Reply = {}
        """Reply of the last `hello`."""
        self.is_driver = False
        """True while this client drives, as far as it knows."""
        self.restarts = 0
        """Number of sessions that ended before this client closed them."""
        self._name = name
        self._keys = keys
        self._session: str | None = None
        self._drove = False
        """True if this client has driven in this session, and was not told of an end of that."""
        self._lost: tuple[str, str] | None = None
        """Code and text of the errors after the loss of the session; None while it goes on."""
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._context = zmq.Context()
        self._socket: RequestSocket | None = None
        try:
            self._greet(role)
        except BaseException:
            self._stopping.set()
            self._drop()
            self._context.destroy(linger=0)
            raise
        self._thread = threading.Thread(target=self._beat, name="manyworlds-client", daemon=True)
        self._thread.start()

    def ask(self, op: str, *, repeat: bool = False, waits: bool = True, **fields: object) -> Reply:
        """Request an operation, and return its reply.

        Args:
            op: name of the operation.
            repeat: whether to request it again if the connection ends before the reply comes, even
                though it may have been carried out.
            waits: whether to wait up to `patience` seconds for a world that is being loaded.
            **fields: fields of the operation.

        Raises:
            LabError: the lab refuses, or does not answer.
        """
        end = time.monotonic()
        if waits:
            end += self.patience
        while True:
            try:
                return self._ask(op, fields, repeat)
            except NotReadyError as error:  # nothing was carried out
                if error.code != "no_active_manager" or time.monotonic() > end:
                    raise
                if self._stopping.wait(_LOADS_S):
                    raise

    def _ask(self, op: str, fields: dict[str, Any], repeat: bool) -> Reply:
        """Request an operation, again after a lost connection if that is safe."""
        name = str(fields.get("verb", op))
        with self._lock:
            if self._stopping.is_set():
                raise LabConnectionError("disconnected", f"{name}: this client is closed.")
            self.check_session(name)
            sessions = self.restarts
            try:
                return self._exchange(op, fields, self.timeout)
            except LostError as lost:
                self._find_session(name)
                if lost.sent and not repeat:
                    raise LabConnectionError(
                        "disconnected",
                        f"{name}: the connection to {self.address} ended before the reply came, "
                        "and it may have been carried out; connected again, read the state first.",
                    ) from None
            except SessionError:
                self._find_session(name)
                if self.restarts == sessions:  # the session goes on, and does not drive
                    self._drove = False
                    raise
            if self.restarts != sessions and not repeat:
                raise SessionError(
                    "session_expired",
                    f"{name}: the session ended, and this client observes in another one now: "
                    "take_driver() changes that.",
                )
            try:
                return self._exchange(op, fields, self.timeout)
            except LostError:
                raise LabConnectionError(
                    "disconnected", f"{name}: the connection to {self.address} ended twice."
                ) from None

    def check_session(self, name: str) -> None:
        """Check that the session was not lost, as far as this client knows.

        Args:
            name: what needs the session, for the error.

        Raises:
            SessionError: it was lost.
        """
        if self._lost is not None:
            code, text = self._lost
            raise SessionError(code, f"{name}: {text}")

    def drive(self) -> str:
        """Drive in place of any other client, in a new session if this one ended.

        Returns:
            The client that drove before.

        Raises:
            LabError: there is no connection, or another lab answers.
        """
        with self._lock:
            if self._lost is not None:
                self._greet("observer")
                self.restarts += 1
                self._lost = None
            previous = self.ask("take_driver")["previous"]
            self.is_driver = self._drove = True
        return previous

    def release(self) -> None:
        """Stop driving, and observe."""
        with self._lock:
            self.ask("release_driver")
            self.is_driver = self._drove = False

    def open_stream(self) -> SnapshotStream:
        """Connect to the port of states."""
        return SnapshotStream(self.address, self.greeting["ports"], self._keys)

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._stopping.is_set()

    def close(self) -> None:
        """End the session; a second call does nothing."""
        with self._lock:
            if self._stopping.is_set():
                return
            with contextlib.suppress(LabError, LostError):  # the lab ends it by itself, or ended
                self._exchange("close_session", {}, min(self.timeout, 2.0))
            self._stopping.set()
            self._drop()
        self._thread.join()
        self._context.destroy(linger=0)

    def _exchange(self, op: str, fields: dict[str, Any], timeout: float) -> Reply:
        """Send one request, and return its reply.

        Raises:
            LostError: the connection ended.
            LabError: the lab refused, or did not answer in time.
        """
        known = {**fields, "lab_id": self.greeting.get("lab_id")}
        request = pack_request(op, self._session, known)
        if self._socket is None:
            self._socket = RequestSocket(self._context, self.address, self._stopping, self._keys)
        try:
            content = self._socket.ask(request, timeout)
        except TimeoutError:
            self._drop()
            raise LabTimeoutError(
                "step_timeout", f"{op}: {self.address} did not answer within {timeout:g} s."
            ) from None
        except BaseException:
            self._drop()
            raise
        return unpack_reply(content)

    def _find_session(self, name: str) -> None:
        """See that the session goes on; connect again for up to `patience` seconds.

        Raises:
            SessionError: it ended, and this client drove in it, or it was in another lab.
            LabConnectionError: no lab answers.
        """

        def look() -> None:
            try:
                self.is_driver = bool(self._exchange("heartbeat", {}, self.patience)["driver"])
            except SessionError as error:
                self._end_session(name, error)

        self._try_until_answered(look)

    def _end_session(self, name: str, error: SessionError) -> None:
        """Note that the session ended; an observer of the same lab begins another one.

        Raises:
            SessionError: this client drove in it, or another lab answers.
        """
        if not self._note_loss(error):
            self.restarts += 1
            self._greet("observer")
            _LOG.warning("Connected again to %s as an observer: %s", self.address, error)
        self.check_session(name)

    def _note_loss(self, error: SessionError) -> bool:
        """Note the end of the session; return False if it only observed a lab that is still there.

        Args:
            error: error of a request in the session.
        """
        if error.code != "session_expired":
            text = f"another lab answers at {self.address} now: connect() to it."
        elif self._drove:
            reason = str(error).partition(": ")[2].removesuffix(": send hello first.")
            text = (
                f"this client has lost the world at {self.address}: {reason}. Mode and state may "
                "be others now; take_driver() drives again."
            )
        else:
            return False
        self.is_driver = False
        self._lost = (error.code, text)
        return True

    def _try_until_answered(self, attempt: Callable[[], None]) -> None:
        """Do something that needs a connection, again and again for up to `patience` seconds.

        Raises:
            LabConnectionError: no lab answered.
        """
        end = time.monotonic() + self.patience
        pause = _FIRST_S
        while True:
            try:
                attempt()
                return
            except (LostError, LabTimeoutError):
                if time.monotonic() >= end or self._stopping.wait(pause):
                    raise self._unreachable() from None
            pause = min(2.0 * pause, _LONGEST_S)

    def _greet(self, role: Role) -> None:
        """Say hello until the lab answers, and begin a session.

        Raises:
            SessionError: another lab than that of the session before answers.
            LabConnectionError: no lab answers.
            LabVersionError: the server's protocol is another one.
        """
        hello = {
            "client": self._name,
            "role": role,
            "heartbeats": True,
            "encoding": "arrays",
            "include_model": False,
        }
        reply: Reply = {}

        def greet() -> None:
            reply.update(self._exchange("hello", hello, self.patience))

        self._try_until_answered(greet)
        if reply.get("protocol") != _PROTOCOL:
            raise LabVersionError(
                "version_mismatch",
                f"{self.address} is {reply.get('server', 'no lab of this project')} with protocol "
                f"{reply.get('protocol')}, but this program needs {_PROTOCOL}.",
            )
        self.greeting = reply
        self._session = reply["session_id"]
        self.is_driver = self._drove = bool(reply["driver"])

    def _unreachable(self) -> LabConnectionError:
        text = f"No lab answers at {self.address} for {self.patience:g} s: "
        host = self.address.partition("://")[2].rpartition(":")[0].strip("[]")
        if self._keys is not None:
            text += "start one with `--serve --listen`, whose client.key is the file of `keys`."
        elif is_local(host):
            text += "start one with `manyworlds lab TARGET --serve`, or give its address."
        else:
            text += (
                "to other machines, `manyworlds lab TARGET --serve --listen` answers at port 6559, "
                "and only with `keys`, a copy of its client.key."
            )
        return LabConnectionError("disconnected", text)

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _beat(self) -> None:
        """Send heartbeats over a socket of their own until the client is closed."""
        socket: RequestSocket | None = None
        while not self._stopping.wait(_BEAT_S):
            if socket is None:
                socket = RequestSocket(self._context, self.address, self._stopping, self._keys)
            session = self._session
            try:
                lab = {"lab_id": self.greeting.get("lab_id")}
                reply = unpack_reply(socket.ask(pack_request("heartbeat", session, lab), 10.0))
                if session == self._session:
                    self.is_driver = bool(reply["driver"])
                    self._drove |= self.is_driver
            except SessionError as error:
                # The request that has the lock finds it, too.
                if self._lock.acquire(blocking=False):
                    if session == self._session:
                        self._note_loss(error)
                    self._lock.release()
            except LabError:
                continue
            except (LostError, TimeoutError):
                socket.close()
                socket = None
        if socket is not None:
            socket.close()

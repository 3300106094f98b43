"""Server of a lab for programs: sockets, in threads of their own."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.scheduling import prefer_wakeups
from manyworlds.lab.readers.curve_access import CurveAccess
from manyworlds.lab.readers.server_view import ServerView
from manyworlds.lab.robots.control import NET, PANEL
from manyworlds.lab.server.camera_server import CameraServer
from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.dispatcher import Dispatcher
from manyworlds.lab.server.messages import Encoding
from manyworlds.lab.server.notes import Notes
from manyworlds.lab.server.plugin import Server
from manyworlds.lab.server.ports import Outlet, Port
from manyworlds.lab.server.request_server import RequestServer
from manyworlds.lab.server.sessions import Session, label
from manyworlds.lab.server.stream_server import StreamServer
from manyworlds.lab.server.web import WebFace
from manyworlds.utils.extras import require_extra

_LOG = logging.getLogger(__name__)

_PAUSE_S = 0.05  # after a failure of a thread
_POLL_S = 0.005
_JOIN_S = 10.0
_P = TypeVar("_P", bound=Port)


class LabHub:
    """Serves one lab at a time to programs on this machine; it outlives the lab.

    Some threads answer requests, others publish states and images and collect targets. They read
    snapshots and call verbs only, so that no client can delay a step. Beside the loop of a lab in
    real time, use `HubProcess`: here, the threads share the interpreter with the steps.

    Args:
        cfg: settings; not modified.
        report: receives sentences for people: ports in use, bad messages.
        lab_id: id of the lab for clients; empty for a new one.

    Raises:
        MissingExtraError: the extra 'net' is not installed.
        ValueError: there is no such plugin.
    """

    def __init__(
        self,
        cfg: LabServerCfg | None = None,
        report: Callable[[str], None] = _LOG.warning,
        lab_id: str = "",
    ) -> None:
        self.cfg = LabServerCfg() if cfg is None else cfg
        self.reports = Notes()
        """Sentences that were reported, the newest last."""
        self._tell = report
        self.zmq: Any = require_extra("zmq", "net")
        require_extra("msgpack", "net")
        self._context = self.zmq.Context()
        self.access = CurveAccess(self._context, self.cfg.key_folder) if self.cfg.listen else None
        """Check of the keys of other machines' programs; None if only this machine is served."""
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._prepared = True
        self._release = ""
        self._known: tuple[Session | None, str] = (None, "")
        self.on_driver: Callable[[], None] = lambda: None
        """Called before the reply to a request by which another client drives, or has changed the
        mode."""
        self.dispatcher = Dispatcher(None, self.cfg, waits=False, lab_id=lab_id)
        self.dispatcher.ports = lambda: [port.describe() for port in self._ports()]
        self.cameras = CameraServer(self)
        self.streams = StreamServer(self)
        self.web = WebFace(self)
        self._servers: dict[str, Server] = {}
        ports = [self.new_port("step", self.zmq.ROUTER)]
        if self.access is not None:
            ports.append(self.new_secure_port("step", self.zmq.ROUTER))
        for port in ports:
            self.add_server(f"{port.use} requests", RequestServer(self, port))
        self.add_server("streams", self.streams)
        self.add_server("cameras", self.cameras)
        self._threads: list[threading.Thread] = []
        for plugin in self.dispatcher.plugins:
            plugin.open(self)

    def __enter__(self) -> LabHub:
        """Start the threads."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads."""
        self.stop()

    def start(self) -> None:
        """Start the threads; ports in use are tried again until they are free."""
        atexit.register(self.stop)  # sockets that are in use when Python ends can crash it
        for name, server in self._servers.items():
            thread = threading.Thread(target=self._run, args=(server,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self.web.start()

    def add_server(self, name: str, server: Server) -> None:
        """Let a plugin serve sockets in a thread of their own, from the start on.

        Raises:
            ValueError: another server has this name.
        """
        if name in self._servers:
            raise ValueError(
                f"LabHub.add_server: there is a server '{name}' already: choose another name than "
                f"{', '.join(self._servers)}."
            )
        self._servers[name] = server

    def stop(self) -> None:
        """Close all sockets, and end the threads."""
        atexit.unregister(self.stop)
        self.dispatcher.closing = True
        self._stopping.set()
        self.web.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_JOIN_S)
        for server in self._servers.values():
            server.close()
        self.dispatcher.close()
        if self.access is not None:
            self.access.close()
        self._context.destroy(linger=0)

    def attach(self, face: LabFace | None, *, keep_owners: bool = False) -> None:
        """Serve a lab, or none for now; clients stay connected, and their sessions open.

        Robots of the panel get the network as their owner, if `own_robots` is on.

        Args:
            face: the lab.
            keep_owners: whether all robots keep their owners, because the lab was served before.
        """
        with self._lock:
            self.dispatcher.attach(face)
            self.streams.attach(face)
            self.cameras.attach(face, self.dispatcher.cameras)
            if face is None:
                return
            view = getattr(face, "server", None)
            if isinstance(view, ServerView):  # of a lab of this process
                view.show(self)
            robots = face.verbs.read_status()["robots"]
            for name, robot in robots.items():
                if self.cfg.own_robots and not keep_owners and robot["owner"] == PANEL:
                    face.verbs.take_robot(robot=name, owner=NET)
            self._prepared = False

    def release_driver(self, reason: str) -> None:
        """Let the client that drives observe from now on; a thread of the hub does it soon.

        Args:
            reason: reason that the client's events have.
        """
        self._release = reason

    def report(self, text: str) -> None:
        """Keep a sentence, and hand it to `report`."""
        self.reports.append(text)
        self._tell(text)

    def pause(self, seconds: float) -> None:
        """Wait for a time, or for the end of the hub."""
        self._stopping.wait(seconds)

    def new_port(self, use: str, kind: int, make: type[_P] = Port, **more: object) -> _P:
        """Create a socket for one of the ports of the config.

        Args:
            use: use of the port.
            kind: type of the socket.
            make: class of the port.
            **more: further arguments of it, also in place of those of the config.
        """
        given: dict[str, Any] = {"host": self.cfg.host, "number": self.cfg.ports.get(use), **more}
        return make(
            self._context,
            use,
            kind,
            report=self.report,
            max_bytes=self.cfg.limits.max_bytes,
            **given,
        )

    def new_secure_port(self, use: str, kind: int, make: type[_P] = Port, **more: object) -> _P:
        """Create the encrypted socket of a use, for programs on other machines."""
        assert self.access is not None
        number = self.cfg.secure_ports[use]
        host = self.cfg.listen
        secure = self.access.protect
        port = self.new_port(use, kind, make, host=host, number=number, secure=secure, **more)
        port.use = f"secure {use}"
        return port

    def new_outlets(self, use: str, **more: object) -> list[Outlet]:
        """Create the sockets that publish something: here, and perhaps for other machines."""
        outlets = [self.new_port(use, self.zmq.XPUB, Outlet, **more)]
        if self.access is not None:
            outlets.append(self.new_secure_port(use, self.zmq.XPUB, Outlet, **more))
        return outlets

    @property
    def ports(self) -> dict[str, int]:
        """Ports by their use."""
        return {port.use: port.number for port in self._ports()}

    def is_open(self) -> bool:
        """Return True if all ports are open."""
        return all(port.state == "open" for port in self._ports())

    def wait_until_open(self, timeout: float) -> bool:
        """Wait until each port is open or in use; return True if all are open.

        Args:
            timeout: longest wait [s].
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if all(port.state == "open" or port.error for port in self._ports()):
                break
            self._stopping.wait(_POLL_S)
        return self.is_open()

    def describe(self) -> dict[str, object]:
        """Return ports, clients, counters and reports as plain data."""
        sessions = self.dispatcher.sessions
        driver = sessions.driver
        described: dict[str, object] = {}
        for plugin in self.dispatcher.plugins:
            described.update(plugin.describe())
        return {
            **described,
            "ports": [port.describe() for port in self._ports()],
            "clients": [session.describe(drives=session is driver) for session in sessions],
            "driver": "" if driver is None else label(driver),
            "mode_before": "" if driver is None else driver.mode_before,
            "held": self.dispatcher.held.robots,
            "events": list(sessions.events),
            "requests": dict(self.dispatcher.requests),
            "errors": dict(self.dispatcher.errors),
            "images": self.cameras.counts(),
            "refused_keys": 0 if self.access is None else self.access.num_refused,
            "reports": list(self.reports),
            "problems": self.port_errors(),
        }

    def answer(
        self,
        request: bytes,
        peer: Hashable,
        reply_as: Encoding | None = None,
        again: bool = False,
    ) -> bytes:
        """Answer a request; see `Dispatcher.handle`."""
        with self._lock:
            reply = self.dispatcher.handle(request, peer, reply_as, again)
            driver = self.dispatcher.sessions.driver
            mode_before = "" if driver is None else driver.mode_before
            known = (driver, mode_before)
            if known != self._known:
                self._known = known
                self.on_driver()
            return reply

    def note_message(self, peer: Hashable) -> None:
        """Note that a connection has sent something, which may wait for its answer."""
        self.dispatcher.sessions.note_message(peer, self.dispatcher.lease())

    def allow_page(self, url: str) -> None:
        """Let the lab's page use the WebSocket."""
        self.web.allow_page(url)

    def disconnected(self, peer: Hashable) -> None:
        """End the sessions of a connection that was lost."""
        with self._lock:
            self.dispatcher.disconnected(peer)

    def tick(self) -> None:
        """End sessions whose heartbeats stopped; begin to export a new world's model."""
        with self._lock:
            self.dispatcher.lease.look()
            driver = self.dispatcher.sessions.driver
            if self._release and driver is not None:
                self.dispatcher.sessions.release(driver, self._release)
            self._release = ""
            self.dispatcher.tick()
            if not self._prepared:
                self._prepared = True
                self.dispatcher.prepare()

    def port_errors(self) -> list[str]:
        """Return the reasons why ports are not open."""
        return [port.error for port in self._ports() if port.error]

    def _ports(self) -> list[Port | WebFace]:
        ports: list[Port | WebFace] = []
        for server in self._servers.values():
            ports += server.ports
        return [*ports, self.web]

    def _run(self, server: Server) -> None:
        if isinstance(server, RequestServer):
            prefer_wakeups()  # a client waits, perhaps with the next step
        while not self._stopping.is_set():
            try:
                server.run_once()
            except Exception as error:
                # A defect of this program: it is told, and the other clients are served.
                _LOG.exception("The server's thread failed.")
                self.report(f"The server failed once: {type(error).__name__}: {error}.")
                self._stopping.wait(_PAUSE_S)

"""WebSocket of a lab's server: requests, states and events for browsers and programs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from manyworlds.lab.server.messages import Encoding, encode
from manyworlds.lab.server.operations import NotYetError, mode_of
from manyworlds.lab.server.ports import FIRST_S, LONGEST_S, State, why_waiting
from manyworlds.lab.server.sessions import label
from manyworlds.lab.server.web_peer import WebPeer
from manyworlds.lab.verbs.fields import PlainDict, PlainMap
from manyworlds.utils.extras import require_extra
from manyworlds.utils.web_access import WebAccess, is_local, read_token, token_file

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

    from manyworlds.lab.server.hub import LabHub

_LOG = logging.getLogger(__name__)

_EVENT_S = 0.1  # period of the search for events
_PING_S = 5.0  # period of pings, and the time after which a peer that does not answer is lost
_AGAIN_S = 0.02  # time after which a request is tried again whose answer is being prepared
_FRAGMENTS = 1024  # of a message; browsers send messages whole
_TOO_BIG = 1009  # code of the end of a connection with a message that is too large
_FRAMES = 2  # messages of one peer that are read before the one before is answered
_JOIN_S = 10.0


class WebFace:
    """Serves the hub's operations over a WebSocket, in a thread of its own.

    Text frames are JSON, binary ones msgpack, and so are their replies, which come in the order of
    the requests. The thread never waits for the lab nor for a peer: requests are answered by a
    worker, one at a time, and a peer that does not read is not read either.

    Args:
        hub: the hub.
    """

    use = "web"

    def __init__(self, hub: LabHub) -> None:
        self._hub = hub
        cfg = hub.cfg
        self._server = require_extra("websockets.asyncio.server", "net")
        self._exceptions = require_extra("websockets.exceptions", "net")
        self.host = cfg.listen or cfg.host
        self.number = cfg.ports[self.use]
        self.state: State = "waiting"
        self.error = ""
        """Reason why it waits; empty if it does not."""
        self.messages = 0
        """Number of messages that were received."""
        token = ""
        if not is_local(self.host):
            token = cfg.web_token or read_token(token_file())
        self.access = WebAccess(token, cfg.web_origins)
        self.failures: Counter[str] = Counter()
        """Number of connections that were refused, failed, or ended otherwise than by a goodbye."""
        self._limits = cfg.limits
        self._peers: tuple[WebPeer, ...] = ()
        self._status: PlainDict = {}
        self._noted = 0, 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, "manyworlds-web")
        self._thread = threading.Thread(target=self._run, name="manyworlds-web", daemon=True)

    def start(self) -> None:
        """Open the port as soon as it is free."""
        self._thread.start()

    def close(self) -> None:
        """End all connections, and close the port."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        elif not self._loop.is_closed():  # it was not started
            self._loop.close()
        self._worker.shutdown(wait=False, cancel_futures=True)
        self.state = "closed"

    def allow_page(self, url: str) -> None:
        """Let a page of this machine use the WebSocket."""
        port = urlsplit(url).port
        self.access.ports.add(port or 80)

    def describe(self) -> dict[str, object]:
        """Return use, number, state, error, messages, peers and failures as plain data."""
        return {
            "use": self.use,
            "port": self.number,
            "state": self.state,
            "error": self.error,
            "messages": self.messages,
            "peers": len(self._peers),
            "dropped": sum(sum(peer.dropped.values()) for peer in self._peers),
            "failures": dict(self.failures | self.access.refused),
        }

    @property
    def wants_states(self) -> bool:
        """True while a peer has subscribed to states; for any thread."""
        return any("state/full" in peer.topics for peer in self._peers)

    def is_due(self, frame: int) -> bool:
        """Return True if a peer is to get the state of a snapshot now; for any thread."""
        now = time.monotonic()
        return any(peer.is_due(now, frame) for peer in self._peers)

    def publish(self, frame: int, full: PlainMap, packed: bytes) -> None:
        """Give a state to the peers that are due; for any thread.

        Args:
            frame: number of the snapshot.
            full: the state.
            packed: the state as msgpack.
        """
        now = time.monotonic()
        due = [peer for peer in self._peers if peer.is_due(now, frame)]
        contents: dict[Encoding, bytes] = {"msgpack": packed}
        for peer in due:
            if peer.encoding not in contents:
                contents[peer.encoding] = encode(full, peer.encoding)
            peer.note_state(now, frame)
        given = [(peer, contents[peer.encoding]) for peer in due]
        with contextlib.suppress(RuntimeError):  # the face has ended
            self._loop.call_soon_threadsafe(_deliver, given)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:
            _LOG.exception("The WebSocket failed.")
            self._hub.report(f"The WebSocket has ended: {type(error).__name__}: {error}.")
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _serve(self) -> None:
        """Open the port, as soon as it is free, and serve it until the end."""
        pause = FIRST_S
        while not self._stop.is_set():
            try:
                server = await self._listen()
            except OSError as error:
                text = why_waiting(self.use, self.number, error)
                if text != self.error:
                    self._hub.report(text)
                self.error = text
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), pause)
                pause = min(2.0 * pause, LONGEST_S)
                continue
            self.number = server.sockets[0].getsockname()[1]
            self.state = "open"
            if self.error:
                self._hub.report(f"The {self.use} port {self.number} is free and open now.")
            self.error = ""
            watch = self._loop.create_task(self._watch())
            await self._stop.wait()
            watch.cancel()
            server.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), 1.0)

    def _listen(self) -> Any:
        return self._server.serve(
            self._talk,
            self.host,
            self.number,
            process_request=self._admit,
            compression=None,
            server_header=None,
            max_size=self._limits.max_bytes,
            max_queue=_FRAMES,
            ping_interval=None,  # see `WebPeer.keep_alive`
            logger=self._logger(),
        )

    def _logger(self) -> logging.Logger:
        """Return a log that counts what peers do wrong, which is no matter of people."""

        def count(record: logging.LogRecord) -> bool:
            if record.levelno >= logging.ERROR:
                self.failures[record.getMessage()] += 1
            return False

        logger = logging.Logger("manyworlds-web")
        logger.addFilter(count)
        return logger

    def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse strangers before they have a connection."""
        refused = self.access.refuse(socket, request)
        if refused is not None:
            return refused
        if len(self._peers) >= self._limits.max_sessions:
            self.failures["too many"] += 1
            text = f"There are {len(self._peers)} connections, the most that this server has."
            return socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{text}\n")
        return None

    async def _talk(self, socket: ServerConnection) -> None:
        """Answer the requests of a connection, one after another."""
        peer = WebPeer(socket)
        self._peers = (*self._peers, peer)
        tasks = [self._loop.create_task(work) for work in (peer.push(), peer.keep_alive(_PING_S))]
        try:
            while True:
                message = await self._receive(socket)
                self.messages += 1
                await peer.send(await self._answer(message, peer))
        except self._exceptions.ConnectionClosedOK:
            pass
        except self._exceptions.ConnectionClosed as error:
            goodbye = error.rcvd or error.sent
            code = "no goodbye" if goodbye is None else goodbye.code
            self.failures[f"closed with {code}"] += 1
        except Exception:
            _LOG.exception("A connection of the WebSocket failed.")
            self.failures["defects"] += 1
        finally:
            for task in tasks:
                task.cancel()
            # Either may have found the end of the connection first.
            await asyncio.gather(*tasks, return_exceptions=True)
            self._peers = tuple(other for other in self._peers if other is not peer)
            with contextlib.suppress(RuntimeError):  # the hub ends
                self._worker.submit(self._hub.disconnected, peer)

    async def _receive(self, socket: ServerConnection) -> str | bytes:
        """Return the next message.

        Raises:
            ConnectionClosed: the connection ended, or this ends it, because the message has too
                many fragments, which take memory even if they are empty.
        """
        parts: list[Any] = []
        count = 0
        async for part in socket.recv_streaming():
            count += 1
            if count <= _FRAGMENTS:
                parts.append(part)
        if count > _FRAGMENTS:
            await socket.close(_TOO_BIG, f"a message has more than {_FRAGMENTS} fragments")
            return await self._receive(socket)
        if count == 1:
            return parts[0]
        return type(parts[0])().join(parts)

    async def _answer(self, message: str | bytes, peer: WebPeer) -> bytes:
        if isinstance(message, str):
            peer.encoding = "json"
            content = message.encode()
        else:
            peer.encoding = "msgpack"
            content = message
        # While another client's steps are made, this request waits, and its sender is not silent.
        self._hub.note_message(peer)
        peer.is_waiting = True
        came = time.monotonic()
        again = True
        while True:
            try:
                reply = await self._loop.run_in_executor(
                    self._worker, self._hub.answer, content, peer, peer.encoding, again
                )
                break
            except NotYetError as error:  # others are answered meanwhile
                again = time.monotonic() < came + (error.patience_s or math.inf)
                await asyncio.sleep(_AGAIN_S)
        peer.is_waiting = False
        peer.num_answered += 1
        return reply

    async def _watch(self) -> None:
        """Give the peers that subscribed what has happened."""
        while True:
            await asyncio.sleep(_EVENT_S)
            peers = [peer for peer in self._peers if "events" in peer.topics]
            if not peers:
                continue
            try:
                self._tell(peers)
            except Exception as error:
                _LOG.exception("The WebSocket has no events.")
                self._hub.report(f"The WebSocket has no events: {type(error).__name__}: {error}.")
                await asyncio.sleep(1.0)

    def _tell(self, peers: list[WebPeer]) -> None:
        driven, drivings = self._hub.dispatcher.sessions.events.since(self._noted[0])
        told, reports = self._hub.reports.since(self._noted[1])
        self._noted = (drivings, reports)
        texts = driven + told
        status = self._read_status()
        before = self._status
        self._status = status
        if status["fault"] != before.get("fault", ""):
            text = "it runs"
            if status["fault"]:
                text = f"the world stopped: {status['fault']}"
            texts.append(text)
        changed = bool(texts) or status != before
        contents: dict[tuple[Encoding, bool], bytes] = {}
        for peer in peers:
            if not changed and peer.noted:
                continue
            kind = peer.encoding, peer.noted
            if kind not in contents:
                event = {"op": "event", "texts": texts if peer.noted else [], **status}
                contents[kind] = encode(event, peer.encoding)
            peer.noted = True
            peer.offer_event(contents[kind])

    def _read_status(self) -> PlainDict:
        """Return who drives, who is connected, and what is wrong; without waiting for the lab."""
        dispatcher = self._hub.dispatcher
        driver = dispatcher.sessions.driver
        face = dispatcher.face
        snapshot = None if face is None else face.snapshot
        return {
            "driver": "" if driver is None else label(driver),
            "clients": [label(session) for session in dispatcher.sessions],
            "manager_present": face is not None,
            "mode": "" if snapshot is None else mode_of(snapshot),
            "paused": snapshot is not None and snapshot.paused,
            "fault": "" if snapshot is None else snapshot.fault,
            "port_errors": [error for error in self._hub.port_errors() if error],
        }


def _deliver(given: list[tuple[WebPeer, bytes]]) -> None:
    for peer, content in given:
        peer.offer_state(content)

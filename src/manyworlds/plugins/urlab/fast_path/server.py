"""Publisher's side of the fast path: model, poses, and pushes, for programs that draw a world.

Requests (`REP`) and poses (`PUB`) are maps in msgpack. These faces have no passwords, so that they
listen on this machine only.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.server.config import Limits
from manyworlds.lab.server.messages import decode
from manyworlds.lab.server.ports import STATE_BACKLOG, STATE_BUFFER, Port
from manyworlds.lab.verbs.fields import PlainDict, PlainMap
from manyworlds.plugins.urlab.fast_path.registry import Publisher, RegistryFile
from manyworlds.plugins.urlab.fast_path.worlds import Names, PublishedWorld, WorldPose
from manyworlds.utils.extras import require_extra

_LOG = logging.getLogger(__name__)

GEOMS = b"geoms"
VIEWER = b"viewer"
STATE = b"state"
"""Topics: poses of all bodies; generalized positions and velocities; and, not of the protocol, all
of a lab's state."""
_STATE_FIELDS = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "sensordata")
_IDLE_MS = 50  # wait for requests while nobody reads poses
_MOST = 16  # requests that are answered before the next pose
_MAX_BYTES = 2**16  # of a request
_MAX_ITEMS = 1000  # of its lists
_WAITING = 16  # replies that wait for a slow reader; a model may be large
_PULL = int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
_TURN = int(mujoco.mjtPertBit.mjPERT_ROTATE)
_BAD = "bad perturb"  # the protocol's own words


class FastPathServer:
    """Serves one world at a time; its thread calls `run_once` all the time.

    Args:
        new_port: creates the socket of a use (`fast_path` or `fast_path_bus`) and a type.
        report: receives sentences for people.
        limits: bounds on requests.
        period_ms: time between two looks for a new state while poses are read [ms].
    """

    def __init__(
        self,
        new_port: Callable[[str, int], Port],
        report: Callable[[str], None],
        limits: Limits | None = None,
        period_ms: int = 1,
    ) -> None:
        zmq: Any = require_extra("zmq", "net")
        self._pack: Callable[[object], bytes] = require_extra("msgpack", "net").packb
        self.control = new_port("fast_path", zmq.ROUTER)
        self.bus = new_port("fast_path_bus", zmq.XPUB)
        self.bus.socket.setsockopt(zmq.SNDHWM, STATE_BACKLOG)
        self.bus.socket.setsockopt(zmq.SNDBUF, STATE_BUFFER)
        self.control.socket.setsockopt(zmq.SNDHWM, _WAITING)
        self.ports = (self.control, self.bus)
        self._poller = zmq.Poller()
        for port in self.ports:
            self._poller.register(port.socket, zmq.POLLIN)
        self._limits = dataclasses.replace(
            limits or Limits(), max_bytes=_MAX_BYTES, max_items=_MAX_ITEMS
        )
        self._report = report
        self._period_ms = period_ms
        self.requests: Callable[[], str] = str
        """Returns the endpoint of the lab's other requests; empty if there is none."""
        self.counts: Counter[str] = Counter()
        """Number of requests by operation, and of `errors`."""
        self.instance = uuid.uuid4().hex[:12]
        """Id of this publisher in its registry file."""
        self._started = int(time.time())
        self._registry = RegistryFile(self.instance)
        self._registry_works = True
        self._next: tuple[PublishedWorld | None] = (None,)
        self._world: PublishedWorld | None = None
        self._worlds = 0
        self._topics: set[bytes] = set()
        self._joined = False  # someone has subscribed since the last pose was sent
        self._shown: WorldPose | None = None
        self._mjb: tuple[tuple[str, Names], bytes] = ("", "clients"), b""
        self._dragger: Hashable = None
        self._refused = ""

    def attach(self, world: PublishedWorld | None) -> None:
        """Serve another world from now on, or none; may be called in any thread."""
        self._next = (world,)

    def run_once(self) -> None:
        """Answer requests, publish the newest state if it is new, or wait a moment."""
        now = time.monotonic()
        if not all([port.poll(now) for port in self.ports]):
            time.sleep(1e-3 * _IDLE_MS)
            return
        is_busy = bool(self._topics) and self._world is not None
        self._poller.poll(self._period_ms if is_busy else _IDLE_MS)
        self._follow()
        self._read_subscriptions()
        for frames in self.control.receive(_MOST):
            self._answer([frame.bytes for frame in frames])
        if self._world is not None:
            try:
                self._publish(self._world)
                self._register(self._world)
            except VerbError as error:  # the lab has ended, or is about to be replaced
                _LOG.debug("The fast path has nothing to show: %s", error)
                time.sleep(1e-3 * _IDLE_MS)

    def close(self) -> None:
        """Close the sockets, and remove the registry file."""
        self._registry.remove()
        for port in self.ports:
            port.close()

    def _follow(self) -> None:
        """Serve the world that was attached last."""
        (world,) = self._next
        if world is self._world:
            return
        self._world = world
        self._shown = None
        self._dragger = None
        self._refused = ""
        self._worlds += 1
        self._mjb = ("", "clients"), b""
        if world is None:
            self._registry.remove()

    def _register(self, world: PublishedWorld) -> None:
        host = self.control.host
        control = self.control.number
        bus = self.bus.number
        try:
            self._registry.write(
                Publisher(
                    instance_id=self.instance,
                    pid=os.getpid(),
                    host=host,
                    scene=world.scene,
                    ngeom=world.ngeom,
                    control_port=control,
                    bus_port=bus,
                    started_at=self._started,
                )
            )
            self._registry_works = True
        except OSError as error:
            if self._registry_works:
                self._report(
                    f"'{self._registry.path}' cannot be written ({error.strerror or error}): "
                    f"programs do not find this world by themselves; give them {host}:{control}."
                )
            self._registry_works = False

    def _read_subscriptions(self) -> None:
        for frames in self.bus.receive(_MOST):
            event = frames[0].bytes
            for topic in (GEOMS, VIEWER, STATE):
                if not topic.startswith(event[1:]):
                    continue
                if event[:1] == b"\x01":
                    self._topics.add(topic)
                    self._joined = True
                elif event[:1] == b"\x00":
                    self._topics.discard(topic)

    def _model_id(self, version: int) -> str:
        return f"{self.instance}-{self._worlds}-{version}"

    def _publish(self, world: PublishedWorld) -> None:
        pose = world.pose()
        if not self._topics or (pose is self._shown and not self._joined):
            return
        self._shown = pose
        self._joined = False
        if GEOMS in self._topics:
            geoms = {
                "f": pose.frame_id,
                "bxpos": pose.xpos.ravel().tolist(),
                "bxquat": pose.xquat.ravel().tolist(),
                "model_id": self._model_id(pose.model_version),
            }
            self.bus.send(GEOMS, self._pack(geoms))
        if VIEWER in self._topics:
            viewer = {"t": pose.time, "qpos": pose.qpos.tolist(), "qvel": pose.qvel.tolist()}
            self.bus.send(VIEWER, self._pack(viewer))
        if STATE in self._topics and world.has_state:
            state = {name: getattr(pose, name).ravel().tolist() for name in _STATE_FIELDS}
            model_id = self._model_id(pose.model_version)
            told = {"t": pose.time, "f": pose.frame_id, "model_id": model_id, **state}
            self.bus.send(STATE, self._pack(told))

    def answer(self, payload: Sequence[bytes], peer: Hashable) -> bytes:
        """Return the reply to a request, whatever it is.

        Args:
            payload: frames of the request.
            peer: program that it came from.
        """
        try:
            if len(payload) != 1:
                raise VerbError("bad_request", f"A request has one frame, not {len(payload)}.")
            reply = self._carry_out(decode(payload[0], self._limits), peer)
        except VerbError as error:
            self.counts["errors"] += 1
            reply = {"error": str(error)}
        except Exception as error:
            # A defect of this program: the reader and the log know of it, and the world goes on.
            _LOG.exception("A request of the fast path failed.")
            reply = {"error": f"The request failed: {type(error).__name__}: {error}"}
        return self._pack(reply)

    def _answer(self, frames: Sequence[bytes]) -> None:
        """Answer a request of a REQ socket, which waits for it."""
        if b"" not in frames[1:]:
            self.counts["errors"] += 1  # of no REQ socket: nobody waits
            return
        self._follow()  # the request may have come after the world
        split = frames.index(b"", 1) + 1
        envelope = tuple(frames[:split])
        self.control.send(*envelope, self.answer(frames[split:], envelope))

    def _carry_out(self, request: PlainMap, peer: Hashable) -> PlainDict:
        operations = {"fastpath_hello": self._hello, "fastpath_perturb": self._perturb}
        name = request.get("op")
        if not isinstance(name, str) or name not in operations:
            raise VerbError(
                "unknown_op", f"There is no operation {name!r:.40}: use {' or '.join(operations)}."
            )
        self.counts[name] += 1
        if self._world is None:
            raise VerbError("no_active_manager", "There is no world at present: ask again later.")
        return operations[name](self._world, request, peer)

    def _hello(self, world: PublishedWorld, request: PlainMap, peer: Hashable) -> PlainDict:
        model_id = self._model_id(world.pose().model_version)
        names: Names = "lab" if request.get("names") == "lab" else "clients"
        if self._mjb[0] != (model_id, names):
            self._mjb = (model_id, names), _export(world, names)
        # Only what there is, so that a reader that looks for the key finds the truth, too.
        can = {"accept_input": not world.refusal, "state": world.has_state}
        reply: PlainDict = {
            "ok": True,
            "scene": world.scene,
            "ngeom": world.ngeom,
            "bus": f"tcp://{self.bus.host}:{self.bus.number}",
            "format": "mjb",
            "mjb": self._mjb[1],
            "capabilities": {name: True for name, there in can.items() if there},
            "mujoco_version": mujoco.mj_versionString(),
            "model_id": model_id,
            "note": world.refusal,
            "robots": list(world.robots),
            "requests": self.requests(),
        }
        if names == "lab":
            reply["prefixes"] = dict(world.robots)
        return reply

    def _perturb(self, world: PublishedWorld, request: PlainMap, peer: Hashable) -> PlainDict:
        if world.refusal:
            if self._refused != world.refusal:
                self._refused = world.refusal
                self._report(world.refusal)
            raise VerbError("not_ready", world.refusal)
        drag = request.get("drag", request)
        if not isinstance(drag, dict):
            raise VerbError("bad_value", _BAD)
        if "select" in drag:
            self._drag(world, drag, peer)
            return {"ok": True}
        body = _whole(request.get("body"))
        force = _vector(request.get("force", ()))
        torque = _vector(request.get("torque", ()))
        if body > 0:  # the world does not move
            world.push(body, force, torque)
        return {"ok": True}

    def _drag(self, world: PublishedWorld, drag: PlainMap, peer: Hashable) -> None:
        active = drag.get("active", 0)
        if isinstance(active, bool):
            active = int(active)
        else:
            active = _whole(active)
        body = _whole(drag["select"])
        localpos = _vector(drag.get("localpos", ()))
        target: np.ndarray | None = _vector(drag.get("refselpos", ()))
        if body <= 0 or not active & (_PULL | _TURN):
            if self._dragger == peer:  # otherwise it is the drag of another one
                self._dragger = None
                world.release()
            return
        quat = None
        if active & _TURN:
            given = drag.get("refquat")
            if given is None:
                raise VerbError("missing_field", f"A turn (active {active}) needs refquat.")
            quat = _vector(given, 4)
            if not quat.any():
                raise VerbError("bad_value", _BAD)
        if not active & _PULL:
            target = None
        world.drag(body, localpos, target, quat)
        self._dragger = peer


def _export(world: PublishedWorld, names: Names) -> bytes:
    """Return the model; with the lab's names where URLab's clients could not tell robots apart."""
    try:
        return world.model(names)
    except VerbError:
        if names == "lab":
            raise
        return world.model("lab")  # a reader that draws goes by ids


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise VerbError("bad_value", _BAD)


def _vector(value: object, size: int = 3) -> np.ndarray:
    """Return numbers, filled with zeros or cut to a size."""
    if not isinstance(value, list | tuple):
        raise VerbError("bad_value", _BAD)
    numbers = value[:size]
    if not all(type(n) in (int, float) and math.isfinite(n) for n in numbers):
        raise VerbError("bad_value", _BAD)
    vector = np.zeros(size)
    vector[: len(numbers)] = numbers
    return vector

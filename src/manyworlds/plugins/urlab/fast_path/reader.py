"""Reader's side of the fast path: the model and the newest poses of a publisher, and pushes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.readers.wire import Message
from manyworlds.plugins.urlab.fast_path.registry import Publisher, find_publishers
from manyworlds.plugins.urlab.fast_path.server import GEOMS, VIEWER
from manyworlds.utils.extras import require_extra

DEFAULT_PORT = 5571
_TIMEOUT_S = 5.0
_HELLO_S = 30.0  # a large model takes long to export


class PublisherError(RuntimeError):
    """A publisher does not answer, or refuses; the message is one sentence."""


@dataclass(frozen=True)
class PublishedScene:
    """World of a publisher, as its answer to `fastpath_hello` describes it."""

    scene: str
    model: mujoco.MjModel
    model_id: str
    """Id of this state of the model, for comparison; empty if the publisher has none."""
    note: str
    """Reason why nothing can be pushed; empty if everything can, or if it is not known."""
    robots: Mapping[str, str] = field(default_factory=dict)
    """Prefix of the elements of each robot in the model, by the robot's name."""
    has_state: bool = False
    """True if it publishes controls and sensors, too."""
    requests: str = ""
    """Endpoint of the lab's other requests; empty if there is none."""


@dataclass
class Newest:
    """The newest messages of a publisher; their arrays are not checked."""

    viewer: Message | None = None
    geoms: Message | None = None


class FastPathReader:
    """Connection to a publisher.

    Args:
        address: endpoint of its requests, such as `tcp://127.0.0.1:5571`, or of the lab's other
            requests, 5559, which `manyworlds.lab.client.connect` takes.
        timeout: longest wait for an answer [s].
        topics: topics to listen to.
        backlog: number of messages that wait for a slow reader before further ones are dropped.
    """

    def __init__(
        self,
        address: str,
        timeout: float = _TIMEOUT_S,
        topics: Sequence[bytes] = (GEOMS, VIEWER),
        backlog: int = 100,
    ) -> None:
        self._zmq: Any = require_extra("zmq", "net")
        self._msgpack: Any = require_extra("msgpack", "net")
        self.address = address
        self._timeout = timeout
        self._topics = topics
        self._backlog = backlog
        self._context = self._zmq.Context()
        self._requests: Any = None
        self._poses: Any = None
        self._bus = ""

    def hello(self) -> PublishedScene:
        """Ask for the model, and listen to the poses.

        Raises:
            PublisherError: there is no answer, no world, or a model of another MuJoCo.
        """
        # A short question first: exporting a large model takes long, and a silent port never ends.
        answer = self.request("ping")
        if answer.get("op") == "error":  # the port of the lab's other requests
            self._turn_to_fast_path()
        reply = self.request("fastpath_hello", timeout=_HELLO_S, names="lab")
        if "error" in reply:
            raise PublisherError(
                f"The publisher at {self.address} has nothing to show: {reply['error']}"
            )
        model = _load(reply, self.address)
        bus = str(reply.get("bus", "")).replace("://*", "://127.0.0.1")
        if bus != self._bus:
            self._listen(bus)
        return PublishedScene(
            scene=str(reply.get("scene", "")),
            model=model,
            model_id=str(reply.get("model_id", "")),
            note=str(reply.get("note", "")),
            robots=dict(reply.get("prefixes", {})),
            has_state="state" in reply.get("capabilities", ()),
            requests=str(reply.get("requests", "")),
        )

    def _turn_to_fast_path(self) -> None:
        """Ask the lab at this address for the port of its fast path, and use that.

        Raises:
            PublisherError: it has none.
        """
        greeting = self.request("hello", role="observer", include_model=False)
        port = greeting.get("ports", {}).get("fast_path")
        if port is None:
            raise PublisherError(f"The lab at {self.address} publishes no states for this program.")
        machine = self.address.rpartition(":")[0]
        self.address = f"{machine}:{int(port)}"
        self._requests.close()  # ends the session
        self._requests = None

    def is_there(self, *, raise_error: bool = False) -> bool:
        """Return True if the publisher answers.

        Raises:
            PublisherError: it does not, and `raise_error` is on.
        """
        try:
            self.request("ping")  # answered by an error, as everything is
        except PublisherError:
            if raise_error:
                raise
            return False
        return True

    def request(self, op: str, timeout: float | None = None, **fields: object) -> Message:
        """Send a request, and return the reply, which may be an error.

        Raises:
            PublisherError: there is no answer.
        """
        zmq = self._zmq
        if timeout is None:
            timeout = self._timeout
        if self._requests is None:
            self._requests = self._context.socket(zmq.REQ)
            self._requests.setsockopt(zmq.LINGER, 0)
            self._requests.connect(self.address)
        self._requests.send(self._msgpack.packb({"op": op, **fields}))
        if not self._requests.poll(int(1e3 * timeout)):
            self._requests.close()  # a socket that missed a reply cannot be used again
            self._requests = None
            raise PublisherError(
                f"No publisher answers at {self.address} within {timeout:g} s: start `manyworlds "
                "lab TARGET --serve` or `manyworlds train TASK --view`, or name another HOST:PORT."
            )
        try:
            reply = self._msgpack.unpackb(self._requests.recv())
        except ValueError as error:
            raise PublisherError(f"{self.address} is no publisher: {error}.") from error
        if not isinstance(reply, dict):
            raise PublisherError(f"{self.address} is no publisher: it answers {reply!r:.40}.")
        return reply

    def read(self, newest: Newest) -> bool:
        """Read all messages that have come; return False if there were none."""
        came = False
        for topic, message in self.receive():
            if topic == GEOMS:
                newest.geoms = message
            else:
                newest.viewer = message
            came = True
        return came

    def receive(self, timeout: float = 0.0) -> Iterator[tuple[bytes, Message]]:
        """Yield the topics and contents of all messages that have come.

        Args:
            timeout: longest wait for the first one [s].
        """
        wait = int(1e3 * timeout)
        while self._poses is not None and self._poses.poll(wait):
            topic, content = self._poses.recv_multipart()
            yield topic, self._msgpack.unpackb(content)
            wait = 0

    def close(self) -> None:
        """Close the connection."""
        self._context.destroy(linger=0)

    def _listen(self, bus: str) -> None:
        if self._poses is not None:
            self._poses.close()
        self._poses = self._context.socket(self._zmq.SUB)
        self._poses.setsockopt(self._zmq.RCVHWM, self._backlog)
        for topic in self._topics:
            self._poses.setsockopt(self._zmq.SUBSCRIBE, topic)
        self._poses.connect(bus)
        self._bus = bus


def find_publisher(host: str = "") -> str:
    """Return the endpoint of a publisher's requests.

    Args:
        host: HOST, HOST:PORT, PORT or an endpoint; empty takes the publisher on this machine that
            started last.

    Raises:
        PublisherError: there is none on this machine.
        ValueError: the port is no port.
    """
    if not host:
        publishers = find_publishers()
        if not publishers:
            raise PublisherError(
                "No world is served on this machine: start `manyworlds lab TARGET --serve` or "
                "`manyworlds train TASK --view`, or name its HOST:PORT."
            )
        return publishers[0].control
    name, colon, port = host.removeprefix("tcp://").rpartition(":")
    if not colon and host.isdigit():
        port = host
    elif not colon:
        name = host
        port = str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"'{host}' must be HOST, HOST:PORT or PORT, with a port up to 65535.")
    if name in ("", "localhost"):
        name = "127.0.0.1"
    return f"tcp://{name}:{port}"


def describe_publishers(but: str) -> list[str]:
    """Return a line for each publisher on this machine except one.

    Args:
        but: endpoint of that publisher's requests.
    """
    return [_line(publisher) for publisher in find_publishers() if publisher.control != but]


def _line(publisher: Publisher) -> str:
    age = max(0, round(time.time() - publisher.started_at)) // 60
    address = f"{publisher.host}:{publisher.control_port}"
    return f"{address}  {publisher.scene} (process {publisher.pid}, {age} min)"


def _load(reply: Message, address: str) -> mujoco.MjModel:
    """Return the compiled model of a publisher.

    Raises:
        PublisherError: it is none of this version of MuJoCo.
    """
    kind = str(reply.get("format", "mjb"))
    content = reply.get("mjb")
    theirs = str(reply.get("mujoco_version", ""))
    ours = mujoco.mj_versionString()
    if theirs not in ("", ours):
        raise PublisherError(
            f"The publisher at {address} has MuJoCo {theirs} and this program {ours}: install the "
            "same version, because compiled models cannot be read by another one."
        )
    if kind != "mjb" or not isinstance(content, bytes):
        raise PublisherError(f"The publisher at {address} sends no compiled model, but '{kind}'.")
    try:
        return mujoco.MjModel.from_binary_path("publisher.mjb", {"publisher.mjb": content})
    except (ValueError, mujoco.FatalError) as error:
        raise PublisherError(
            f"MuJoCo {ours} cannot read the model of the publisher at {address}, probably because "
            f"the publisher has another version: {' '.join(str(error).split())}"
        ) from error


def pose_bodies(
    model: mujoco.MjModel, data: mujoco.MjData, xpos: np.ndarray, xquat: np.ndarray
) -> None:
    """Put bodies, and the geoms and sites on them, where a publisher has the bodies.

    Args:
        model: the model.
        data: data to write, for drawing only.
        xpos: positions of all bodies [m], shape (nbody, 3).
        xquat: orientations of all bodies (wxyz), shape (nbody, 4).
    """
    data.xpos[:] = xpos
    data.xquat[:] = xquat
    matrix = np.empty(9)
    for body in range(model.nbody):
        mujoco.mju_quat2Mat(matrix, data.xquat[body])
        data.xmat[body] = matrix
    parts = (
        (range(model.nbody), model.body_ipos, model.body_iquat, data.xipos, data.ximat),
        (model.geom_bodyid, model.geom_pos, model.geom_quat, data.geom_xpos, data.geom_xmat),
        (model.site_bodyid, model.site_pos, model.site_quat, data.site_xpos, data.site_xmat),
    )
    for bodies, local, turns, positions, matrices in parts:
        for i, body in enumerate(bodies):
            rotation = data.xmat[body].reshape(3, 3)
            mujoco.mju_quat2Mat(matrix, turns[i])
            positions[i] = data.xpos[body] + rotation @ local[i]
            matrices[i] = (rotation @ matrix.reshape(3, 3)).ravel()
    mujoco.mj_camlight(model, data)

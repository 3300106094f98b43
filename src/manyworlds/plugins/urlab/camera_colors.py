"""Colors of the cameras of robots, each camera on a port of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from manyworlds.lab.face import LabFace
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.server.camera_server import BACKLOG
from manyworlds.lab.server.hub import LabHub
from manyworlds.lab.server.ports import Outlet
from manyworlds.plugins.urlab.images import bgra, robot_cameras
from manyworlds.plugins.urlab.roster import RosterCache
from manyworlds.plugins.urlab.streams import camera_message

_TRIES = 10  # further ports that are tried for the colors of a camera


class CameraColors:
    """Publishes the colors of each camera of a robot; see `ImagePublisher`.

    Args:
        hub: the hub.
        rosters: robots of the present world.
    """

    def __init__(self, hub: LabHub, rosters: RosterCache) -> None:
        self._hub = hub
        self._rosters = rosters
        self._colors: dict[tuple[str, str], Outlet] = {}
        self._live: dict[tuple[str, str], str] = {}
        self._topics: dict[str, dict[str, dict[str, object]]] = {}
        self._face: LabFace | None = None

    @property
    def ports(self) -> list[Outlet]:
        """A port for each camera."""
        return list(self._colors.values())

    def topics(self, robot: str) -> dict[str, dict[str, object]]:
        """Return the stream of the colors of each camera of a robot, by its name for clients."""
        return self._topics.get(robot, {})

    def attach(self, face: LabFace | None) -> None:
        """Publish the cameras of another world."""
        self._face = face

    def list(self, cameras: Mapping[str, LabCameraCfg]) -> None:
        """Find the cameras of robots, and open a port for each one."""
        assert self._face is not None
        live = robot_cameras(self._rosters.get(self._face))
        fresh = dict(self._colors)
        for key in self._colors.keys() - live.keys():
            fresh.pop(key).close()
        for key in live.keys() - self._colors.keys():
            fresh[key] = self._new_port(key, [port.number for port in fresh.values()])
        self._colors = fresh
        self._live = live
        topics: dict[str, dict[str, dict[str, object]]] = {}
        for (robot, short), name in live.items():
            if name in cameras:
                topics.setdefault(robot, {})[short] = self._describe(robot, short, cameras[name])
        self._topics = topics

    def wanted(self) -> set[tuple[str, Kind]]:
        """Return the cameras that clients have subscribed to."""
        wanted: set[tuple[str, Kind]] = set()
        for (robot, short), port in self._colors.items():
            topic = f"{robot}/camera/{short} ".encode()
            if any(topic.startswith(want) for want in port.wanted):
                wanted.add((self._live[robot, short], "rgb"))
        return wanted

    def publish(self, image: CameraImage) -> int:
        """Send the colors to those who want them, and return the number of messages."""
        if image.kind != "rgb":
            return 0
        count = 0
        for (robot, short), name in self._live.items():
            port = self._colors[robot, short]
            if name == image.camera and port.wanted:
                port.send(*camera_message(robot, short, bgra(image.image)))
                count += 1
        return count

    def _new_port(self, key: tuple[str, str], taken: list[int]) -> Outlet:
        first = self._hub.cfg.ports["camera"]
        others: list[int] = []
        if first:
            own = [n for use, n in self._hub.cfg.ports.items() if use != "camera"]
            used = {*own, *taken}
            free = (number for number in itertools.count(first) if number not in used)
            first, *others = itertools.islice(free, 1 + _TRIES)
        more = {"number": first, "others": others, "backlog": BACKLOG}
        return self._hub.new_port(f"camera {'/'.join(key)}", self._hub.zmq.XPUB, Outlet, **more)

    def _describe(self, robot: str, short: str, camera: LabCameraCfg) -> dict[str, object]:
        port = self._colors[robot, short]
        return {
            "mode": "real",
            "resolution": [camera.width, camera.height],
            "fovy": camera.fovy,
            "zmq_endpoint": f"tcp://{port.host}:{port.number}",
            "zmq_topic": f"{robot}/camera/{short} ",
        }

"""Client of a lab in another process or on another machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

from manyworlds.lab.client.connection import Connection, Role
from manyworlds.lab.client.errors import LabTimeoutError, NotReadyError, UnknownNameError
from manyworlds.lab.client.robot import ClientRobot
from manyworlds.lab.client.world_copy import WorldCopy
from manyworlds.lab.errors import near
from manyworlds.lab.facts import LabFacts
from manyworlds.lab.loop.shared_snapshots import unpack_snapshot
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.image import decode_image
from manyworlds.lab.verb_methods import LabVerbs, Reply, only_reads
from manyworlds.lab.world.elements import RobotElements

if TYPE_CHECKING:
    from manyworlds.lab.verb_methods import CaptureCameraReply

ADDRESS = "tcp://127.0.0.1:5559"
"""Address of the requests of `manyworlds lab TARGET --serve`."""

_LOOK_S = 0.2  # longest wait for a state before the lab is asked if it is there


class LabClient(LabVerbs):
    """A live world in another process: its verbs, and copies of its model and state.

    Each verb of the lab is a method; names of elements are the lab's (`robot/hip`). It is also a
    `LabFace`, as `LiveLab` is. `connect` creates one; it is a context manager.

    Args:
        connection: session with the lab; `close` closes it.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(self.call)
        self.connection = connection
        self._copy = WorldCopy(
            self, self._fetch, lambda: str(self.connection.greeting["mujoco_version"])
        )
        self._robots: dict[str, ClientRobot] = {}
        self._model: mujoco.MjModel | None = None

    def __enter__(self) -> LabClient:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def __getitem__(self, robot: str) -> ClientRobot:
        """Return a robot by its name.

        Raises:
            UnknownNameError: there is no such robot.
        """
        robots = self.robots
        if robot not in robots:
            raise UnknownNameError(
                "unknown_robot",
                f"There is no robot '{robot}' (there is {', '.join(robots) or 'none'})"
                f"{near(robot, robots)}",
            )
        if self._model is not self.model:
            self._model = self.model
            self._elements = RobotElements(self.model, robots)
            self._robots.clear()
        if robot not in self._robots:
            self._robots[robot] = ClientRobot(self, robot, self._elements, self._copy.robots[robot])
        return self._robots[robot]

    def call(self, verb: str, **fields: object) -> Reply:
        """Carry out a verb of the lab, and wait for its effect.

        Args:
            verb: name of the verb; see `describe_verbs`.
            **fields: its fields; None leaves one out.

        Returns:
            The fields of the reply.

        Raises:
            LabError: there is no such verb, a field is missing or wrong, the lab refuses, or there
                is no connection.
        """
        reads = only_reads(verb)
        known = self._known_layout()
        reply = self.connection.ask(
            "call_verb",
            repeat=reads,
            verb=verb,
            fields={name: value for name, value in fields.items() if value is not None},
            snapshot_of=None if reads else known,
        )
        if "snapshot" in reply:
            self._copy.take(self._unpack(reply["snapshot"]))
        return reply["result"]

    @property
    def verbs(self) -> LabVerbs:
        """The client itself, whose methods are the verbs."""
        return self

    def describe_verbs(self) -> list[dict[str, object]]:
        """Return the catalogue of the lab's verbs as plain data."""
        return self.connection.ask("describe_verbs", repeat=True)["verbs"]

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world, asked for at each access; `data` follows it."""
        snapshot = self._fetch()
        self._copy.take(snapshot)
        return snapshot

    @property
    def facts(self) -> LabFacts:
        """The state that snapshots do not contain, asked for at each access."""
        return LabFacts.from_plain(self.read_status())

    def states(self, timeout: float | None = None) -> Iterator[Snapshot]:
        """Yield the present snapshot of the world, and then each newer one as the lab pushes it.

        `data` follows them. A program that takes longer than a step gets the newest snapshot, and
        not those before it. The iterator ends when the client is closed.

        Args:
            timeout: longest wait for a new snapshot [s]; None waits for as long as it takes.

        Raises:
            LabTimeoutError: no new snapshot came in time.
            SessionError: this client drove, and has lost the world.
            LabError: the lab has ended.
        """
        connection = self.connection
        stream = connection.open_stream()
        sessions = connection.restarts
        heard = time.monotonic()
        last = -1
        try:
            snapshot: Snapshot | None = self._fetch()
            while True:
                if snapshot is not None:
                    heard = time.monotonic()
                    last = snapshot.frame_id
                    self._copy.take(snapshot)
                    yield snapshot
                snapshot = None
                if connection.is_closed:
                    return
                connection.check_session("states")
                silence = time.monotonic() - heard
                if timeout is not None and silence >= timeout:
                    raise LabTimeoutError(
                        "step_timeout", f"The lab has no new state for {timeout:g} s."
                    )
                wait = _LOOK_S
                if timeout is not None:
                    wait = min(_LOOK_S, timeout - silence)
                fresh = stream.wait(wait)
                if fresh is not None:
                    snapshot = self._newer(fresh, last)
                elif connection.is_closed:
                    return
                else:
                    # The push may have come before the subscription; the lab may have ended, or
                    # have been started again at other ports, or have no world at present.
                    snapshot = self._look(last)
                if connection.restarts != sessions:
                    stream.close()
                    stream = connection.open_stream()
                    sessions = connection.restarts
        finally:
            stream.close()

    def _look(self, last: int) -> Snapshot | None:
        """Return the newest snapshot; None if it is the last one again, or there is no world."""
        try:
            return self._newer(self._fetch(waits=False), last)
        except NotReadyError as error:
            if error.code != "no_active_manager":
                raise
            return None

    def _newer(self, fresh: Snapshot, last: int) -> Snapshot | None:
        """Return a snapshot that was pushed, or a newer one; None if it is the last one again."""
        known = self._copy.snapshot
        if known is not None and fresh.frame_id < known.frame_id:
            fresh = self._fetch()  # late, or of another lab, which counts from zero
        return fresh if fresh.frame_id != last else None

    @property
    def model(self) -> mujoco.MjModel:
        """A copy of the compiled model, fetched at the first access.

        Each reply of a verb that changes values of the model updates it in place; a rebuild of the
        world replaces it.
        """
        return self._copy.model

    @property
    def data(self) -> mujoco.MjData:
        """A copy of the world's state, and what follows from it, for any function of MuJoCo.

        Each reply of a verb that is no reading one updates it in place, and so do `snapshot`
        and `states`, which follow a world that runs by itself. State, accelerations, actuator
        forces and sensors are the lab's; all else is computed here from the state (`mj_forward`).
        The forces `qfrc_applied`, `eq_active` and the states of plugins do not come. What a
        program writes into it has no effect on the lab.
        """
        return self._copy.data

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        return {name: robot["prefix"] for name, robot in self._copy.robots.items()}

    def sync_model(self) -> None:
        """Bring `model` up to the newest snapshot."""
        self._copy.sync_model()

    @property
    def is_driver(self) -> bool:
        """True if this client drives: only one client may change the world."""
        return self.connection.is_driver

    def take_driver(self) -> str:
        """Drive in place of any other client, which observes from now on; return its name.

        After the loss of the world (`SessionError`), this begins a new session in the same lab.
        """
        return self.connection.drive()

    def release_driver(self) -> None:
        """Stop driving, and observe; the mode of the world is as it was before."""
        self.connection.release()

    def network_status(self) -> Reply:
        """Return who is connected, who drives, and the counters of the server."""
        return self.connection.ask("network_status", repeat=True)

    def image(
        self, camera: str, kind: Literal["rgb", "depth", "segmentation", "body", "entity"] = "rgb"
    ) -> np.ndarray:
        """Return an image of a camera, taken now.

        Args:
            camera: name of the camera.
            kind: kind of image; `CameraImage` describes their values and shapes.
        """
        return image_of(self.capture_camera(camera, kind))

    def close(self) -> None:
        """End the session; a second call does nothing."""
        self.connection.close()

    def _known_layout(self) -> int:
        snapshot = self._copy.snapshot
        return -1 if snapshot is None else snapshot.model_version

    def _fetch(self, waits: bool = True) -> Snapshot:
        known = self._known_layout()
        reply = self.connection.ask("read_snapshot", repeat=True, waits=waits, snapshot_of=known)
        return self._unpack(reply["snapshot"])

    def _unpack(self, plain: Reply) -> Snapshot:
        before = self._copy.snapshot
        layout = None if before is None else before.layout
        return unpack_snapshot(plain, layout)


def connect(
    address: str = ADDRESS,
    *,
    role: Role = "driver",
    name: str = "",
    timeout: float = 30.0,
    patience: float = 10.0,
    keys: Path | str | None = None,
) -> LabClient:
    """Connect to a lab that serves programs (`manyworlds lab TARGET --serve`).

    Args:
        address: address of its requests: `tcp://HOST:PORT`, or a port of this machine.
        role: `driver` drives if no other client does; `observer` only reads; `takeover` drives in
            place of any other client.
        name: name of this program, for people; by default that of its file.
        timeout: longest wait for the reply to a request [s].
        patience: longest time of attempts to connect, also after the lab was restarted, and of
            waits for a world that is being loaded [s].
        keys: copy of the server's file `client.key`, for a lab of another machine (`--listen`),
            whose encrypted port of requests is 6559.

    Returns:
        The client. When this program ends, even by a kill, the lab notices within 2 s, and another
        client may drive.

    Raises:
        MissingExtraError: the extra 'net' is not installed.
        LabConnectionError: no lab answers.
        LabVersionError: the lab's protocol is another one.
        ValueError: the address is none, or the file has no keys, or others can read it.
        FileNotFoundError: there is no such file of keys.
    """
    if str(address).isdecimal():
        address = f"tcp://127.0.0.1:{address}"
    if "://" not in address:
        raise ValueError(f"An address begins with tcp://, as '{ADDRESS}' does, got '{address}'.")
    name = name or f"{Path(sys.argv[0]).name or 'python'} ({os.getpid()})"
    known = None
    if keys is not None:
        from manyworlds.lab.readers.curve_access import read_client_keys

        known = read_client_keys(keys)
    return LabClient(Connection(address, name, role, timeout, patience, known))


def image_of(reply: Reply | CaptureCameraReply) -> np.ndarray:
    """Return the image of a reply of `capture_camera`, or of `cameras` in a reply of `step`.

    Args:
        reply: header and pixels of an image that is not encoded as JPEG.

    Returns:
        The image, shape [height, width] or [height, width, channels].
    """
    return decode_image(reply["header"], reply["data"])

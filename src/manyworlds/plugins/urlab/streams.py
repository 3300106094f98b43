"""Published states: small binary messages by robot and element (ports 5555 and 5557).

A message is two frames, a topic and its payload; all numbers are little-endian.
`docs/lab_protocol.md` lists them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.verbs.fields import PlainMap
from manyworlds.plugins.urlab.roster import Member, NamedPart, Roster

Message = tuple[bytes, bytes]
"""Topic and payload."""

UNLIMITED = 100.0
"""Range that is told of an actuator without limits: from minus this to this."""
_JOINT = np.dtype([("id", "<i4"), ("pos", "<f4"), ("vel", "<f4"), ("acc", "<f4")])
_JOINT_BYTES = _JOINT.itemsize
_INFO_EVERY = 50  # frames
_INFO_BURST = 2500  # frames
_INFO_LATER = 500  # frames


def pack_joint(joint: int, position: float, velocity: float, acceleration: float) -> bytes:
    """Return the state of a joint: its id, position, velocity and acceleration, 16 bytes."""
    return struct.pack("<ifff", joint, position, velocity, acceleration)


def pack_sensor(sensor: int, values: Sequence[float]) -> bytes:
    """Return the values of a sensor: its id, their number, the values."""
    return struct.pack(f"<ii{len(values)}f", sensor, len(values), *values)


def pack_base_state(qpos: Sequence[float], qvel: Sequence[float]) -> bytes:
    """Return the state of a free joint, 13 floats; its quaternion is x, y, z, w.

    Args:
        qpos: position [m] and quaternion (w, x, y, z).
        qvel: velocity [m/s] in the world, angular velocity [rad/s] in the body's frame.
    """
    x, y, z, *quat = qpos
    return struct.pack("<13f", x, y, z, *quat[1:], quat[0], *qvel)


def pack_twist(values: Sequence[float]) -> bytes:
    """Return forward and left velocity [m/s] and yaw rate [rad/s], 12 bytes."""
    return struct.pack("<3f", *values)


def pack_actions(mask: int) -> bytes:
    """Return the bit mask of actions, 4 bytes."""
    return struct.pack("<i", mask)


def pack_control(targets: Iterable[tuple[int, float]]) -> bytes:
    """Return targets by actuator id, as clients send them."""
    pairs = list(targets)
    return struct.pack("<i", len(pairs)) + b"".join(struct.pack("<if", *pair) for pair in pairs)


def camera_message(robot: str, camera: str, picture: np.ndarray) -> Message:
    """Return a camera's picture.

    Args:
        robot: name of the robot.
        camera: name of the camera.
        picture: shape [height, width, 4], blue, green, red, alpha, uint8; or depth [m], shape
            [height, width], float32.
    """
    kind = "<f4" if picture.ndim == 2 else np.uint8
    pixels = np.ascontiguousarray(picture, dtype=kind)
    return f"{robot}/camera/{camera} ".encode(), pixels.tobytes()


class StateEncoder:
    """Encodes the states of all robots of one model.

    Args:
        roster: members of the world.
    """

    def __init__(self, roster: Roster) -> None:
        robots = roster.articulations
        joints: list[tuple[Member, NamedPart]] = []
        for robot in robots:
            joints += [(robot, joint) for joint in robot.joints]
        self._joint_topics = [f"{r.name}/joint/{j.name}".encode() for r, j in joints]
        self._rows = np.zeros(len(joints), _JOINT)
        self._rows["id"] = [joint.id for _, joint in joints]
        self._q = np.array([joint.start for _, joint in joints], int)
        self._v = np.array([joint.dof for _, joint in joints], int)
        self._bases = [
            (f"{robot.name}/base_state/{joint.name}".encode(), joint)
            for robot, joint in joints
            if joint.size == 7
        ]
        self._sensors = []
        for robot in robots:
            for sensor in robot.sensors:
                topic = f"{robot.name}/sensor/{sensor.name}".encode()
                head = struct.pack("<ii", sensor.id, sensor.size)
                place = slice(4 * sensor.start, 4 * (sensor.start + sensor.size))
                self._sensors.append((topic, head, place))
        self._entities = roster.entities
        self.topics = tuple(f"{name}/".encode() for name in roster.members)
        """Beginnings of the topics of robots."""

    def encode(self, snapshot: Snapshot, robots: PlainMap) -> Iterator[Message]:
        """Yield the messages of all robots.

        Args:
            snapshot: a snapshot of the model.
            robots: twist and actions of the robots, see `robot_inputs`.
        """
        rows = self._rows
        with np.errstate(over="ignore"):  # beyond float32: infinity
            rows["pos"] = snapshot.qpos[self._q]
            rows["vel"] = snapshot.qvel[self._v]
            rows["acc"] = snapshot.qacc[self._v]
            sensordata = snapshot.sensordata.astype("<f4").tobytes()
        block = rows.tobytes()
        for i, topic in enumerate(self._joint_topics):
            yield topic, block[i * _JOINT_BYTES : (i + 1) * _JOINT_BYTES]
        for topic, head, place in self._sensors:
            yield topic, head + sensordata[place]
        for topic, joint in self._bases:
            qpos = snapshot.qpos[joint.start : joint.start + 7].tolist()
            yield topic, pack_base_state(qpos, snapshot.qvel[joint.dof : joint.dof + 6].tolist())
        for name, robot in robots.items():
            if robot["twist"]:
                yield f"{name}/twist".encode(), pack_twist(robot["twist"])
            if robot["actions"]:
                yield f"{name}/actions".encode(), pack_actions(int(robot["actions"]))

    def encode_entities(self, snapshot: Snapshot) -> Iterator[Message]:
        """Yield the poses and velocities of loose bodies, float64."""
        for body in self._entities:
            values = {
                "xpos": snapshot.xpos[body.id],
                "xquat": snapshot.xquat[body.id],
                "qpos": snapshot.qpos[body.qpos],
                "qvel": snapshot.qvel[body.qvel],
            }
            for field, numbers in values.items():
                yield f"scene/{body.name}/{field}".encode(), numbers.astype("<f8").tobytes()


def info_message(
    roster: Roster, robot: Member, cameras: Mapping[str, Mapping[str, object]] | None = None
) -> bytes:
    """Return the list of a robot's actuators as JSON, one frame without a topic.

    `ids` are indices of controls in the model, which control messages use.

    Args:
        roster: members of the world.
        robot: one of them.
        cameras: its cameras by name, as `CameraServer.topics` describes them.
    """
    limited = roster.model.actuator_ctrllimited[robot.ctrl].astype(bool)
    low, high = roster.model.actuator_ctrlrange[robot.ctrl].T
    info = {
        "type": "actuator_list",
        "robot": robot.name,
        "names": [f"{robot.name}_{name}" for name in robot.control_names],
        "ids": robot.ctrl.tolist(),
        "mins": np.where(limited, low, -UNLIMITED).tolist(),
        "maxs": np.where(limited, high, UNLIMITED).tolist(),
        "limited": limited.tolist(),
        "camera_list": [
            {"name": name, "endpoint": camera["zmq_endpoint"]}
            for name, camera in (cameras or {}).items()
        ],
    }
    return json.dumps(info).encode()


def info_is_due(previous: int, present: int) -> bool:
    """Return True if the list of actuators is published between two frames.

    It is published every 50 frames in the first 2500, then every 500.

    Args:
        previous: number of frames when it was last asked; -1 at first.
        present: number of frames now.
    """
    every = _INFO_EVERY if present <= _INFO_BURST else _INFO_LATER
    return previous < 0 or present // every > previous // every

"""States of a world as ROS 2 messages, in ROS's conventions (REP 103 and 105).

Lengths are in m, angles in rad, x is forward, y left and z up. Quaternions are x, y, z, w. Frames
of cameras end with `_optical_frame`: there, z is forward, x right and y down. Stamps are simulated
time, which `/clock` has, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.lab.readers.wire import Message as Fields
from manyworlds.lab.world.model_facts import body_frames, element_names, wire_name
from manyworlds.plugins.urlab.names import client_names
from manyworlds.validation.names import free_name

_SCALAR = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_GYRO = int(mujoco.mjtSensor.mjSENS_GYRO)
_ACCEL = int(mujoco.mjtSensor.mjSENS_ACCELEROMETER)
_KNOWN = [0.0] * 9  # covariance of what has no noise
_UNKNOWN = [-1.0, *_KNOWN[1:]]  # of what there is no sensor for
_OPTICAL = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: from MuJoCo's cameras to ROS's


@dataclass(frozen=True)
class RosMessage:
    """A message, and where it belongs."""

    topic: str
    type: str
    """Type, such as `sensor_msgs/msg/Imu`."""
    content: Fields
    """Fields by name; messages in it are such maps, too."""


@dataclass(frozen=True)
class _Joints:
    topic: str
    names: list[str]
    qpos: np.ndarray
    dofs: np.ndarray


@dataclass(frozen=True)
class _Imu:
    topic: str
    site: int
    frame: str
    gyro: int | None
    """Place of its values in `sensordata`; None if there is no gyroscope."""
    accelerometer: int | None


class RosWorld:
    """Messages of the states of one compiled model.

    Args:
        model: the model.
        robots: prefix of the elements of each robot, by the robot's name.
    """

    def __init__(self, model: mujoco.MjModel, robots: Mapping[str, str]) -> None:
        self.model = model
        self.data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, self.data)  # images may come before the first state
        self._robots = tuple(robots)
        self._clients = clients = client_names(model, robots)
        self._live = {kind: element_names(model, kind) for kind in ("body", "site", "cam", "jnt")}
        self._counts = {kind: Counter(names) for kind, names in clients.wire.items()}
        bodies = enumerate(self._live["body"])
        self._bodies = body_frames([name and self._name("body", i) for i, name in bodies])
        self._frames = set(self._bodies)
        self._topics: set[str] = set()
        self._joints = list(self._find_joints())
        self._imus = list(self._find_imus())
        self.cameras = tuple(self._name("cam", i) for i in range(model.ncam))
        """Names of the model's cameras."""
        self._camera_frames = {
            name: _take_name(f"{name}_optical_frame", self._frames) for name in self.cameras
        }
        self._added_frames: dict[str, str] = {}

    def messages(self, state: Fields) -> list[RosMessage]:
        """Return all messages of a state but images.

        Args:
            state: time `t` [s], `qpos`, `qvel`, `act`, `ctrl`, `mocap_pos`, `mocap_quat` and
                `sensordata`, as `mujoco.MjData` has them.
        """
        model, data = self.model, self.data
        for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat"):
            row = getattr(data, name)
            row[:] = np.reshape(state[name], row.shape)
        mujoco.mj_forward(model, data)
        stamp = to_stamp(state["t"])
        found = [RosMessage("/clock", "rosgraph_msgs/msg/Clock", {"clock": stamp})]
        found += [self._joint_state(joints, stamp) for joints in self._joints]
        found.append(_transforms_message(list(self._transforms(stamp))))
        sensors = np.asarray(state["sensordata"], float)
        return found + [self._imu(imu, sensors, stamp) for imu in self._imus]

    def images(self, header: Fields, content: bytes, added: bool = False) -> list[RosMessage]:
        """Return the messages of an image: the pixels, and the camera's parameters.

        The pose of a camera that the model does not have precedes them.

        Args:
            header: header of an image of a camera of the lab, see `CameraImage.header`.
            content: the pixels: uint8 RGB, or float32 depth [m].
            added: whether the camera was added to the lab, and is none of the model.
        """
        name = str(header["camera"])
        is_depth = header["kind"] == "depth"
        width, height = int(header["width"]), int(header["height"])
        stamp = to_stamp(header["time"])
        known = None
        if not added:
            known = self._model_camera(name)
        poses: list[RosMessage] = []
        if known is None:
            frame = self._frame_of_added(name)
            pose = self._camera_pose(stamp, frame, header["pos"], header["quat"])
            poses.append(_transforms_message([pose]))
        else:
            frame = self._camera_frames[known]
        head = {"stamp": stamp, "frame_id": frame}
        fx, fy = float(header["fx"]), float(header["fy"])
        # ROS counts from the center of the first pixel, the lab from its corner.
        cx, cy = float(header["cx"]) - 0.5, float(header["cy"]) - 0.5
        size = {"height": height, "width": width}
        start = f"/{to_topic(name)}/"
        pixel = {"encoding": "rgb8", "step": 3 * width}
        if is_depth:
            start += "depth/"
            pixel = {"encoding": "32FC1", "step": 4 * width}
        image = {"header": head, **size, **pixel, "is_bigendian": 0, "data": content}
        info = {
            "header": head,
            **size,
            "distortion_model": "plumb_bob",
            "d": [0.0] * 5,
            "k": [fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
            "r": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            "p": [fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
            "binning_x": 0,
            "binning_y": 0,
            "roi": {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False},
        }
        return [
            *poses,
            RosMessage(f"{start}image_raw", "sensor_msgs/msg/Image", image),
            RosMessage(f"{start}camera_info", "sensor_msgs/msg/CameraInfo", info),
        ]

    def _name(self, kind: str, index: int) -> str:
        word = {"body": "body", "site": "site", "cam": "camera", "jnt": "joint"}[kind]
        live = self._live[kind][index]
        wire = self._clients.wire[kind][index]
        if not live:
            return f"{word}_{index}"
        # `1_hip` of `go` and `hip` of `go_1` keep the names that they have.
        return live if self._counts[kind][wire] > 1 else wire

    def _robot_of(self, kind: str, index: int) -> tuple[str, str]:
        """Return the robot of an element, empty for none, and its name without the robot's."""
        robot = self._clients.owners[kind][index] or ""
        if not self._live[kind][index]:
            return robot, self._name(kind, index)
        return robot, self._clients.wire[kind][index].removeprefix(f"{robot}_")

    def _find_joints(self) -> Iterator[_Joints]:
        model = self.model
        found = {}
        for joint in range(model.njnt):
            if model.jnt_type[joint] in _SCALAR:
                robot, short = self._robot_of("jnt", joint)
                found.setdefault(robot, []).append((short, joint))
        for robot, members in found.items():
            ids = np.array([joint for _, joint in members])
            topic = "/joint_states"
            if robot:
                topic = f"/{to_topic(robot)}/joint_states"
            topic = _take_name(topic, self._topics)
            names = [short for short, _ in members]
            yield _Joints(topic, names, model.jnt_qposadr[ids], model.jnt_dofadr[ids])

    def _find_imus(self) -> Iterator[_Imu]:
        model = self.model
        places: dict[int, dict[int, int]] = {}
        for sensor in range(model.nsensor):
            kind = int(model.sensor_type[sensor])
            if kind in (_GYRO, _ACCEL) and model.sensor_objtype[sensor] == _SITE:
                place = int(model.sensor_adr[sensor])
                places.setdefault(int(model.sensor_objid[sensor]), {}).setdefault(kind, place)
        named = {site: self._robot_of("site", site) for site in places}
        owners = [robot for robot, _ in named.values()]
        for site, found in places.items():
            robot, short = named[site]
            parts = [robot, "imu"]
            if owners.count(robot) > 1:
                parts.append(short)
            topic = "/" + "/".join(to_topic(part) for part in parts if part)
            topic = _take_name(topic, self._topics)
            frame = self._name("site", site)
            if frame in self._frames:  # sites are often named as their bodies, which have frames
                frame += "_site"
            frame = _take_name(frame, self._frames)
            yield _Imu(topic, site, frame, found.get(_GYRO), found.get(_ACCEL))

    def _joint_state(self, joints: _Joints, stamp: dict[str, int]) -> RosMessage:
        data = self.data
        content = {
            "header": {"stamp": stamp, "frame_id": ""},
            "name": joints.names,
            "position": data.qpos[joints.qpos].tolist(),
            "velocity": data.qvel[joints.dofs].tolist(),
            "effort": data.qfrc_actuator[joints.dofs].tolist(),
        }
        return RosMessage(joints.topic, "sensor_msgs/msg/JointState", content)

    def _imu(self, imu: _Imu, sensors: np.ndarray, stamp: dict[str, int]) -> RosMessage:
        def values(place: int | None) -> dict[str, float]:
            if place is None:
                return to_vector(np.zeros(3))
            return to_vector(sensors[place : place + 3])

        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, self.data.site_xmat[imu.site])
        content = {
            "header": {"stamp": stamp, "frame_id": imu.frame},
            "orientation": to_quaternion(quat),
            "orientation_covariance": _KNOWN,
            "angular_velocity": values(imu.gyro),
            "angular_velocity_covariance": _UNKNOWN if imu.gyro is None else _KNOWN,
            "linear_acceleration": values(imu.accelerometer),
            "linear_acceleration_covariance": _UNKNOWN if imu.accelerometer is None else _KNOWN,
        }
        return RosMessage(imu.topic, "sensor_msgs/msg/Imu", content)

    def _transforms(self, stamp: dict[str, int]) -> Iterator[Fields]:
        """Yield the poses of bodies, sites of IMUs and cameras, each in the frame of its parent."""
        model, data = self.model, self.data
        for body in range(1, model.nbody):
            parent = int(model.body_parentid[body])
            pose = data.xpos[body], data.xquat[body]
            yield self._transform(stamp, parent, self._bodies[body], *pose)
        quat, turned = np.empty(4), np.empty(4)
        for imu in self._imus:
            mujoco.mju_mat2Quat(quat, data.site_xmat[imu.site])
            parent = int(model.site_bodyid[imu.site])
            yield self._transform(stamp, parent, imu.frame, data.site_xpos[imu.site], quat)
        for camera, name in enumerate(self.cameras):
            mujoco.mju_mat2Quat(quat, data.cam_xmat[camera])
            mujoco.mju_mulQuat(turned, quat, _OPTICAL)
            parent = int(model.cam_bodyid[camera])
            frame = self._camera_frames[name]
            yield self._transform(stamp, parent, frame, data.cam_xpos[camera], turned)

    def _frame_of_added(self, name: str) -> str:
        if name not in self._added_frames:
            wanted = f"{wire_name(name)}_optical_frame"
            self._added_frames[name] = _take_name(wanted, self._frames)
        return self._added_frames[name]

    def _model_camera(self, name: str) -> str | None:
        """Return the model's camera that has a name in the lab, or None."""
        if name in self._live["cam"]:
            return self.cameras[self._live["cam"].index(name)]
        of_robots = [f"{robot}_{wire_name(name)}" for robot in self._robots]
        candidates = (name, wire_name(name), *of_robots)
        return next((found for found in candidates if found in self.cameras), None)

    def _camera_pose(
        self, stamp: dict[str, int], frame: str, pos: ArrayLike, quat: ArrayLike
    ) -> Fields:
        """Return the transform from a camera's optical frame to the world."""
        turned = np.empty(4)
        mujoco.mju_mulQuat(turned, np.asarray(quat, float), _OPTICAL)
        return self._transform(stamp, 0, frame, np.asarray(pos, float), turned)

    def _transform(
        self, stamp: dict[str, int], parent: int, child: str, pos: np.ndarray, quat: np.ndarray
    ) -> Fields:
        inverse = np.empty(4)
        place = np.empty(3)
        turn = np.empty(4)
        mujoco.mju_negQuat(inverse, self.data.xquat[parent])
        mujoco.mju_rotVecQuat(place, pos - self.data.xpos[parent], inverse)
        mujoco.mju_mulQuat(turn, inverse, quat)
        return {
            "header": {"stamp": stamp, "frame_id": self._bodies[parent]},
            "child_frame_id": child,
            "transform": {"translation": to_vector(place), "rotation": to_quaternion(turn)},
        }


def _transforms_message(transforms: list[Fields]) -> RosMessage:
    return RosMessage("/tf", "tf2_msgs/msg/TFMessage", {"transforms": transforms})


def _take_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    free = free_name(name, taken)
    taken.add(free)
    return free


def to_stamp(time: float) -> dict[str, int]:
    """Return a time [s] as `builtin_interfaces/Time`."""
    seconds, rest = divmod(round(float(time) * 1e9), 1_000_000_000)
    return {"sec": seconds, "nanosec": rest}


def to_vector(values: np.ndarray) -> dict[str, float]:
    """Return three numbers as `geometry_msgs/Vector3`."""
    return dict(zip("xyz", values.tolist(), strict=True))


def to_quaternion(quat: np.ndarray) -> dict[str, float]:
    """Return a quaternion (wxyz) as `geometry_msgs/Quaternion`."""
    w, x, y, z = quat.tolist()
    return {"x": x, "y": y, "z": z, "w": w}


def to_topic(name: str) -> str:
    """Return a name as a part of a topic, which has letters, digits and `_` only."""
    part = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{part}" if part[:1].isdigit() else part

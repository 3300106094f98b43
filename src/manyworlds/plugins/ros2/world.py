"""States of a world as ROS 2 messages, in ROS's conventions (REP 103 and 105).

Lengths are in m, angles in rad, x is forward, y left and z up. Quaternions are x, y, z, w. Frames
of cameras end with `_optical_frame`: there, z is forward, x right and y down. Stamps are simulated
time, which `/clock` has, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.lab.readers.wire import Message as Fields
from manyworlds.lab.world.frames import ModelFrames, camera_matrices, optical_quat
from manyworlds.plugins.urlab.names import client_names
from manyworlds.validation.names import free_name

_SCALAR = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_GYRO = int(mujoco.mjtSensor.mjSENS_GYRO)
_ACCEL = int(mujoco.mjtSensor.mjSENS_ACCELEROMETER)
_KNOWN = [0.0] * 9  # covariance of what has no noise
_UNKNOWN = [-1.0, *_KNOWN[1:]]  # of what there is no sensor for


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
        self._clients = client_names(model, robots)
        self._frames = ModelFrames(model)
        self._topics: set[str] = set()
        self._joints = list(self._find_joints())
        self._imus = list(self._find_imus())

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

    def images(self, header: Fields, content: bytes) -> list[RosMessage]:
        """Return the messages of an image: the camera's pose, the pixels, and its parameters.

        Args:
            header: header of an image of a camera of the lab, see `CameraImage.header`.
            content: the pixels: uint8 RGB, or float32 depth [m].
        """
        name = str(header["camera"])
        is_depth = header["kind"] == "depth"
        width, height = int(header["width"]), int(header["height"])
        stamp = to_stamp(header["time"])
        poses: list[RosMessage] = []
        frame = self._frames.camera(name)
        if frame not in self._frames.cameras:  # those of the model are in the messages of a state
            turned = optical_quat(header["quat"])
            pose = self._transform(stamp, 0, frame, np.asarray(header["pos"], float), turned)
            poses.append(_transforms_message([pose]))
        head = {"stamp": stamp, "frame_id": frame}
        fx, fy, cx, cy = (float(header[key]) for key in ("fx", "fy", "cx", "cy"))
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
            **camera_matrices(fx, fy, cx, cy),
            "binning_x": 0,
            "binning_y": 0,
            "roi": {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False},
        }
        return [
            *poses,
            RosMessage(f"{start}image_raw", "sensor_msgs/msg/Image", image),
            RosMessage(f"{start}camera_info", "sensor_msgs/msg/CameraInfo", info),
        ]

    def _robot_of(self, kind: str, index: int) -> tuple[str, str]:
        """Return the robot of an element, empty for none, and its name without the robot's."""
        robot = self._clients.owners[kind][index] or ""
        name = self._clients.wire[kind][index]
        if not name:
            return robot, f"{kind}_{index}"
        return robot, name.removeprefix(f"{robot}_")

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
            frame = self._frames.imus[site]
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
            yield self._transform(stamp, parent, self._frames.bodies[body], *pose)
        quat = np.empty(4)
        for imu in self._imus:
            mujoco.mju_mat2Quat(quat, data.site_xmat[imu.site])
            parent = int(model.site_bodyid[imu.site])
            yield self._transform(stamp, parent, imu.frame, data.site_xpos[imu.site], quat)
        for camera, frame in enumerate(self._frames.cameras):
            mujoco.mju_mat2Quat(quat, data.cam_xmat[camera])
            parent = int(model.cam_bodyid[camera])
            pose = data.cam_xpos[camera], optical_quat(quat)
            yield self._transform(stamp, parent, frame, *pose)

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
            "header": {"stamp": stamp, "frame_id": self._frames.bodies[parent]},
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

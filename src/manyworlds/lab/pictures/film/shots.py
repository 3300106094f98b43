"""Shots: poses of a film's camera over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import mujoco
import numpy as np

from manyworlds.lab.pictures.camera import quat_to_look
from manyworlds.lab.pictures.film.camera_path import CameraPath
from manyworlds.viewer.browser.framing import frame_all
from manyworlds.viewer.browser.overlays.shapes import Poses

ORBIT_RADIUS, ORBIT_SPEED, ORBIT_HEIGHT = 3.0, 30.0, 0.8
"""Radius [m], speed [degrees/s] and height [m] of an orbit."""
SWING, SWINGS = 0.2, 2.0
"""Amplitude of the height [m], and number of its periods in an orbit."""
SMOOTHING = 5.0
"""Rate at which a camera catches up with a target that moves [1/s]."""
PADDING, LEAST_RADIUS = 1.4, 1.5
"""Radius of an automatic orbit by the size of what it shows, and its least value [m]."""

_LAST_GROUP = 2  # MuJoCo's programs show the groups of geoms up to this one

Pose = tuple[np.ndarray, np.ndarray]


class Shot(Protocol):
    """Pose of a camera over time, in a world that moves."""

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return position [m] and orientation (wxyz) at a time since the start [s].

        Times ascend from call to call. The shapes are (3,) and (4,).
        """
        ...


@dataclass
class _Smooth:
    """Point that follows another one, e-fold in `1 / rate` seconds."""

    rate: float
    _point: np.ndarray | None = None
    _time: float = 0.0

    def follow(self, target: np.ndarray, time: float) -> np.ndarray:
        """Return the point at a time [s], shape (3,)."""
        if self._point is None or self.rate <= 0.0 or time < self._time:
            self._point = target.copy()
        else:
            share = 1.0 - math.exp(-self.rate * (time - self._time))
            self._point = self._point + share * (target - self._point)
        self._time = time
        return self._point.copy()


@dataclass(kw_only=True)
class OrbitShot:
    """Camera on a circle around a body, or around a point.

    Its position relative to the target is `radius (cos a, sin a)` and the height
    `height + swing sin(swings a)`, with the angle `a = phase + speed t`.
    """

    target: str = ""
    """Name of the body; empty for `point`."""
    point: tuple[float, float, float] | None = None
    """The point [m]; None takes the center of everything that moves, which is followed."""
    radius: float = 0.0
    """Radius [m]; 0 fits what is shown: 1.4 times its size, at least 1.5 m."""
    speed: float = ORBIT_SPEED
    height: float = ORBIT_HEIGHT
    swing: float = SWING
    swings: float = SWINGS
    phase: float = 0.0
    """Angle at the start [degrees]."""
    smoothing: float = SMOOTHING
    _smooth: _Smooth | None = field(default=None, repr=False)

    def around(self, time: float) -> np.ndarray:
        """Return the position relative to the target [m], shape (3,)."""
        angle = math.radians(self.phase + self.speed * time)
        radius = self.radius or ORBIT_RADIUS
        height = self.height + self.swing * math.sin(self.swings * angle)
        return np.array([radius * math.cos(angle), radius * math.sin(angle), height])

    def ease(self, target: np.ndarray, time: float) -> np.ndarray:
        """Return the center of the orbit, which follows the target smoothly [m], shape (3,)."""
        self._smooth = self._smooth or _Smooth(self.smoothing)
        return self._smooth.follow(target, time)

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        self.radius = self.radius or fit_radius(model, data, self.target)
        center = self.ease(self._center(model, data), time)
        pos = center + self.around(time)
        return pos, np.array(quat_to_look(pos, center))

    def _center(self, model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        if self.target:
            return data.xipos[find_body(model, self.target)].copy()
        if self.point is not None:
            return np.array(self.point, float)
        return everything(model, data).mean(axis=0)


@dataclass(kw_only=True)
class PathShot:
    """Camera on a path."""

    path: CameraPath

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        return self.path.pose(time)


@dataclass(kw_only=True)
class FollowShot:
    """Camera that keeps its distance from a body and looks at it; it does not turn with it."""

    body: str
    offset: tuple[float, float, float] = (-2.0, -1.5, 1.0)
    """Position relative to the body, in the world's frame [m]."""
    smoothing: float = SMOOTHING
    _smooth: _Smooth | None = field(default=None, repr=False)

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        self._smooth = self._smooth or _Smooth(self.smoothing)
        center = self._smooth.follow(data.xipos[find_body(model, self.body)], time)
        pos = center + self.offset
        return pos, np.array(quat_to_look(pos, center))


@dataclass(kw_only=True)
class FirstPersonShot:
    """Camera that a body carries; it looks along the body's +x, with its +z up."""

    body: str
    pos: tuple[float, float, float] = (0.1, 0.0, 0.1)
    """Position in the body's frame [m]."""

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        body = find_body(model, self.body)
        turn, quat = data.xmat[body].reshape(3, 3), np.empty(4)
        mujoco.mju_mulQuat(quat, data.xquat[body], np.array([0.5, 0.5, -0.5, -0.5]))
        return data.xpos[body] + turn @ self.pos, quat


@dataclass(kw_only=True)
class FixedShot:
    """Camera that stays: a view of a page, for instance."""

    pos: tuple[float, float, float]
    look_at: tuple[float, float, float]

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        return np.array(self.pos, float), np.array(quat_to_look(self.pos, self.look_at))


@dataclass(kw_only=True)
class ModelShot:
    """Camera of the model."""

    camera: str

    def pose(self, time: float, model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
        """Return the pose; see `Shot`."""
        camera = _find(model, mujoco.mjtObj.mjOBJ_CAMERA, self.camera, "camera")
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, data.cam_xmat[camera])
        return data.cam_xpos[camera].copy(), quat


SHOTS: Mapping[str, type] = {
    "orbit": OrbitShot,
    "path": PathShot,
    "follow": FollowShot,
    "first_person": FirstPersonShot,
    "fixed": FixedShot,
    "camera": ModelShot,
}
"""Shots by name."""


def make_shot(plain: Mapping[str, object], model: mujoco.MjModel) -> Shot:
    """Return a shot from plain data: its `kind`, and its fields.

    Args:
        plain: `{"kind": "orbit", "target": "pelvis"}`, for instance; see `SHOTS`.
        model: model of the world, for its bodies and cameras.

    Raises:
        ValueError: there is no such shot, field, body or camera.
    """
    fields: dict[str, Any] = dict(plain)
    kind = fields.pop("kind", "orbit")
    if kind not in SHOTS:
        raise ValueError(f"There is no shot '{kind}': choose from {', '.join(SHOTS)}.")
    if kind == "path":
        path = fields.get("path", {})
        fields["path"] = path if isinstance(path, CameraPath) else CameraPath.from_plain(path)
    try:
        shot = SHOTS[kind](**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
    except TypeError as error:
        raise ValueError(f"The shot '{kind}' cannot be made: {error}.") from error
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    replace(shot).pose(0.0, model, data)  # a copy, because shots remember what they followed
    return shot


def fit_radius(model: mujoco.MjModel, data: mujoco.MjData, target: str = "") -> float:
    """Return the radius of an orbit that shows a body with all that it carries [m].

    Args:
        model: the model.
        data: its data.
        target: name of the body; empty for everything, see `everything`.
    """
    if not target:
        box = everything(model, data)
        return max(LEAST_RADIUS, PADDING * float((box[1] - box[0]).max()))
    root = int(model.body_rootid[find_body(model, target)])
    own = (model.body_rootid[model.geom_bodyid] == root) & (model.geom_rbound > 0.0)
    if not own.any():
        return LEAST_RADIUS
    points, sizes = data.geom_xpos[own], model.geom_rbound[own][:, None]
    size = (points + sizes).max(axis=0) - (points - sizes).min(axis=0)
    return max(LEAST_RADIUS, PADDING * float(size.max()))


def everything(model: mujoco.MjModel, poses: Poses) -> np.ndarray:
    """Return the box around what moves and what is beside it [m], shape (2, 3).

    Grounds and arenas, which may be a hundred times as large, are left out as on the page.
    """
    drawn = np.flatnonzero(model.geom_group <= _LAST_GROUP).tolist()
    soft = poses.flexvert_xpos if isinstance(poses, mujoco.MjData) else np.empty((0, 3))
    return frame_all(model, poses, drawn, soft.reshape(-1, 3))


def find_body(model: mujoco.MjModel, name: str) -> int:
    """Return the id of a body.

    Raises:
        ValueError: there is no such body.
    """
    return _find(model, mujoco.mjtObj.mjOBJ_BODY, name, "body")


def _find(model: mujoco.MjModel, kind: mujoco.mjtObj, name: str, noun: str) -> int:
    found = mujoco.mj_name2id(model, kind, name)
    if found < 0:
        raise ValueError(f"The world has no {noun} '{name}' for a shot.")
    return found

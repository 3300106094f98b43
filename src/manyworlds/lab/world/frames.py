"""Coordinate frames of a world, with the same names in ROS 2 messages and in MCAP files."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.lab.world.model_facts import element_names, wire_name
from manyworlds.validation.names import free_name

_IMU_SENSORS = (int(mujoco.mjtSensor.mjSENS_GYRO), int(mujoco.mjtSensor.mjSENS_ACCELEROMETER))
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_OPTICAL = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: from MuJoCo's cameras to ROS's


class ModelFrames:
    """Names of the frames of a model's bodies, IMUs and cameras; no two frames have the same name.

    A frame has the name of its element, with `_` for `/`: `go_base` for `go/base`. The frame of a
    camera ends with `_optical_frame`: there, z is forward, x right and y down.

    Args:
        model: the model.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._taken: set[str] = set()
        self.bodies = self._name_bodies(element_names(model, "body"))
        """Frame of each body, by id; the first is `world`."""
        self.imus = {site: self._name_site(model, site) for site in _imu_sites(model)}
        """Frame of each site that has a gyroscope or an accelerometer, by its id."""
        self.cameras: list[str] = []
        """Frame of each camera of the model, by id."""
        self._cameras: dict[str, str] = {}
        for i, name in enumerate(element_names(model, "cam")):
            known = name or f"camera_{i}"
            self._cameras[known] = self._take_camera(known)
            self.cameras.append(self._cameras[known])

    def camera(self, name: str) -> str:
        """Return the frame of a camera by its name in the lab, also of one that was added."""
        if name not in self._cameras:
            self._cameras[name] = self._take_camera(name)
        return self._cameras[name]

    def _name_bodies(self, names: Sequence[str]) -> list[str]:
        wanted = [wire_name(name) or f"body_{i}" for i, name in enumerate(names)]
        # Bodies that have such a name themselves keep it.
        order = sorted(range(len(names)), key=lambda i: wanted[i] != names[i])
        found = {i: self._take(wanted[i]) for i in order}
        return [found[i] for i in range(len(names))]

    def _name_site(self, model: mujoco.MjModel, site: int) -> str:
        name = wire_name(model.site(site).name) or f"site_{site}"
        if name in self._taken:  # sites are often named as their bodies, which have frames
            name += "_site"
        return self._take(name)

    def _take_camera(self, name: str) -> str:
        return self._take(f"{wire_name(name)}_optical_frame")

    def _take(self, name: str) -> str:
        """Return a name that is not taken, and take it."""
        free = free_name(name, self._taken)
        self._taken.add(free)
        return free


def optical_quat(quat: ArrayLike) -> np.ndarray:
    """Return the orientation of a camera's frame.

    Args:
        quat: orientation of the camera as MuJoCo has it (wxyz): y is up, -z forward.
    """
    turned = np.empty(4)
    mujoco.mju_mulQuat(turned, np.asarray(quat, float), _OPTICAL)
    return turned


def camera_matrices(fx: float, fy: float, cx: float, cy: float) -> dict[str, list[float]]:
    """Return the matrices of a camera without distortion: `d`, `k`, `r` and `p`.

    ROS and Foxglove count pixels from the center of the first one, the lab from its corner.

    Args:
        fx: focal length along x [pixel].
        fy: focal length along y [pixel].
        cx: principal point from the left edge of the image [pixel].
        cy: principal point from its upper edge [pixel].
    """
    x = cx - 0.5
    y = cy - 0.5
    return {
        "d": [0.0] * 5,
        "k": [fx, 0.0, x, 0.0, fy, y, 0.0, 0.0, 1.0],
        "r": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        "p": [fx, 0.0, x, 0.0, 0.0, fy, y, 0.0, 0.0, 0.0, 1.0, 0.0],
    }


def _imu_sites(model: mujoco.MjModel) -> list[int]:
    """Return the sites with a gyroscope or an accelerometer, in the order of the sensors."""
    is_imu = np.isin(model.sensor_type, _IMU_SENSORS) & (model.sensor_objtype == _SITE)
    return list(dict.fromkeys(model.sensor_objid[is_imu].tolist()))

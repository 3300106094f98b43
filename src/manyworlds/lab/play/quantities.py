"""Quantities to display and plot, with units: joints, sensors, actuators, contacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.viewer.browser.overlays.shapes import hinges_and_slides

_UNITS = {
    "TOUCH": "N",
    "ACCELEROMETER": "m/s²",
    "VELOCIMETER": "m/s",
    "GYRO": "rad/s",
    "FORCE": "N",
    "TORQUE": "N m",
    "MAGNETOMETER": "T",
    "RANGEFINDER": "m",
    "TENDONPOS": "m",
    "TENDONVEL": "m/s",
    "TENDONACTFRC": "N",
    "BALLANGVEL": "rad/s",
    "FRAMEPOS": "m",
    "FRAMELINVEL": "m/s",
    "FRAMEANGVEL": "rad/s",
    "FRAMELINACC": "m/s²",
    "FRAMEANGACC": "rad/s²",
    "SUBTREECOM": "m",
    "SUBTREELINVEL": "m/s",
    "SUBTREEANGMOM": "kg m²/s",
    "GEOMDIST": "m",
    "E_POTENTIAL": "J",
    "E_KINETIC": "J",
    "CLOCK": "s",
}
"""Units of sensor types that have the same on every element; others have none or a joint's."""
_AXIS_UNITS = {"JOINTPOS": "", "JOINTVEL": "/s", "JOINTLIMITPOS": "", "JOINTLIMITVEL": "/s"}


Source = Snapshot | mujoco.MjData


@dataclass(frozen=True)
class Quantity:
    """Quantity that can be read from a snapshot, or from the data itself."""

    name: str
    unit: str
    read: Callable[[Source], np.ndarray]
    """Returns its values, shape [n]; those of contacts need the data."""
    group: str = ""
    """Type of a sensor, as MJCF names it; empty for other quantities."""
    id: int = -1
    """Id of a sensor; -1 for other quantities."""


def joint_axis_unit(model: mujoco.MjModel, joint: int) -> str:
    """Return the unit of a hinge or slide joint's position."""
    return "m" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"


def quantities(model: mujoco.MjModel) -> list[Quantity]:
    """Return all quantities of a model, joints first."""
    found = []
    for joint in hinges_and_slides(model).tolist():
        name = model.joint(joint).name or f"joint {joint}"
        unit = joint_axis_unit(model, joint)
        q = int(model.jnt_qposadr[joint])
        v = int(model.jnt_dofadr[joint])
        found.append(Quantity(f"{name} position", unit, lambda s, q=q: s.qpos[q : q + 1]))
        found.append(Quantity(f"{name} velocity", f"{unit}/s", lambda s, v=v: s.qvel[v : v + 1]))
    found += sensors(model)
    for i in range(model.nactuator):
        name = model.actuator(i).name or f"actuator {i}"
        found.append(Quantity(f"{name} force", "", lambda s, i=i: s.actuator_force[i : i + 1]))
        at = int(model.actuator_ctrladr[i])
        count = int(model.actuator_ctrlnum[i])
        found.append(Quantity(f"{name} control", "", lambda s, a=at, n=count: s.ctrl[a : a + n]))
    return found + _contacts(model)


def sensors(model: mujoco.MjModel) -> list[Quantity]:
    """Return all sensors, with all their values; those of one type are beside each other."""
    found: list[Quantity] = []
    for i in range(model.nsensor):
        place = slice(int(model.sensor_adr[i]), int(model.sensor_adr[i] + model.sensor_dim[i]))
        name = model.sensor(i).name or f"sensor {i}"
        unit = _sensor_unit(model, i)
        group = _sensor_type(model, i).replace("_", "").lower()
        found.append(Quantity(name, unit, lambda s, place=place: s.sensordata[place], group, i))
    groups = list(dict.fromkeys(quantity.group for quantity in found))
    return sorted(found, key=lambda quantity: groups.index(quantity.group))


def _contacts(model: mujoco.MjModel) -> list[Quantity]:
    """Return the number of contacts, and the normal force on each body that can collide."""
    found = [Quantity("number of contacts", "", lambda s: np.array([float(s.ncon)]))]  # type: ignore[union-attr]
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    for body in np.unique(model.geom_bodyid[collides]).tolist():
        name = model.body(body).name or f"body {body}"
        force = lambda s, body=body: np.array([_normal_force(model, s, body)])  # noqa: E731
        found.append(Quantity(f"{name} contact force", "N", force))
    return found


def _normal_force(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float:
    """Return the sum of the normal forces of a body's contacts [N]."""
    if not data.ncon:
        return 0.0
    geoms = data.contact.geom
    own = ((model.geom_bodyid[geoms] == body) & (geoms >= 0)).any(axis=1)
    force = np.zeros(6)
    total = 0.0
    for contact in np.flatnonzero(own).tolist():
        mujoco.mj_contactForce(model, data, contact, force)
        total += float(force[0])
    return total


def _sensor_unit(model: mujoco.MjModel, sensor: int) -> str:
    kind = _sensor_type(model, sensor)
    if kind in _AXIS_UNITS:
        return joint_axis_unit(model, int(model.sensor_objid[sensor])) + _AXIS_UNITS[kind]
    return _UNITS.get(kind, "")


def _sensor_type(model: mujoco.MjModel, sensor: int) -> str:
    return mujoco.mjtSensor(model.sensor_type[sensor]).name.removeprefix("mjSENS_")

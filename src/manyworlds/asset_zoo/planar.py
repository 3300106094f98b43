"""Robots in a vertical plane, such as gymnasium's hopper: what a task needs to know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.asset_zoo.legged import (
    JointDrive,
    controlled_hinges,
    joint_drives,
    name_elements,
    take_default_pose,
)
from manyworlds.asset_zoo.legged_feet import geom_collides, lowest_point
from manyworlds.spec.elements import is_motor_actuator, joint_of

_PARALLEL = 0.99  # least cosine of the angle between two axes


@dataclass(frozen=True, kw_only=True)
class PlanarModel:
    """Facts about a robot whose root moves in a vertical plane; names are those of its model."""

    root: str
    """Body that slides forward and up, and pitches."""
    slide: str
    """Joint that slides forward."""
    lift: str
    """Joint that slides up."""
    pitch: str
    """Hinge of the root."""
    forward: tuple[float, float, float]
    """Direction of `slide` in the world."""
    height: float
    """Height of the root at which the robot touches the ground in its default pose [m]."""
    pose: dict[str, float]
    """Positions of joints in the default pose that are not zero [rad or m]."""
    motors: dict[str, float]
    """Largest control of each motor, by joint; empty if the model has other actuators or none."""
    drives: dict[str, JointDrive]
    """Position control of each joint, for a model without `motors`."""
    timestep: float
    """Timestep of the model [s]."""


def planar_root(model: mujoco.MjModel) -> tuple[int, int, int] | None:
    """Return the joints of a root in a vertical plane: those that slide forward and up, the hinge.

    None if the first body of the world has other joints.
    """
    if model.nbody < 2:
        return None
    first = int(model.body_jntadr[1])
    joints = range(first, first + int(model.body_jntnum[1]))
    axes = {j: _axis(model, j) for j in joints}
    slides = [j for j in joints if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE]
    hinges = [j for j in joints if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE]
    lifts = [j for j in slides if abs(axes[j][2]) > _PARALLEL]
    level = [j for j in slides if abs(axes[j][2]) < 1.0 - _PARALLEL]
    if not (len(joints) == 3 and len(lifts) == len(level) == len(hinges) == 1):
        return None
    (slide,) = level
    (lift,) = lifts
    (hinge,) = hinges
    if abs(axes[hinge] @ np.cross(axes[slide], axes[lift])) < _PARALLEL:
        return None
    return slide, lift, hinge


def derive_planar_model(
    spec: mujoco.MjSpec, effort_limit: float | Mapping[str, float] | None = None
) -> PlanarModel:
    """Derive what a task needs to know about a robot in a vertical plane.

    Args:
        spec: the model; unchanged.
        effort_limit: see `derive_legged_model`; for a model without motors.

    Raises:
        ValueError: the model has no such root, or not the largest torques of its joints.
    """
    named = name_elements(spec.copy())
    model = named.compile()
    root = planar_root(model)
    if root is None:
        raise ValueError(
            "A planar robot has a root with two slides, forward and up, and a hinge across them."
        )
    slide, lift, pitch = root
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    lows = [lowest_point(model, data, int(g)) for g in moving if geom_collides(model, int(g))]
    sign = np.sign(_axis(model, lift)[2])
    data.qpos[model.jnt_qposadr[lift]] -= sign * min(lows, default=0.0)
    mujoco.mj_kinematics(model, data)
    motors = _motors(named, model)
    drives: dict[str, JointDrive] = {}
    if not motors:
        hinges = [j for j in controlled_hinges(model) if j != pitch]
        found = joint_drives(model, data, effort_limit, hinges, {})
        drives = {model.joint(j).name: drive for j, drive in found}
    positions = {
        model.joint(j).name: round(float(data.qpos[model.jnt_qposadr[j]]), 4)
        for j in range(model.njnt)
    }
    forward = _axis(model, slide)
    return PlanarModel(
        root=model.body(1).name,
        slide=model.joint(slide).name,
        lift=model.joint(lift).name,
        pitch=model.joint(pitch).name,
        forward=(round(float(forward[0]), 6), round(float(forward[1]), 6), 0.0),
        height=round(float(data.xpos[1, 2]), 4),
        pose={name: value for name, value in positions.items() if value},
        motors=motors,
        drives=drives,
        timestep=float(model.opt.timestep),
    )


def _axis(model: mujoco.MjModel, joint: int) -> np.ndarray:
    """Return the axis of a joint of the first body in the world, shape [3]."""
    axis = np.zeros(3)
    mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], model.body_quat[1])
    return axis


def _motors(spec: mujoco.MjSpec, model: mujoco.MjModel) -> dict[str, float]:
    """Return the largest control of the motors of joints; empty if there are other actuators."""
    if not all(map(is_motor_actuator, spec.actuators)):
        return {}
    found = {}
    for actuator in range(model.nu):
        joint = joint_of(model, actuator)
        if joint >= 0:
            limit = 1.0
            if model.actuator_ctrllimited[actuator]:
                limit = float(np.abs(model.actuator_ctrlrange[actuator]).max())
            found[model.joint(joint).name] = limit
    return found

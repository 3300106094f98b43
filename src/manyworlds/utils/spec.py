"""Editing `mujoco.MjSpec`s."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.actuator import TransmissionType

_TRANSMISSION = {
    TransmissionType.JOINT: mujoco.mjtTrn.mjTRN_JOINT,
    TransmissionType.TENDON: mujoco.mjtTrn.mjTRN_TENDON,
    TransmissionType.SITE: mujoco.mjtTrn.mjTRN_SITE,
}


def get_free_joint(spec: mujoco.MjSpec) -> mujoco.MjsJoint | None:
    """Return the free joint of a spec, or None for a fixed base.

    Raises:
        ValueError: there is more than one free joint.
    """
    free = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    if len(free) > 1:
        raise ValueError(
            f"An entity has one root, but this spec has {len(free)} freejoints: "
            "describe each free body as an entity of its own."
        )
    return free[0] if free else None


def get_non_free_joints(spec: mujoco.MjSpec) -> tuple[mujoco.MjsJoint, ...]:
    """Return all joints but free ones, in spec order."""
    return tuple(joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE)


def non_default_option_fields(spec: mujoco.MjSpec) -> list[str]:
    """Names of the `<option>` fields in which a spec differs from MuJoCo's defaults."""
    default = mujoco.MjSpec().option
    return [
        name
        for name in dir(default)
        if not name.startswith("_")
        and not np.array_equal(getattr(default, name), getattr(spec.option, name))
    ]


def create_motor_actuator(
    spec: mujoco.MjSpec,
    target_name: str,
    *,
    effort_limit: float,
    gear: float = 1.0,
    transmission_type: TransmissionType = TransmissionType.JOINT,
) -> mujoco.MjsActuator:
    """Add a `<motor>` that applies its control as effort, within `effort_limit` [N or N m]."""
    actuator = spec.add_actuator(
        name=target_name, target=target_name, trntype=_TRANSMISSION[transmission_type]
    )
    actuator.set_to_motor()
    actuator.gear[0] = gear
    actuator.ctrllimited = True
    actuator.ctrlrange[:] = (-effort_limit / gear, effort_limit / gear)
    actuator.forcelimited = True
    actuator.forcerange[:] = (-effort_limit / gear, effort_limit / gear)
    return actuator

"""MuJoCo's own messages, and what its elements are.

Importing this module switches off MuJoCo's log file: see `switch_off_log_file`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import mujoco

from manyworlds.spec.transmissions import TransmissionType

TRANSMISSIONS = {
    TransmissionType.JOINT: (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT),
    TransmissionType.TENDON: (mujoco.mjtTrn.mjTRN_TENDON,),
    TransmissionType.SITE: (mujoco.mjtTrn.mjTRN_SITE,),
}
"""What MuJoCo calls the ways to act on each kind of target, the usual one first."""

_LOG_FILE = "MUJOCO_LOG.TXT"
_ZNEAR = 0.01  # MuJoCo's default, in extents of the model
_NEAREST = 0.05
"""Cameras see what is farther away than this, however large the model is [m]."""
# Positions and velocities by joint type, (qpos, qvel).
_WIDTHS = {
    mujoco.mjtJoint.mjJNT_FREE: (7, 6),
    mujoco.mjtJoint.mjJNT_BALL: (4, 3),
    mujoco.mjtJoint.mjJNT_SLIDE: (1, 1),
    mujoco.mjtJoint.mjJNT_HINGE: (1, 1),
}
# What says who an element of a spec is or where it belongs, as opposed to what it is.
_IDENTITY = {
    *("alt", "classname", "compiler", "frame", "id"),
    *("info", "name", "parent", "plugin", "signature"),
}


def switch_off_log_file() -> None:
    """Keep MuJoCo from writing `MUJOCO_LOG.TXT` into whatever folder the process runs in.

    What it would write there goes to the terminal or to a handler in any case. A file that was
    named by `mujoco.MjLogConfig` beforehand is kept.
    """
    config = mujoco.MjLogConfig.get()
    if config.logfile == _LOG_FILE:
        config.logto_file = False
        config.set()


@contextlib.contextmanager
def mujoco_warnings(handler: Callable[[str], None]) -> Iterator[None]:
    """Give MuJoCo's warnings to `handler`; else they go to the terminal."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(handler)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def qpos_width(joint_type: int | mujoco.mjtJoint) -> int:
    """Return how many numbers of `qpos` a joint of this type has."""
    return _WIDTHS[mujoco.mjtJoint(joint_type)][0]


def dof_width(joint_type: int | mujoco.mjtJoint) -> int:
    """Return how many numbers of `qvel` a joint of this type has."""
    return _WIDTHS[mujoco.mjtJoint(joint_type)][1]


def joint_of(model: mujoco.MjModel, actuator: int) -> int:
    """Return the joint that an actuator acts on, or -1."""
    kind = mujoco.mjtTrn(model.actuator_trntype[actuator])
    on_joint = kind in TRANSMISSIONS[TransmissionType.JOINT]
    return int(model.actuator_trnid[actuator, 0]) if on_joint else -1


def copy_spec_data(source: Any, target: Any, *but: str) -> None:
    """Make an element of a spec what another is, except for who and where it is, and for `but`."""
    for name in dir(source):
        value = getattr(source, name)
        if not (name.startswith("_") or name in _IDENTITY or name in but or callable(value)):
            setattr(target, name, value)


def is_position_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Whether the control is a position that the force `kp * (ctrl - q) - ...` pulls to."""
    return _is_input(actuator, mujoco.mjtCtrlInput.mjINPUT_POS) or (
        _pulls_to_position(actuator) and actuator.dyntype != mujoco.mjtDyn.mjDYN_INTEGRATOR
    )


def is_velocity_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Whether the control is a velocity, held directly or by moving a position target."""
    if _is_input(actuator, mujoco.mjtCtrlInput.mjINPUT_VEL):
        return True
    if actuator.dyntype == mujoco.mjtDyn.mjDYN_INTEGRATOR:
        return _pulls_to_position(actuator)
    gain, bias = actuator.gainprm[0], actuator.biasprm
    return _is_affine(actuator) and gain == -bias[2] != 0 and bias[1] == 0


def is_motor_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Whether the control is a force, up to a factor, that acts at once."""
    return (
        actuator.gaintype == mujoco.mjtGain.mjGAIN_FIXED
        and actuator.biastype == mujoco.mjtBias.mjBIAS_NONE
        and actuator.dyntype == mujoco.mjtDyn.mjDYN_NONE
    )


def is_muscle_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Whether the control excites a muscle."""
    return actuator.gaintype == mujoco.mjtGain.mjGAIN_MUSCLE


def detect_command_field(
    actuator: mujoco.MjsActuator,
) -> Literal["position", "velocity", "effort"]:
    """Return which target of a joint an actuator's control is.

    Raises:
        ValueError: its gains fit none of the kinds.
    """
    if is_position_actuator(actuator):
        return "position"
    if is_velocity_actuator(actuator):
        return "velocity"
    if is_motor_actuator(actuator) or is_muscle_actuator(actuator):
        return "effort"
    raise ValueError(
        f"Cannot determine command field of actuator '{actuator.name}' (gaintype "
        f"{actuator.gaintype.name}, biastype {actuator.biastype.name}, dyntype "
        f"{actuator.dyntype.name}): give command_field='position', 'velocity' or 'effort'."
    )


def pose_for_drawing(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute what drawing needs from the state: no collisions, no dynamics."""
    for stage in ("kinematics", "comPos", "camlight", "flex", "tendon"):
        getattr(mujoco, f"mj_{stage}")(model, data)


def draw_near_things(model: mujoco.MjModel) -> None:
    """Let cameras of a large model see what is close to them.

    By default MuJoCo cuts off what is nearer than a hundredth of the model's extent: on a terrain
    of 200 m all within 2 m, such as the robot that a camera follows. A model that sets another
    `znear` keeps it.

    Args:
        model: what is drawn, whose `vis.map.znear` is written.
    """
    near = model.vis.map
    if math.isclose(near.znear, _ZNEAR, rel_tol=1e-6):
        near.znear = min(near.znear, _NEAREST / model.stat.extent)


def _is_input(actuator: mujoco.MjsActuator, kind: mujoco.mjtCtrlInput) -> bool:
    # The elements <position>, <velocity> and so on note what their input is; <general> may.
    return actuator.ctrlspec == kind.value


def _is_affine(actuator: mujoco.MjsActuator) -> bool:
    return (
        actuator.ctrlspec == 0
        and actuator.gaintype == mujoco.mjtGain.mjGAIN_FIXED
        and actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE
        and actuator.biasprm[0] == 0
    )


def _pulls_to_position(actuator: mujoco.MjsActuator) -> bool:
    return _is_affine(actuator) and bool(actuator.gainprm[0] == -actuator.biasprm[1] != 0)


# Here, since every module that compiles or steps a model imports this one.
switch_off_log_file()

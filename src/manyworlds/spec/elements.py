"""Properties of MuJoCo elements: sizes of joints, and inputs of actuators."""

from __future__ import annotations

from typing import Literal

import mujoco

from manyworlds.spec.transmissions import TransmissionType

SpecElement = (
    mujoco.MjsBody
    | mujoco.MjsJoint
    | mujoco.MjsGeom
    | mujoco.MjsSite
    | mujoco.MjsCamera
    | mujoco.MjsLight
    | mujoco.MjsTendon
    | mujoco.MjsActuator
    | mujoco.MjsSensor
    | mujoco.MjsEquality
    | mujoco.MjsPair
    | mujoco.MjsMesh
    | mujoco.MjsMaterial
    | mujoco.MjsTexture
)
"""Element of a spec, such as a body."""
TRANSMISSIONS = {
    TransmissionType.JOINT: (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT),
    TransmissionType.TENDON: (mujoco.mjtTrn.mjTRN_TENDON,),
    TransmissionType.SITE: (mujoco.mjtTrn.mjTRN_SITE,),
}
"""MuJoCo's transmission types for each kind of target, the most common one first."""

# Number of positions and velocities by joint type, (qpos, qvel).
_WIDTHS = {
    mujoco.mjtJoint.mjJNT_FREE: (7, 6),
    mujoco.mjtJoint.mjJNT_BALL: (4, 3),
    mujoco.mjtJoint.mjJNT_SLIDE: (1, 1),
    mujoco.mjtJoint.mjJNT_HINGE: (1, 1),
}
# Attributes that define the identity or location of a spec element, not its properties.
_IDENTITY = {
    "alt",
    "classname",
    "compiler",
    "frame",
    "id",
    "info",
    "name",
    "parent",
    "plugin",
    "signature",
}


def qpos_width(joint_type: int | mujoco.mjtJoint) -> int:
    """Return the number of elements of `qpos` for a joint of this type."""
    return _WIDTHS[mujoco.mjtJoint(joint_type)][0]


def dof_width(joint_type: int | mujoco.mjtJoint) -> int:
    """Return the number of elements of `qvel` for a joint of this type."""
    return _WIDTHS[mujoco.mjtJoint(joint_type)][1]


def joint_of(model: mujoco.MjModel, actuator: int) -> int:
    """Return the id of the joint that an actuator acts on, or -1."""
    kind = mujoco.mjtTrn(model.actuator_trntype[actuator])
    if kind not in TRANSMISSIONS[TransmissionType.JOINT]:
        return -1
    return int(model.actuator_trnid[actuator, 0])


def id_of_element(model: mujoco.MjModel, kind: str, name: str) -> int:
    """Return the id of an element of a kind, such as "body".

    Raises:
        KeyError: there is no such element.
    """
    return int(getattr(model, kind)(name).id)


def name_of_element(model: mujoco.MjModel, kind: str, element: int) -> str:
    """Return the name of an element of a kind, such as "body"; empty if it has none."""
    return getattr(model, kind)(int(element)).name


def copy_spec_data(source: SpecElement, target: SpecElement, *but: str) -> None:
    """Copy the properties of a spec element, except identity, location, and those in `but`."""
    for name in dir(source):
        value = getattr(source, name)
        if not (name.startswith("_") or name in _IDENTITY or name in but or callable(value)):
            setattr(target, name, value)


def is_position_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Return whether the control is a target position, with the force `kp * (ctrl - q) - ...`."""
    return _is_input(actuator, mujoco.mjtCtrlInput.mjINPUT_POS) or (
        _pulls_to_position(actuator) and actuator.dyntype != mujoco.mjtDyn.mjDYN_INTEGRATOR
    )


def is_velocity_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Return whether the control is a velocity, held directly or through a position target."""
    if _is_input(actuator, mujoco.mjtCtrlInput.mjINPUT_VEL):
        return True
    if actuator.dyntype == mujoco.mjtDyn.mjDYN_INTEGRATOR:
        return _pulls_to_position(actuator)
    gain = actuator.gainprm[0]
    bias = actuator.biasprm
    return _is_affine(actuator) and gain == -bias[2] != 0 and bias[1] == 0


def is_motor_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Return whether the control is a force, up to a factor, without delay."""
    return (
        actuator.gaintype == mujoco.mjtGain.mjGAIN_FIXED
        and actuator.biastype == mujoco.mjtBias.mjBIAS_NONE
        and actuator.dyntype == mujoco.mjtDyn.mjDYN_NONE
    )


def is_muscle_actuator(actuator: mujoco.MjsActuator) -> bool:
    """Return whether the control is the excitation of a muscle."""
    return actuator.gaintype == mujoco.mjtGain.mjGAIN_MUSCLE


def detect_command_field(
    actuator: mujoco.MjsActuator,
) -> Literal["position", "velocity", "effort"]:
    """Return the kind of joint target that an actuator's control is.

    Raises:
        ValueError: the actuator's gains do not match any of the kinds.
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


def _is_input(actuator: mujoco.MjsActuator, kind: mujoco.mjtCtrlInput) -> bool:
    # The elements <position>, <velocity> and so on record their input type; <general> may.
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

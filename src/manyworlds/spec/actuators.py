"""Functions that add MuJoCo actuators to a spec, with passive properties of their targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from manyworlds.spec.elements import TRANSMISSIONS, copy_spec_data
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.validation.names import free_name, near_matches

_DRIVABLE = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def is_joint_limited(jnt: mujoco.MjsJoint) -> bool:
    """Return whether a joint is limited; as in MuJoCo, `auto` is limited if it has a range."""
    if jnt.limited == mujoco.mjtLimited.mjLIMITED_AUTO:
        return bool(jnt.range[0] < jnt.range[1])
    return jnt.limited == mujoco.mjtLimited.mjLIMITED_TRUE


def remove_actuators(spec: mujoco.MjSpec, actuators: Sequence[mujoco.MjsActuator]) -> None:
    """Remove actuators of a spec, with their sensors and their values in keyframes."""
    if not actuators:
        return
    if list(spec.keys):
        _drop_key_values(spec, {actuator.id for actuator in actuators})
    names = {actuator.name for actuator in actuators}
    for sensor in list(spec.sensors):
        if sensor.objtype == mujoco.mjtObj.mjOBJ_ACTUATOR and sensor.objname in names:
            spec.delete(sensor)
    for actuator in actuators:
        spec.delete(actuator)


def _drop_key_values(spec: mujoco.MjSpec, removed: set[int]) -> None:
    """Remove controls and activations of actuators from the keyframes."""
    model = spec.copy().compile()
    kept = [i for i in range(model.nu) if i not in removed]
    controls = _cells(model.actuator_ctrladr, model.actuator_ctrlnum, kept)
    activations = _cells(model.actuator_actadr, model.actuator_actnum, kept)
    for key in spec.keys:
        if len(key.ctrl):
            key.ctrl = [key.ctrl[i] for i in controls]
        if len(key.act):
            key.act = [key.act[i] for i in activations]


def _cells(starts: np.ndarray, counts: np.ndarray, ids: Sequence[int]) -> list[int]:
    """Return the addresses of the values of actuators."""
    return [address for i in ids for address in range(starts[i], starts[i] + counts[i])]


def apply_target_overrides(
    spec: mujoco.MjSpec,
    target_name: str,
    transmission_type: TransmissionType,
    *,
    armature: float | None,
    frictionloss: float | None,
    viscous_damping: float | None,
) -> None:
    """Set passive properties of a joint or a tendon; None keeps the present value.

    Args:
        spec: the spec to edit.
        target_name: name of the joint or tendon.
        transmission_type: kind of the target: JOINT or TENDON.
        armature: armature inertia [kg m^2 or kg].
        frictionloss: dry friction [N m or N].
        viscous_damping: passive damping [N m s/rad or N s/m]. MuJoCo's Euler integrator treats it
            implicitly, unlike the damping of an actuator.

    Raises:
        ValueError: the target does not exist, a value is negative, or a value is given for a site,
            which has none of these properties.
    """
    given = {
        "armature": armature,
        "frictionloss": frictionloss,
        "viscous_damping": viscous_damping,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if given and transmission_type == TransmissionType.SITE:
        raise ValueError(
            f"Site '{target_name}' cannot have {', '.join(given)}: only joints and tendons do, "
            "so omit them."
        )
    target = _find_target(spec, target_name, transmission_type)
    for name, value in given.items():
        if not value >= 0:
            raise ValueError(
                f"The {name} of {transmission_type} '{target_name}' must not be negative, "
                f"got {value}."
            )
        if name == "viscous_damping":
            target.damping[:] = [value, 0.0, 0.0]
        else:
            setattr(target, name, value)


def create_motor_actuator(
    spec: mujoco.MjSpec,
    joint_name: str,
    *,
    effort_limit: float,
    gear: float = 1.0,
    armature: float | None = None,
    frictionloss: float | None = None,
    viscous_damping: float | None = None,
    transmission_type: TransmissionType = TransmissionType.JOINT,
) -> mujoco.MjsActuator:
    """Add an actuator whose effort is its control, and `gear` times that at the target.

    Args:
        spec: the spec to edit.
        joint_name: name of the joint, tendon or site to drive.
        effort_limit: bound of the effort's magnitude before the gear [N or N m]; infinite for no
            bound.
        gear: effort at the target per effort of the actuator; negative to reverse the direction.
        armature: see `apply_target_overrides`.
        frictionloss: see `apply_target_overrides`.
        viscous_damping: see `apply_target_overrides`.
        transmission_type: kind of the target.

    Raises:
        ValueError: the target does not exist, the limit is not positive, or the gear is zero.
    """
    apply_target_overrides(
        spec,
        joint_name,
        transmission_type,
        armature=armature,
        frictionloss=frictionloss,
        viscous_damping=viscous_damping,
    )
    _check_numbers(joint_name, effort_limit=effort_limit)
    actuator = _add_actuator(spec, joint_name, joint_name, transmission_type, gear, effort_limit)
    actuator.set_to_motor()
    if math.isfinite(effort_limit):
        actuator.ctrllimited = True
        actuator.ctrlrange[:] = (-effort_limit, effort_limit)
    return actuator


def create_position_actuator(
    spec: mujoco.MjSpec,
    joint_name: str,
    *,
    stiffness: float,
    damping: float,
    effort_limit: float | None = None,
    armature: float | None = None,
    frictionloss: float | None = None,
    viscous_damping: float | None = None,
    transmission_type: TransmissionType = TransmissionType.JOINT,
    actuator_name: str | None = None,
) -> mujoco.MjsActuator:
    """Add an actuator that drives a joint or a tendon to the position in `ctrl`.

    Its control is never limited: a position target beyond the range of a joint makes it push
    against the stop. The `ctrlrange` is only informative: the target's range, extended by
    `effort_limit / stiffness`, beyond which the effort is saturated.

    Args:
        spec: the spec to edit.
        joint_name: name of a hinge or slide joint, or of a tendon.
        stiffness: force per position error [N m/rad or N/m].
        damping: force per velocity [N m s/rad or N s/m].
        effort_limit: bound of the force's magnitude [N m or N]; None for no bound.
        armature: see `apply_target_overrides`.
        frictionloss: see `apply_target_overrides`.
        viscous_damping: see `apply_target_overrides`.
        transmission_type: JOINT or TENDON; a site has no position.
        actuator_name: name of the actuator; None uses the target's.

    Raises:
        ValueError: the target does not exist or is a site, or a gain or limit is negative.
    """
    if transmission_type == TransmissionType.SITE:
        raise ValueError(
            f"A position actuator cannot drive site '{joint_name}', which has no position of its "
            "own: drive a joint or a tendon, or put a motor on the site."
        )
    apply_target_overrides(
        spec,
        joint_name,
        transmission_type,
        armature=armature,
        frictionloss=frictionloss,
        viscous_damping=viscous_damping,
    )
    _check_numbers(joint_name, stiffness, damping, effort_limit)
    name = joint_name if actuator_name is None else actuator_name
    actuator = _add_actuator(spec, name, joint_name, transmission_type, 1.0, effort_limit)
    actuator.set_to_position(kp=stiffness, kv=damping)
    actuator.ctrllimited = False
    actuator.ctrlrange[:] = _informational_range(
        _find_target(spec, joint_name, transmission_type), stiffness, effort_limit
    )
    return actuator


def create_velocity_actuator(
    spec: mujoco.MjSpec,
    joint_name: str,
    *,
    damping: float,
    effort_limit: float | None = None,
    armature: float | None = None,
    frictionloss: float | None = None,
    viscous_damping: float | None = None,
    transmission_type: TransmissionType = TransmissionType.JOINT,
    actuator_name: str | None = None,
) -> mujoco.MjsActuator:
    """Add an actuator that drives its target to the velocity in `ctrl` [rad/s or m/s].

    Args:
        spec: the spec to edit.
        joint_name: name of the joint, tendon or site to drive.
        damping: force per velocity error [N m s/rad or N s/m].
        effort_limit: bound of the force's magnitude [N m or N]; None for no bound.
        armature: see `apply_target_overrides`.
        frictionloss: see `apply_target_overrides`.
        viscous_damping: see `apply_target_overrides`.
        transmission_type: kind of the target.
        actuator_name: name of the actuator; None uses the target's.

    Raises:
        ValueError: the target does not exist, or a gain or limit is negative.
    """
    apply_target_overrides(
        spec,
        joint_name,
        transmission_type,
        armature=armature,
        frictionloss=frictionloss,
        viscous_damping=viscous_damping,
    )
    _check_numbers(joint_name, damping=damping, effort_limit=effort_limit)
    name = joint_name if actuator_name is None else actuator_name
    actuator = _add_actuator(spec, name, joint_name, transmission_type, 1.0, effort_limit)
    actuator.set_to_velocity(kv=damping)
    actuator.ctrllimited = False
    return actuator


def create_muscle_actuator(
    spec: mujoco.MjSpec,
    target_name: str,
    *,
    length_range: tuple[float, float] = (0.0, 0.0),
    gear: float = 1.0,
    timeconst: tuple[float, float] = (0.01, 0.04),
    tausmooth: float = 0.0,
    range: tuple[float, float] = (0.75, 1.05),
    force: float = -1.0,
    scale: float = 200.0,
    lmin: float = 0.5,
    lmax: float = 1.6,
    vmax: float = 1.5,
    fpmax: float = 1.3,
    fvmax: float = 1.2,
    transmission_type: TransmissionType = TransmissionType.TENDON,
) -> mujoco.MjsActuator:
    """Add a muscle, whose control is an excitation in [0, 1].

    The names are those of MuJoCo's `<muscle>`.

    Args:
        spec: the spec to edit.
        target_name: name of the tendon or joint to drive.
        length_range: feasible lengths of the actuator [m or rad]; (0, 0) lets MuJoCo find them.
        gear: scale of length and force; negative to reverse both.
        timeconst: time constants of activation and deactivation [s].
        tausmooth: width of the smooth transition between the two.
        range: operating lengths, in units of the optimal length.
        force: peak active force at rest [N]; negative for `scale / actuator_acc0`.
        scale: see `force`.
        lmin: shortest length with active force, in units of the optimal length.
        lmax: longest length with active force, in units of the optimal length.
        vmax: shortening velocity without force, in optimal lengths per second.
        fpmax: passive force at `lmax`, in units of the peak force.
        fvmax: active force at the fastest lengthening, in units of the peak force.
        transmission_type: TENDON or JOINT; a muscle on a site has no length.

    Raises:
        ValueError: the target does not exist or is a site, or MuJoCo rejects a parameter.
    """
    _check_muscle(spec, target_name, transmission_type, length_range)
    actuator = _add_actuator(spec, target_name, target_name, transmission_type, gear, None)
    actuator.set_to_muscle(
        timeconst=timeconst,
        tausmooth=tausmooth,
        range=range,
        force=force,
        scale=scale,
        lmin=lmin,
        lmax=lmax,
        vmax=vmax,
        fpmax=fpmax,
        fvmax=fvmax,
    )
    actuator.lengthrange[:] = length_range
    actuator.ctrllimited = True
    actuator.ctrlrange[:] = (0.0, 1.0)
    return actuator


def create_dcmotor_actuator(
    spec: mujoco.MjSpec,
    joint_name: str,
    *,
    effort_limit: float | None = None,
    gear: float = 1.0,
    armature: float | None = None,
    frictionloss: float | None = None,
    viscous_damping: float | None = None,
    transmission_type: TransmissionType = TransmissionType.JOINT,
    **motor: Any,
) -> mujoco.MjsActuator:
    """Add MuJoCo's model of a DC motor.

    Args:
        spec: the spec to edit.
        joint_name: name of the joint or tendon to drive.
        effort_limit: bound of the effort's magnitude before the gear [N m or N]; None for no bound.
        gear: ratio from motor to target; negative to reverse the direction.
        armature: see `apply_target_overrides`.
        frictionloss: see `apply_target_overrides`.
        viscous_damping: see `apply_target_overrides`.
        transmission_type: JOINT or TENDON.
        motor: arguments of `mujoco.MjsActuator.set_to_dcmotor`: `motorconst` (K_t, K_e) and
            `resistance`, or `nominal` (voltage, stall torque, no-load speed); `inductance`,
            `cogging`, `thermal`, `lugre`, `controller` (kp, ki, kd, slew rate, integral limit,
            voltage limit) and `ctrlspec` (a `mujoco.mjtCtrlInput`).

    Raises:
        ValueError: the target does not exist or is a site, or MuJoCo rejects a parameter.
    """
    if transmission_type == TransmissionType.SITE:
        raise ValueError(
            f"A DC motor cannot drive site '{joint_name}': use TransmissionType.JOINT or TENDON."
        )
    apply_target_overrides(
        spec,
        joint_name,
        transmission_type,
        armature=armature,
        frictionloss=frictionloss,
        viscous_damping=viscous_damping,
    )
    _check_numbers(joint_name, effort_limit=effort_limit)
    actuator = _add_actuator(spec, joint_name, joint_name, transmission_type, gear, effort_limit)
    actuator.set_to_dcmotor(**({"motorconst": (0.0, 0.0), "resistance": 0.0} | motor))
    return actuator


def add_position_actuators(spec: mujoco.MjSpec, kp: float) -> list[str]:
    """Add a position actuator to every hinge and slide joint without an actuator.

    The damping is `kp / 20` (a time constant of 50 ms), as passive damping of the joint, so that
    every integrator treats it implicitly and joints with low inertia are stable. Unnamed joints
    are given a name.

    Args:
        spec: the spec to edit.
        kp: stiffness [N m/rad or N/m].

    Returns:
        The names of the joints with a new actuator.

    Raises:
        ValueError: `kp` is not positive.
    """
    if not kp > 0:
        raise ValueError(f"The stiffness kp of position actuators must be positive, got {kp}.")
    driven = {actuator.target for actuator in spec.actuators}
    taken = {actuator.name for actuator in spec.actuators}
    added = []
    for i, joint in enumerate(spec.joints):
        if joint.type not in _DRIVABLE or (joint.name and joint.name in driven):
            continue
        if not joint.name:
            joint.name = free_name(f"joint_{i}", {other.name for other in spec.joints})
        actuator_name = free_name(joint.name, taken)
        taken.add(actuator_name)
        create_position_actuator(
            spec,
            joint.name,
            stiffness=kp,
            damping=0.0,
            viscous_damping=kp / 20.0,
            actuator_name=actuator_name,
        )
        added.append(joint.name)
    return added


def _add_actuator(
    spec: mujoco.MjSpec,
    name: str,
    target: str,
    transmission_type: TransmissionType,
    gear: float,
    force_limit: float | None,
) -> mujoco.MjsActuator:
    """Add an actuator that does not inherit settings from the spec's default class.

    Raises:
        ValueError: the gear is zero, with which the actuator has no effect.
    """
    if not (math.isfinite(gear) and gear):
        raise ValueError(f"The gear of the actuator on '{target}' must not be 0, got {gear}.")
    actuator = spec.add_actuator(name=name)
    copy_spec_data(mujoco.MjSpec().add_actuator(), actuator, "userdata")
    actuator.target = target
    actuator.trntype = TRANSMISSIONS[transmission_type][0]
    actuator.gear[0] = gear
    actuator.forcelimited = False
    if force_limit is not None and math.isfinite(force_limit):
        actuator.forcelimited = True
        actuator.forcerange[:] = (-force_limit, force_limit)
    return actuator


def _informational_range(
    target: Any, stiffness: float, effort_limit: float | None
) -> tuple[float, float]:
    """Return the range of useful targets [rad or m], or (0, 0) if it is unbounded."""
    if not is_joint_limited(target):
        return (0.0, 0.0)
    # A spec's ranges are in degrees if its compiler is set so; an actuator's never are.
    hinge = getattr(target, "type", None) == mujoco.mjtJoint.mjJNT_HINGE
    unit = 1.0
    if hinge and target.compiler.degree:
        unit = math.pi / 180.0
    reach = 0.0
    if effort_limit is not None and stiffness > 0:
        reach = effort_limit / stiffness
    if not math.isfinite(reach):
        reach = 0.0
    return (target.range[0] * unit - reach, target.range[1] * unit + reach)


def _find_target(spec: mujoco.MjSpec, name: str, transmission_type: TransmissionType) -> Any:
    elements = {
        TransmissionType.JOINT: spec.joints,
        TransmissionType.TENDON: spec.tendons,
        TransmissionType.SITE: spec.sites,
    }[transmission_type]
    for element in elements:
        if element.name == name:
            return element
    names = [element.name for element in elements]
    raise ValueError(
        f"There is no {transmission_type} '{name}' to put an actuator on: the spec has "
        f"{', '.join(map(repr, names)) or f'no {transmission_type}s'}.{near_matches(name, names)}"
    )


def _check_numbers(
    target: str,
    stiffness: float = 0.0,
    damping: float = 0.0,
    effort_limit: float | None = None,
) -> None:
    for name, value in (("stiffness", stiffness), ("damping", damping)):
        if not value >= 0:
            raise ValueError(f"The {name} of '{target}' must not be negative, got {value}.")
    if effort_limit is not None and not effort_limit > 0:
        raise ValueError(
            f"The effort_limit of '{target}' must be positive, got {effort_limit}: "
            "omit it for no limit."
        )


def _check_muscle(
    spec: mujoco.MjSpec,
    target_name: str,
    transmission_type: TransmissionType,
    length_range: tuple[float, float],
) -> None:
    if transmission_type == TransmissionType.SITE:
        raise ValueError(
            f"A muscle cannot pull site '{target_name}', which has no length: "
            "use TransmissionType.TENDON or JOINT."
        )
    if length_range != (0.0, 0.0) and length_range[0] >= length_range[1]:
        raise ValueError(
            f"The length_range of muscle '{target_name}' must increase, got {length_range}."
        )
    _find_target(spec, target_name, transmission_type)

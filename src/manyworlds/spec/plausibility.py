"""What is probably wrong with models that compile: sizes, masses and second actuators."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.spec.elements import joint_of

LARGE = 20.0
"""Size from which on a shape is probably in millimeters [m]."""
_SMALL = 1e-3
_HEAVY = 1e5
_SCALAR = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def doubtful_sizes(model: mujoco.MjModel) -> list[str]:
    """Return sentences about moving bodies whose size or mass no robot or object has."""
    found = []
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    sizes = 2.0 * model.geom_rbound[moving]
    if sizes.size and sizes.max() >= LARGE:
        geom = moving[sizes.argmax()]
        found.append(
            f"{_geom(model, geom)} is {sizes.max():.4g} m large: lengths are meters, so if the "
            "model or its meshes are in millimeters, scale them by 0.001."
        )
    if sizes.size and 0.0 < sizes.max() <= _SMALL:
        found.append(
            f"nothing that moves is larger than {sizes.max():.2g} m: lengths are meters, check "
            "the scale of the model and its meshes."
        )
    heaviest = int(model.body_mass.argmax())
    if model.body_weldid[heaviest] != 0 and model.body_mass[heaviest] >= _HEAVY:
        found.append(
            f"the body '{model.body(heaviest).name}' weighs {model.body_mass[heaviest]:.2g} kg: "
            "check its mass, or the unit of lengths and the densities from which it follows."
        )
    return found


def second_actuators(model: mujoco.MjModel) -> list[str]:
    """Return a sentence for each joint or tendon with two actuators that take the same command.

    A servo of positions beside one of velocities, or beside a motor, is usual; so are several
    motors on a ball joint, a free joint or a site, each of which has an axis of its own.
    """
    by_target: dict[tuple[str, str], list[str]] = {}
    for actuator in range(model.nu):
        target = int(model.actuator_trnid[actuator, 0])
        what = ""
        if mujoco.mjtTrn(model.actuator_trntype[actuator]) == mujoco.mjtTrn.mjTRN_TENDON:
            what = f"tendon '{model.tendon(target).name}'"
        elif joint_of(model, actuator) >= 0 and mujoco.mjtJoint(model.jnt_type[target]) in _SCALAR:
            what = f"joint '{model.joint(target).name}'"
        if what:
            name = model.actuator(actuator).name or f"number {actuator}"
            by_target.setdefault((what, _command(model, actuator)), []).append(name)
    return [
        f"the {what} has {len(names)} actuators that take {command} ({', '.join(names)}), whose "
        "forces add up: remove all but one if this is not meant."
        for (what, command), names in by_target.items()
        if len(names) > 1
    ]


def _command(model: mujoco.MjModel, actuator: int) -> str:
    """Return what the control of an actuator is."""
    _, position, velocity = model.actuator_biasprm[actuator, :3]
    if position:
        return "positions"
    if velocity:
        return "velocities"
    return "forces"


def _geom(model: mujoco.MjModel, geom: int) -> str:
    name = model.geom(geom).name
    if name:
        return f"the geom '{name}'"
    return f"a geom of the body '{model.body(model.geom_bodyid[geom]).name}'"

"""Edits of a MuJoCo spec that entities, actuators and benchmarks share."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.actuator import TransmissionType

_DRIVABLE = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
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


def apply_target_overrides(
    spec: mujoco.MjSpec,
    target_name: str,
    *,
    armature: float | None,
    frictionloss: float | None,
    viscous_damping: float | None,
) -> None:
    """Change passive properties of a joint; None keeps what the joint has.

    Args:
        spec: the spec to edit.
        target_name: the joint.
        armature: inertia to give the joint [kg m^2 or kg].
        frictionloss: dry friction to give the joint [N m or N].
        viscous_damping: passive damping to give the joint [N m s/rad or N s/m]. MuJoCo's Euler
            integrator treats it implicitly, which it does not do with an actuator's damping.
    """
    joint = spec.joint(target_name)
    if armature is not None:
        joint.armature = armature
    if frictionloss is not None:
        joint.frictionloss = frictionloss
    if viscous_damping is not None:
        joint.damping[:] = [viscous_damping, 0.0, 0.0]


def create_motor_actuator(
    spec: mujoco.MjSpec,
    target_name: str,
    *,
    effort_limit: float,
    gear: float = 1.0,
    transmission_type: TransmissionType = TransmissionType.JOINT,
) -> mujoco.MjsActuator:
    """Add an actuator that applies `gear * ctrl` as effort, within `effort_limit` [N or N m]."""
    bound = effort_limit / gear
    # Every property is given: those left out would come from the spec's default class.
    return spec.add_actuator(
        name=target_name,
        target=target_name,
        trntype=_TRANSMISSION[transmission_type],
        gear=[gear, 0.0, 0.0, 0.0, 0.0, 0.0],
        dyntype=mujoco.mjtDyn.mjDYN_NONE,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        gainprm=[1.0] + 9 * [0.0],
        biastype=mujoco.mjtBias.mjBIAS_NONE,
        biasprm=10 * [0.0],
        ctrllimited=True,
        ctrlrange=(-bound, bound),
        actlimited=False,
        forcelimited=True,
        forcerange=(-bound, bound),
    )


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
    actuator_name: str | None = None,
) -> mujoco.MjsActuator:
    """Add an actuator that pulls a joint to the position in `ctrl`.

    Args:
        spec: the spec to edit.
        joint_name: a hinge or slide joint.
        stiffness: force per position error [N m/rad or N/m].
        damping: force per velocity [N m s/rad or N s/m].
        effort_limit: bound of the force's magnitude [N m or N]; None for no bound.
        armature: see `apply_target_overrides`.
        frictionloss: see `apply_target_overrides`.
        viscous_damping: see `apply_target_overrides`.
        actuator_name: the actuator's name; None takes the joint's.

    Raises:
        ValueError: no such joint, or a negative gain or limit.
    """
    joint = spec.joint(joint_name)
    if joint is None:
        raise ValueError(
            f"There is no joint '{joint_name}' to put a position actuator on: "
            f"the spec has {', '.join(repr(other.name) for other in spec.joints) or 'no joints'}."
        )
    _check_gains(joint_name, stiffness, damping, effort_limit)
    apply_target_overrides(
        spec,
        joint_name,
        armature=armature,
        frictionloss=frictionloss,
        viscous_damping=viscous_damping,
    )
    limits = (0.0, 0.0) if effort_limit is None else (-effort_limit, effort_limit)
    # Every property is given: those left out would come from the spec's default class.
    return spec.add_actuator(
        name=joint_name if actuator_name is None else actuator_name,
        target=joint_name,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gear=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        dyntype=mujoco.mjtDyn.mjDYN_NONE,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        gainprm=[stiffness] + 9 * [0.0],
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        biasprm=[0.0, -stiffness, -damping] + 7 * [0.0],
        ctrllimited=False,
        actlimited=False,
        forcelimited=effort_limit is not None,
        forcerange=limits,
    )


def add_position_actuators(spec: mujoco.MjSpec, kp: float) -> list[str]:
    """Put a position actuator on every hinge and slide joint that no actuator drives yet.

    The damping is `kp / 20` (a time constant of 50 ms), as passive damping of the joint, so that
    every integrator treats it implicitly and light joints stay stable. Joints without a name get
    one.

    Args:
        spec: the spec to edit.
        kp: stiffness [N m/rad or N/m].

    Returns:
        The names of the joints that got an actuator.

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
            joint.name = _free_name(f"joint_{i}", {other.name for other in spec.joints})
        actuator_name = _free_name(joint.name, taken)
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


def add_sky(spec: mujoco.MjSpec) -> None:
    """Add a sky that is lighter towards the horizon; without one, pictures have a black sky."""
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.45, 0.6, 0.8),
        rgb2=(0.93, 0.95, 0.97),
        width=64,
        height=384,
    )


def add_checker_material(spec: mujoco.MjSpec, name: str, square: float = 0.5) -> str:
    """Add a material of light squares with sides of `square` [m]; return its name."""
    spec.add_texture(
        name=name,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=(0.83, 0.85, 0.88),
        rgb2=(0.74, 0.77, 0.81),
        width=256,
        height=256,
    )
    material = spec.add_material(name=name, texuniform=True, texrepeat=2 * [0.5 / square])
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    return name


def add_ground_plane(spec: mujoco.MjSpec, name: str = "ground_plane") -> mujoco.MjsGeom:
    """Add an infinite horizontal plane at height 0 to the world.

    Args:
        spec: the spec to edit.
        name: the geom's name.

    Raises:
        ValueError: the world has a plane already, which would double every contact.
    """
    for geom in spec.worldbody.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            raise ValueError(
                f"The world already has a ground plane, geom '{geom.name}': do not add another."
            )
    return spec.worldbody.add_geom(
        name=_free_name(name, {geom.name for geom in spec.geoms}),
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.0, 0.0, 0.05],
        # A file's default class may have switched its geoms' contacts off.
        contype=1,
        conaffinity=1,
    )


def _check_gains(
    joint_name: str, stiffness: float, damping: float, effort_limit: float | None
) -> None:
    for name, value in (("stiffness", stiffness), ("damping", damping)):
        if value < 0:
            raise ValueError(
                f"The {name} of joint '{joint_name}' must not be negative, got {value}."
            )
    if effort_limit is not None and effort_limit <= 0:
        raise ValueError(
            f"The effort_limit of joint '{joint_name}' must be positive, got {effort_limit}: "
            "leave it out for no limit."
        )


def _free_name(name: str, taken: set[str]) -> str:
    candidate, i = name, 1
    while candidate in taken:
        candidate, i = f"{name}_{i}", i + 1
    return candidate

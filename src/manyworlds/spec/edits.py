"""Edits of a MuJoCo spec that entities, actuators and benchmarks share."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from manyworlds.spec.actuators import (
    add_position_actuators,
    apply_target_overrides,
    create_dcmotor_actuator,
    create_motor_actuator,
    create_muscle_actuator,
    create_position_actuator,
    create_velocity_actuator,
    is_joint_limited,
    remove_actuators,
)
from manyworlds.spec.elements import copy_spec_data
from manyworlds.spec.export import export_spec
from manyworlds.spec.mocap import auto_wrap_fixed_base_mocap
from manyworlds.validation.names import free_name

__all__ = [
    "add_checker_material",
    "add_ground_plane",
    "add_position_actuators",
    "add_sky",
    "apply_target_overrides",
    "auto_wrap_fixed_base_mocap",
    "copy_material_data",
    "copy_mesh_data",
    "copy_texture_data",
    "create_dcmotor_actuator",
    "create_motor_actuator",
    "create_muscle_actuator",
    "create_position_actuator",
    "create_velocity_actuator",
    "drop_options",
    "export_spec",
    "get_free_joint",
    "get_non_free_joints",
    "is_joint_limited",
    "non_default_option_fields",
    "remove_actuators",
    "set_options",
]


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
    if not free:
        return None
    return free[0]


def get_non_free_joints(spec: mujoco.MjSpec) -> tuple[mujoco.MjsJoint, ...]:
    """Return all joints except free joints, in spec order."""
    return tuple(joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE)


def non_default_option_fields(opt: object) -> list[str]:
    """Return the names of the `<option>` fields that differ from MuJoCo's defaults."""
    default = mujoco.MjSpec().option
    return [
        name
        for name in dir(default)
        if not name.startswith("_")
        and not np.array_equal(getattr(default, name), getattr(opt, name))
    ]


def drop_options(spec: mujoco.MjSpec) -> dict[str, object]:
    """Set the `<option>` of a spec to MuJoCo's defaults; return the values that differed."""
    default = mujoco.MjSpec().option
    dropped = {}
    for name in non_default_option_fields(spec.option):
        dropped[name] = copy.copy(getattr(spec.option, name))
        setattr(spec.option, name, getattr(default, name))
    return dropped


def copy_mesh_data(src: mujoco.MjsMesh, dst: mujoco.MjsMesh) -> None:
    """Copy all data of a mesh except its name, within a spec or between specs.

    The file name is copied, too: the spec of `dst` must find a file of that name.
    """
    copy_spec_data(src, dst)


def copy_texture_data(src: mujoco.MjsTexture, dst: mujoco.MjsTexture) -> None:
    """Copy all data of a texture except its name; see `copy_mesh_data`."""
    copy_spec_data(src, dst)


def copy_material_data(src: mujoco.MjsMaterial, dst: mujoco.MjsMaterial) -> None:
    """Copy all data of a material except its name; it refers to textures by name."""
    copy_spec_data(src, dst)


def add_sky(spec: mujoco.MjSpec) -> None:
    """Add a sky that is lighter toward the horizon; without one, images have a black sky."""
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
    """Add a material with a checkerboard of `square` [m] sides; return its name."""
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


def set_options(spec: mujoco.MjSpec, option: mujoco.MjOption) -> None:
    """Set all options of a spec to those of a compiled model."""
    for name in (name for name in dir(option) if not name.startswith("_")):
        setattr(spec.option, name, getattr(option, name))


def add_ground_plane(spec: mujoco.MjSpec, name: str = "ground_plane") -> mujoco.MjsGeom:
    """Add an infinite horizontal plane at height 0 to the world.

    Args:
        spec: the spec to edit.
        name: the geom's name.

    Raises:
        ValueError: the world already has a plane, which would duplicate every contact.
    """
    for geom in spec.worldbody.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            raise ValueError(
                f"The world already has a ground plane, geom '{geom.name}': do not add another."
            )
    return spec.worldbody.add_geom(
        name=free_name(name, {geom.name for geom in spec.geoms}),
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.0, 0.0, 0.05],
        # A file's default class may disable contacts of its geoms.
        contype=1,
        conaffinity=1,
    )

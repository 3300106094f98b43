"""Functions that randomize one model field each.

Written by `python tools/write_randomizations.py`, which has the table of the fields; a test
compares them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from manyworlds.envs.mdp.dr.distributions import Distribution, Operation
from manyworlds.envs.mdp.dr.field_draws import (
    ROBOT,
    Axes,
    FieldDraw,
    Range,
    Ranges,
    field_draw,
    randomizes,
)
from manyworlds.envs.mdp.dr.quat_draws import QuatDraw, quat_draw
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@randomizes("geom_friction")
def geom_friction(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `geom_friction`: friction coefficients of geoms: sliding, torsional, rolling.

    It writes rows of `sim.model.geom_friction`, shape [num_envs, ngeom, 3]. Contacts with condim 3
    use the sliding coefficient only.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its geoms.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else 0. Others keep their values.
        shared_random: whether all geoms of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "geom_friction",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
        default_axes=0,
    )


@randomizes("geom_pos")
def geom_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `geom_pos`: positions of geoms in the frames of their bodies [m].

    It writes rows of `sim.model.geom_pos`, shape [num_envs, ngeom, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its geoms.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all geoms of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "geom_pos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("geom_quat")
def geom_quat(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    roll_range: Range = (0.0, 0.0),
    pitch_range: Range = (0.0, 0.0),
    yaw_range: Range = (0.0, 0.0),
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> QuatDraw:
    """Randomize `geom_quat`: orientations of geoms in the frames of their bodies.

    It writes rows of `sim.model.geom_quat`, shape [num_envs, ngeom, 4]. The drawn rotation is about
    the element's own axes, after its compiled orientation.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its geoms.
    """
    return quat_draw(env, "geom_quat", roll_range, pitch_range, yaw_range, distribution, asset_cfg)


@randomizes("geom_rgba")
def geom_rgba(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `geom_rgba`: colors of geoms: red, green, blue and opacity, each from 0 to 1.

    It writes rows of `sim.model.geom_rgba`, shape [num_envs, ngeom, 4].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its geoms.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all geoms of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "geom_rgba", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("body_mass")
def body_mass(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `body_mass`: masses of bodies [kg].

    It writes rows of `sim.model.body_mass`, shape [num_envs, nbody]. The inertia stays as it is:
    `pseudo_inertia` changes both.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its bodies.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all bodies of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    warnings.warn(
        "dr.body_mass does not scale inertia, which is right for a point mass at the center of "
        "mass only: use dr.pseudo_inertia with alpha_range for bodies that are more or less dense.",
        UserWarning,
        4,
    )
    return field_draw(
        env, "body_mass", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("body_ipos")
def body_com_offset(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "add",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `body_ipos`: centers of mass of bodies, in the bodies' frames [m].

    It writes rows of `sim.model.body_ipos`, shape [num_envs, nbody, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its bodies.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all bodies of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "body_ipos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


body_ipos = body_com_offset


@randomizes("body_pos")
def body_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "add",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `body_pos`: positions of bodies in the frames of their parents [m].

    It writes rows of `sim.model.body_pos`, shape [num_envs, nbody, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its bodies.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all bodies of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "body_pos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("body_quat")
def body_quat(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    roll_range: Range = (0.0, 0.0),
    pitch_range: Range = (0.0, 0.0),
    yaw_range: Range = (0.0, 0.0),
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> QuatDraw:
    """Randomize `body_quat`: orientations of bodies in the frames of their parents.

    It writes rows of `sim.model.body_quat`, shape [num_envs, nbody, 4]. The drawn rotation is about
    the element's own axes, after its compiled orientation.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its bodies.
    """
    return quat_draw(env, "body_quat", roll_range, pitch_range, yaw_range, distribution, asset_cfg)


@randomizes("body_gravcomp")
def body_gravcomp(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `body_gravcomp`: gravity compensation of bodies, as a fraction of their weight.

    It writes rows of `sim.model.body_gravcomp`, shape [num_envs, nbody]. 1 makes a body weightless.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its bodies.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all bodies of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "body_gravcomp", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("dof_damping")
def joint_damping(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `dof_damping`: damping of joints [N m s/rad or N s/m].

    It writes rows of `sim.model.dof_damping`, shape [num_envs, nv].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "dof_damping", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


dof_damping = joint_damping


@randomizes("dof_armature")
def joint_armature(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `dof_armature`: armature of joints [kg m^2 or kg].

    It writes rows of `sim.model.dof_armature`, shape [num_envs, nv].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "dof_armature", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


dof_armature = joint_armature


@randomizes("dof_frictionloss")
def joint_friction(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `dof_frictionloss`: dry friction of joints [N m or N].

    It writes rows of `sim.model.dof_frictionloss`, shape [num_envs, nv].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "dof_frictionloss",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


dof_frictionloss = joint_friction


@randomizes("jnt_stiffness")
def joint_stiffness(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `jnt_stiffness`: stiffness of joints [N m/rad or N/m].

    It writes rows of `sim.model.jnt_stiffness`, shape [num_envs, njnt].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "jnt_stiffness", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


jnt_stiffness = joint_stiffness


@randomizes("jnt_range")
def joint_limits(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `jnt_range`: lower and upper limits of joints [rad or m].

    It writes rows of `sim.model.jnt_range`, shape [num_envs, njnt, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "jnt_range", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


jnt_range = joint_limits


@randomizes("qpos0")
def joint_default_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "add",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `qpos0`: reference positions of joints [rad or m].

    It writes rows of `sim.model.qpos0`, shape [num_envs, nq]. The entity's default joint positions
    move with them.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "qpos0", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


qpos0 = joint_default_pos


@randomizes("jnt_margin")
def jnt_margin(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `jnt_margin`: margins of joint limits [rad or m].

    It writes rows of `sim.model.jnt_margin`, shape [num_envs, njnt]. A limit becomes active at this
    distance from it.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its joints.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all joints of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "jnt_margin", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("site_pos")
def site_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `site_pos`: positions of sites in the frames of their bodies [m].

    It writes rows of `sim.model.site_pos`, shape [num_envs, nsite, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its sites.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all sites of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "site_pos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("site_quat")
def site_quat(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    roll_range: Range = (0.0, 0.0),
    pitch_range: Range = (0.0, 0.0),
    yaw_range: Range = (0.0, 0.0),
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> QuatDraw:
    """Randomize `site_quat`: orientations of sites in the frames of their bodies.

    It writes rows of `sim.model.site_quat`, shape [num_envs, nsite, 4]. The drawn rotation is about
    the element's own axes, after its compiled orientation.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its sites.
    """
    return quat_draw(env, "site_quat", roll_range, pitch_range, yaw_range, distribution, asset_cfg)


@randomizes("cam_fovy")
def cam_fovy(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `cam_fovy`: vertical fields of view of cameras [deg].

    It writes rows of `sim.model.cam_fovy`, shape [num_envs, ncam].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its cameras.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all cameras of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "cam_fovy", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("cam_pos")
def cam_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `cam_pos`: positions of cameras in the frames of their bodies [m].

    It writes rows of `sim.model.cam_pos`, shape [num_envs, ncam, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its cameras.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all cameras of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "cam_pos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("cam_quat")
def cam_quat(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    roll_range: Range = (0.0, 0.0),
    pitch_range: Range = (0.0, 0.0),
    yaw_range: Range = (0.0, 0.0),
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> QuatDraw:
    """Randomize `cam_quat`: orientations of cameras in the frames of their bodies.

    It writes rows of `sim.model.cam_quat`, shape [num_envs, ncam, 4]. The drawn rotation is about
    the element's own axes, after its compiled orientation.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its cameras.
    """
    return quat_draw(env, "cam_quat", roll_range, pitch_range, yaw_range, distribution, asset_cfg)


@randomizes("cam_intrinsic")
def cam_intrinsic(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `cam_intrinsic`: focal lengths and principal points of cameras [m].

    It writes rows of `sim.model.cam_intrinsic`, shape [num_envs, ncam, 4].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its cameras.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all cameras of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "cam_intrinsic", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_pos")
def light_pos(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_pos`: positions of lights in the frames of their bodies [m].

    It writes rows of `sim.model.light_pos`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "light_pos", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_dir")
def light_dir(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_dir`: directions of lights in the frames of their bodies.

    It writes rows of `sim.model.light_dir`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "light_dir", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_diffuse")
def light_diffuse(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_diffuse`: diffuse colors of lights: red, green, blue.

    It writes rows of `sim.model.light_diffuse`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "light_diffuse", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_specular")
def light_specular(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_specular`: specular colors of lights: red, green, blue.

    It writes rows of `sim.model.light_specular`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "light_specular",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("light_ambient")
def light_ambient(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_ambient`: ambient colors of lights: red, green, blue.

    It writes rows of `sim.model.light_ambient`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "light_ambient", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_attenuation")
def light_attenuation(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_attenuation`: constant, linear and quadratic attenuation of lights.

    It writes rows of `sim.model.light_attenuation`, shape [num_envs, nlight, 3].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "light_attenuation",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("light_cutoff")
def light_cutoff(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_cutoff`: cutoff angles of spotlights [deg].

    It writes rows of `sim.model.light_cutoff`, shape [num_envs, nlight].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "light_cutoff", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("light_exponent")
def light_exponent(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `light_exponent`: exponents of spotlights.

    It writes rows of `sim.model.light_exponent`, shape [num_envs, nlight]. A larger exponent makes
    the beam narrower.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its lights.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all lights of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "light_exponent",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("mat_rgba")
def mat_rgba(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `mat_rgba`: colors of materials: red, green, blue and opacity, each from 0 to 1.

    It writes rows of `sim.model.mat_rgba`, shape [num_envs, nmat, 4].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its materials.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all materials of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "mat_rgba", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("mat_emission")
def mat_emission(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `mat_emission`: emission of materials.

    It writes rows of `sim.model.mat_emission`, shape [num_envs, nmat].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its materials.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all materials of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "mat_emission", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("mat_specular")
def mat_specular(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `mat_specular`: specularity of materials, from 0 to 1.

    It writes rows of `sim.model.mat_specular`, shape [num_envs, nmat].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its materials.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all materials of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "mat_specular", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("mat_shininess")
def mat_shininess(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `mat_shininess`: shininess of materials, from 0 to 1.

    It writes rows of `sim.model.mat_shininess`, shape [num_envs, nmat].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its materials.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all materials of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "mat_shininess", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("mat_texrepeat")
def mat_texrepeat(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `mat_texrepeat`: repetitions of textures on materials, along x and y.

    It writes rows of `sim.model.mat_texrepeat`, shape [num_envs, nmat, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its materials.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all materials of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "mat_texrepeat", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("tendon_damping")
def tendon_damping(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_damping`: damping of tendons [N s/m].

    It writes rows of `sim.model.tendon_damping`, shape [num_envs, ntendon].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "tendon_damping",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("tendon_stiffness")
def tendon_stiffness(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_stiffness`: stiffness of tendons [N/m].

    It writes rows of `sim.model.tendon_stiffness`, shape [num_envs, ntendon].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "tendon_stiffness",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("tendon_frictionloss")
def tendon_friction(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_frictionloss`: dry friction of tendons [N].

    It writes rows of `sim.model.tendon_frictionloss`, shape [num_envs, ntendon].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "tendon_frictionloss",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


tendon_frictionloss = tendon_friction


@randomizes("tendon_armature")
def tendon_armature(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_armature`: armature of tendons [kg].

    It writes rows of `sim.model.tendon_armature`, shape [num_envs, ntendon].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "tendon_armature",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("tendon_range")
def tendon_range(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_range`: lower and upper limits of the lengths of tendons [m].

    It writes rows of `sim.model.tendon_range`, shape [num_envs, ntendon, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "tendon_range", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("tendon_margin")
def tendon_margin(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_margin`: margins of tendon limits [m].

    It writes rows of `sim.model.tendon_margin`, shape [num_envs, ntendon]. A limit becomes active
    at this distance from it.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "tendon_margin", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("tendon_lengthspring")
def tendon_lengthspring(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `tendon_lengthspring`: lower and upper resting lengths of tendons' springs [m].

    It writes rows of `sim.model.tendon_lengthspring`, shape [num_envs, ntendon, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its tendons.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all tendons of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "tendon_lengthspring",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("actuator_dynprm")
def actuator_dynprm(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `actuator_dynprm`: parameters of the dynamics of actuators.

    It writes rows of `sim.model.actuator_dynprm`, shape [num_envs, nactuator, 10].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its actuators.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all actuators of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "actuator_dynprm",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("actuator_gear")
def actuator_gear(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `actuator_gear`: gears of actuators, which scale lengths and forces.

    It writes rows of `sim.model.actuator_gear`, shape [num_envs, nactuator, 6].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its actuators.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all actuators of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env, "actuator_gear", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )


@randomizes("actuator_ctrlrange")
def actuator_ctrlrange(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `actuator_ctrlrange`: lower and upper limits of controls.

    It writes rows of `sim.model.actuator_ctrlrange`, shape [num_envs, nu, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its actuators.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all actuators of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "actuator_ctrlrange",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )


@randomizes("actuator_actrange")
def actuator_actrange(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `actuator_actrange`: lower and upper limits of activations.

    It writes rows of `sim.model.actuator_actrange`, shape [num_envs, nactuator, 2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its actuators.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else all. Others keep their values.
        shared_random: whether all actuators of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
    return field_draw(
        env,
        "actuator_actrange",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
    )

"""Functions that randomize one field of the model, made of a table."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import torch

from manyworlds.envs.mdp.dr.distributions import Distribution, Operation
from manyworlds.envs.mdp.dr.field_draws import (
    Axes,
    Bounds,
    FieldDraw,
    Randomization,
    Range,
    Ranges,
    Rows,
    field_draw,
    make_bounds,
    randomizes,
    resolved,
)
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sim import RecomputeLevel
from manyworlds.utils.math import quat_from_euler_xyz, quat_mul

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.prepared_event import Draws

ROBOT = SceneEntityCfg("robot")

_ARGUMENTS = """

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {0: (lower, upper)}, or by regular expression
            over names {".*knee.*": (lower, upper)}.
        asset_cfg: the entity and which of its elements.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw; the others keep their values. None for those of `ranges`, else %s.
        shared_random: whether all elements of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
_QUAT_ARGUMENTS = """

    The drawn rotation is about the element's own axes, after its compiled orientation.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its elements.
    """


class FieldFunction(Protocol):
    """Randomizes a model field."""

    model_fields: tuple[str, ...]
    recompute: RecomputeLevel

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor | None,
        ranges: Ranges,
        asset_cfg: SceneEntityCfg = ROBOT,
        distribution: Distribution | str = "uniform",
        operation: Operation | str = ...,
        axes: Axes = None,
        shared_random: bool = False,
        clamp: bool = False,
    ) -> None:
        """Draw values for elements of an entity, in the worlds named."""
        ...


class QuatFunction(Protocol):
    """Randomizes orientations in a model field."""

    model_fields: tuple[str, ...]
    recompute: RecomputeLevel

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor | None,
        roll_range: Range = (0.0, 0.0),
        pitch_range: Range = (0.0, 0.0),
        yaw_range: Range = (0.0, 0.0),
        distribution: Distribution | str = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw rotations for elements of an entity, in the worlds named."""
        ...


def _field(
    name: str,
    what: str,
    *,
    field: str = "",
    operation: str = "abs",
    axes: int | None = None,
    warning: str = "",
) -> FieldFunction:
    """Make the function `name` that randomizes a field (`name` itself, if not given)."""
    field = field or name
    default_operation, default_axes = operation, axes

    def build(
        env: ManagerBasedRlEnv,
        ranges: Ranges,
        asset_cfg: SceneEntityCfg = ROBOT,
        distribution: Distribution | str = "uniform",
        operation: Operation | str = default_operation,
        axes: Axes = None,
        shared_random: bool = False,
        clamp: bool = False,
    ) -> FieldDraw:
        if warning:
            warnings.warn(warning, UserWarning, 4)
        return field_draw(
            env,
            field,
            ranges,
            asset_cfg,
            distribution,
            operation,
            axes,
            shared_random,
            default_axes=default_axes,
            clamp=clamp,
        )

    build.__name__ = build.__qualname__ = name
    columns = "all" if axes is None else axes
    build.__doc__ = f"Randomize `{field}`: {what}.{_ARGUMENTS % columns}"
    return cast("FieldFunction", randomizes(field)(build))


@dataclass(frozen=True)
class _Turn(Randomization):
    """Draw of rotations after the compiled orientations."""

    rows: Rows
    bounds: Bounds

    def apply(self, env: ManagerBasedRlEnv, worlds: torch.Tensor, draws: Draws | None) -> None:
        """Draw for some worlds."""
        rows = self.rows
        drawn = rows.draw(
            draws, "turn", worlds, lambda count: self.bounds.sample(count, len(rows.ids))
        )
        turn = quat_from_euler_xyz(*drawn.unbind(-1))
        turned = quat_mul(rows.default(worlds), turn)
        rows.write(env, worlds, torch.nn.functional.normalize(turned, dim=-1))


def _quat(name: str, what: str) -> QuatFunction:
    """Make the function that rotates the orientations in the field of the same name."""

    def build(
        env: ManagerBasedRlEnv,
        roll_range: Range = (0.0, 0.0),
        pitch_range: Range = (0.0, 0.0),
        yaw_range: Range = (0.0, 0.0),
        distribution: Distribution | str = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> _Turn:
        angles = (roll_range, pitch_range, yaw_range)
        if any(abs(bound) > 2.0 * math.pi for bounds in angles for bound in bounds):
            warnings.warn(
                f"dr.{name} has ranges {angles}: they are radians, and some are beyond a "
                "whole turn. Use math.radians for degrees.",
                UserWarning,
                4,
            )
        rows = Rows(env, name, resolved(env, asset_cfg))
        env.sim.expand_model_fields((name,))
        return _Turn(rows, make_bounds([angles], distribution, env.sim.device))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"Randomize `{name}`: {what}.{_QUAT_ARGUMENTS}"
    return cast("QuatFunction", randomizes(name)(build))


geom_friction = _field(
    "geom_friction",
    "sliding, torsional and rolling friction of geoms, of which contacts of condim 3 only feel the "
    "first",
    axes=0,
)
geom_pos = _field("geom_pos", "positions of geoms in the frames of their bodies [m]")
geom_quat = _quat("geom_quat", "orientations of geoms in the frames of their bodies")
geom_rgba = _field("geom_rgba", "colors of geoms, and how opaque they are, each from 0 to 1")

body_mass = _field(
    "body_mass",
    "masses of bodies [kg]; their inertia stays",
    operation="scale",
    warning="dr.body_mass does not scale inertia, which is right for a point mass at the center of "
    "mass only: use dr.pseudo_inertia with alpha_range for bodies that are more or less dense.",
)
body_com_offset = body_ipos = _field(
    "body_com_offset", "centers of mass of bodies [m]", field="body_ipos", operation="add"
)
body_pos = _field(
    "body_pos", "positions of bodies in the frames of their parents [m]", operation="add"
)
body_quat = _quat("body_quat", "orientations of bodies in the frames of their parents")
body_gravcomp = _field(
    "body_gravcomp", "shares of bodies' weights that are compensated: 1 makes them weightless"
)

joint_damping = dof_damping = _field(
    "joint_damping", "damping of joints [N m s/rad or N s/m]", field="dof_damping"
)
joint_armature = dof_armature = _field(
    "joint_armature", "inertia that drives add to joints [kg m^2 or kg]", field="dof_armature"
)
joint_friction = dof_frictionloss = _field(
    "joint_friction", "dry friction of joints [N m or N]", field="dof_frictionloss"
)
joint_stiffness = jnt_stiffness = _field(
    "joint_stiffness", "springs of joints [N m/rad or N/m]", field="jnt_stiffness"
)
joint_limits = jnt_range = _field(
    "joint_limits", "lower and upper limits of joints [rad or m]", field="jnt_range"
)
joint_default_pos = qpos0 = _field(
    "joint_default_pos",
    "positions of joints that count as zero [rad or m], with which the entity's default joint "
    "positions move",
    field="qpos0",
    operation="add",
)
jnt_margin = _field("jnt_margin", "distances at which limits of joints begin to act [rad or m]")

site_pos = _field("site_pos", "positions of sites in the frames of their bodies [m]")
site_quat = _quat("site_quat", "orientations of sites in the frames of their bodies")

cam_fovy = _field("cam_fovy", "vertical fields of view of cameras [deg]")
cam_pos = _field("cam_pos", "positions of cameras in the frames of their bodies [m]")
cam_quat = _quat("cam_quat", "orientations of cameras in the frames of their bodies")
cam_intrinsic = _field("cam_intrinsic", "focal lengths and principal points of cameras [m]")

light_pos = _field("light_pos", "positions of lights in the frames of their bodies [m]")
light_dir = _field("light_dir", "directions of lights in the frames of their bodies")
light_diffuse = _field("light_diffuse", "diffuse colors of lights")
light_specular = _field("light_specular", "specular colors of lights")
light_ambient = _field("light_ambient", "ambient colors of lights")
light_attenuation = _field(
    "light_attenuation", "constant, linear and quadratic attenuation of lights"
)
light_cutoff = _field("light_cutoff", "angles at which spotlights end [deg]")
light_exponent = _field("light_exponent", "how narrow spotlights are")

mat_rgba = _field("mat_rgba", "colors of materials, which tint their textures")
mat_emission = _field("mat_emission", "how much materials glow")
mat_specular = _field("mat_specular", "how strong highlights of materials are")
mat_shininess = _field("mat_shininess", "how small highlights of materials are")
mat_texrepeat = _field("mat_texrepeat", "how often textures repeat on materials, along x and y")

tendon_damping = _field("tendon_damping", "damping of tendons [N s/m]")
tendon_stiffness = _field("tendon_stiffness", "springs of tendons [N/m]")
tendon_friction = tendon_frictionloss = _field(
    "tendon_friction", "dry friction of tendons [N]", field="tendon_frictionloss"
)
tendon_armature = _field("tendon_armature", "mass that drives add to tendons [kg]")
tendon_range = _field("tendon_range", "shortest and longest lengths of tendons [m]")
tendon_margin = _field("tendon_margin", "distances at which limits of tendons begin to act [m]")
tendon_lengthspring = _field(
    "tendon_lengthspring", "lower and upper bounds of the lengths at which springs rest [m]"
)

actuator_dynprm = _field("actuator_dynprm", "parameters of actuators' dynamics")
actuator_gear = _field("actuator_gear", "gears of actuators: what scales lengths and forces")
actuator_ctrlrange = _field("actuator_ctrlrange", "lower and upper bounds of controls")
actuator_actrange = _field("actuator_actrange", "lower and upper bounds of activations")

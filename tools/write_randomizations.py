"""Write the functions of `manyworlds.envs.mdp.dr` that randomize one model field each.

A new one is a row of `FIELDS`, and a name in the lists of the package's `__init__.py`.

Run from the project's root: python tools/write_randomizations.py
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE

FILE = Path("src/manyworlds/envs/mdp/dr/fields.py")
_WIDTH = 100


@dataclass(frozen=True)
class Field:
    """Function that draws values of a model field."""

    name: str
    """Name of the function, and of the field unless `field` names another."""
    values: str
    """Meaning and unit of the values, for the first line of the docstring."""
    note: str = ""
    """Sentences that follow it."""
    field: str = ""
    """Field of the model; the function has this name, too."""
    operation: str = "abs"
    """Default operation."""
    axes: int | None = None
    """Column that is drawn if nothing selects columns; None for all."""
    statement: str = ""
    """Statement at the start of the function."""


@dataclass(frozen=True)
class Orientation:
    """Function that rotates the quaternions in the model field of its name."""

    name: str
    values: str
    """Meaning of the quaternions, for the first line of the docstring."""


_MASS_WARNING = """    warnings.warn(
        "dr.body_mass does not scale inertia, which is right for a point mass at the center of "
        "mass only: use dr.pseudo_inertia with alpha_range for bodies that are more or less dense.",
        UserWarning,
        4,
    )
"""

FIELDS: dict[str, tuple[Field | Orientation, ...]] = {
    "Geoms": (
        Field(
            "geom_friction",
            "friction coefficients of geoms: sliding, torsional, rolling",
            note="Contacts with condim 3 use the sliding coefficient only.",
            axes=0,
        ),
        Field("geom_pos", "positions of geoms in the frames of their bodies [m]"),
        Orientation("geom_quat", "orientations of geoms in the frames of their bodies"),
        Field("geom_rgba", "colors of geoms: red, green, blue and opacity, each from 0 to 1"),
    ),
    "Bodies": (
        Field(
            "body_mass",
            "masses of bodies [kg]",
            note="The inertia stays as it is: `pseudo_inertia` changes both.",
            operation="scale",
            statement=_MASS_WARNING,
        ),
        Field(
            "body_com_offset",
            "centers of mass of bodies, in the bodies' frames [m]",
            field="body_ipos",
            operation="add",
        ),
        Field(
            "body_pos", "positions of bodies in the frames of their parents [m]", operation="add"
        ),
        Orientation("body_quat", "orientations of bodies in the frames of their parents"),
        Field(
            "body_gravcomp",
            "gravity compensation of bodies, as a fraction of their weight",
            note="1 makes a body weightless.",
        ),
    ),
    "Joints": (
        Field("joint_damping", "damping of joints [N m s/rad or N s/m]", field="dof_damping"),
        Field("joint_armature", "armature of joints [kg m^2 or kg]", field="dof_armature"),
        Field("joint_friction", "dry friction of joints [N m or N]", field="dof_frictionloss"),
        Field("joint_stiffness", "stiffness of joints [N m/rad or N/m]", field="jnt_stiffness"),
        Field("joint_limits", "lower and upper limits of joints [rad or m]", field="jnt_range"),
        Field(
            "joint_default_pos",
            "reference positions of joints [rad or m]",
            note="The entity's default joint positions move with them.",
            field="qpos0",
            operation="add",
        ),
        Field(
            "jnt_margin",
            "margins of joint limits [rad or m]",
            note="A limit becomes active at this distance from it.",
        ),
    ),
    "Sites": (
        Field("site_pos", "positions of sites in the frames of their bodies [m]"),
        Orientation("site_quat", "orientations of sites in the frames of their bodies"),
    ),
    "Cameras": (
        Field("cam_fovy", "vertical fields of view of cameras [deg]"),
        Field("cam_pos", "positions of cameras in the frames of their bodies [m]"),
        Orientation("cam_quat", "orientations of cameras in the frames of their bodies"),
        Field("cam_intrinsic", "focal lengths and principal points of cameras [m]"),
    ),
    "Lights": (
        Field("light_pos", "positions of lights in the frames of their bodies [m]"),
        Field("light_dir", "directions of lights in the frames of their bodies"),
        Field("light_diffuse", "diffuse colors of lights: red, green, blue"),
        Field("light_specular", "specular colors of lights: red, green, blue"),
        Field("light_ambient", "ambient colors of lights: red, green, blue"),
        Field("light_attenuation", "constant, linear and quadratic attenuation of lights"),
        Field("light_cutoff", "cutoff angles of spotlights [deg]"),
        Field(
            "light_exponent",
            "exponents of spotlights",
            note="A larger exponent makes the beam narrower.",
        ),
    ),
    "Materials": (
        Field("mat_rgba", "colors of materials: red, green, blue and opacity, each from 0 to 1"),
        Field("mat_emission", "emission of materials"),
        Field("mat_specular", "specularity of materials, from 0 to 1"),
        Field("mat_shininess", "shininess of materials, from 0 to 1"),
        Field("mat_texrepeat", "repetitions of textures on materials, along x and y"),
    ),
    "Tendons": (
        Field("tendon_damping", "damping of tendons [N s/m]"),
        Field("tendon_stiffness", "stiffness of tendons [N/m]"),
        Field("tendon_friction", "dry friction of tendons [N]", field="tendon_frictionloss"),
        Field("tendon_armature", "armature of tendons [kg]"),
        Field("tendon_range", "lower and upper limits of the lengths of tendons [m]"),
        Field(
            "tendon_margin",
            "margins of tendon limits [m]",
            note="A limit becomes active at this distance from it.",
        ),
        Field("tendon_lengthspring", "lower and upper resting lengths of tendons' springs [m]"),
    ),
    "Actuators": (
        Field("actuator_dynprm", "parameters of the dynamics of actuators"),
        Field("actuator_gear", "gears of actuators, which scale lengths and forces"),
        Field("actuator_ctrlrange", "lower and upper limits of controls"),
        Field("actuator_actrange", "lower and upper limits of activations"),
    ),
}
"""The functions, by kind of element."""

_HEAD = '''"""Functions that randomize one model field each.

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
'''
_FIELD = '''

@randomizes("{field}")
def {name}(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "{operation}",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> FieldDraw:
    """Randomize `{field}`: {values}.

{note}

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all, or by column {{0: (lower, upper)}}, or by regular expression
            over names {{".*knee.*": (lower, upper)}}.
        asset_cfg: the entity and which of its {elements}.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: columns to draw, None for those of `ranges`, else {axes}. Others keep their values.
        shared_random: whether all {elements} of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut; otherwise ranges that lead to
            some are refused.
    """
{statement}    return {call}
'''
_ORIENTATION = '''

@randomizes("{name}")
def {name}(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    roll_range: Range = (0.0, 0.0),
    pitch_range: Range = (0.0, 0.0),
    yaw_range: Range = (0.0, 0.0),
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> QuatDraw:
    """Randomize `{name}`: {values}.

{note}

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its {elements}.
    """
    return {call}
'''

_COUNTS = {
    "body": "nbody",
    "joint": "njnt",
    "dof": "nv",
    "position": "nq",
    "geom": "ngeom",
    "site": "nsite",
    "camera": "ncam",
    "light": "nlight",
    "material": "nmat",
    "tendon": "ntendon",
    "actuator": "nactuator",
    "control": "nu",
}
"""Number of rows of a field, as MuJoCo names it, by what it has rows for."""


def written_module() -> str:
    """Return the content of the module."""
    parts = [_HEAD]
    for kind, rows in FIELDS.items():
        for row in rows:
            if isinstance(row, Field):
                parts.append(_field_function(row, kind.lower()))
            else:
                parts.append(_orientation_function(row, kind.lower()))
    return "".join(parts)


def _field_function(row: Field, elements: str) -> str:
    """Return a function that draws values, and its alias."""
    field = row.field or row.name
    arguments = [
        "env",
        f'"{field}"',
        "ranges",
        "asset_cfg",
        "distribution",
        "operation",
        "axes",
        "shared_random",
        "clamp",
    ]
    if row.axes is not None:
        arguments.append(f"default_axes={row.axes}")
    text = _FIELD.format(
        name=row.name,
        field=field,
        values=row.values,
        note=_note(field, row.note),
        elements=elements,
        operation=row.operation,
        axes="all" if row.axes is None else row.axes,
        statement=row.statement,
        call=_call("field_draw", arguments),
    )
    if row.field:
        text += f"\n\n{field} = {row.name}\n"
    return text


def _orientation_function(row: Orientation, elements: str) -> str:
    """Return a function that rotates quaternions."""
    note = "The drawn rotation is about the element's own axes, after its compiled orientation."
    ranges = ["roll_range", "pitch_range", "yaw_range"]
    arguments = ["env", f'"{row.name}"', *ranges, "distribution", "asset_cfg"]
    return _ORIENTATION.format(
        name=row.name,
        values=row.values,
        note=_note(row.name, note),
        elements=elements,
        call=_call("quat_draw", arguments),
    )


def _note(field: str, note: str) -> str:
    """Return the lines that follow the first one of a docstring."""
    known = MODEL_FIELD_TABLE[field]
    shape = ", ".join(["num_envs", _COUNTS[known.element], *map(str, known.shape)])
    text = f"It writes rows of `sim.model.{field}`, shape [{shape}]. {note}"
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _call(function: str, arguments: list[str]) -> str:
    """Return a call in one line, or its arguments in one, or each in a line, as ruff does."""
    inside = ", ".join(arguments)
    call = f"{function}({inside})"
    if len(f"    return {call}") <= _WIDTH:
        return call
    lines = f"        {inside}\n"
    if len(lines) > _WIDTH + 1:
        lines = "".join(f"        {argument},\n" for argument in arguments)
    return f"{function}(\n{lines}    )"


if __name__ == "__main__":
    FILE.write_text(written_module())

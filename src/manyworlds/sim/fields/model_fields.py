"""Model fields that may differ between worlds, and the recomputation that their changes need.

The list holds every field that MuJoCo Warp can keep per world. The native engine can keep nearly
every model field per world; `_setconst_inputs` of MuJoCo determines the level of a field that is
not in this list. `tests/sim/fields/test_model_fields.py` tests each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from manyworlds.sim.fields.recompute import RecomputeLevel

NONE = RecomputeLevel.none
FIXED = RecomputeLevel.set_const_fixed
ZERO = RecomputeLevel.set_const_0
FULL = RecomputeLevel.set_const


@dataclass(frozen=True)
class FieldBounds:
    """Bounds of the values of a model field, beyond which MuJoCo computes nothing sensible."""

    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False
    """True if `low` itself is out of bounds."""
    ordered: bool = False
    """True if the first value must not exceed the second."""
    used_where: str = ""
    """Field of flags of the elements whose values are used; empty if all are."""

    def __str__(self) -> str:
        """Return the bounds in words."""
        words = []
        if math.isfinite(self.high) and self.above_low:
            words.append(f"above {self.low:g} to {self.high:g}")
        elif math.isfinite(self.high):
            words.append(f"from {self.low:g} to {self.high:g}")
        elif math.isfinite(self.low) and self.above_low:
            words.append(f"above {self.low:g}")
        elif math.isfinite(self.low):
            words.append(f"at least {self.low:g}")
        if self.ordered:
            words.append("in ascending order")
        return " and ".join(words)


@dataclass(frozen=True)
class ModelField:
    """Properties of a model field that matter when worlds differ in it."""

    name: str
    element: str
    """Kind of element that each row belongs to: body, joint, dof, geom, ..."""
    shape: tuple[int, ...]
    """Shape of one element's values, as in MuJoCo Warp."""
    native: RecomputeLevel | None
    """Level to recompute on the native engine; None if it has no such field."""
    warp: RecomputeLevel | None
    """Level to recompute on the warp engine; None if the field cannot differ there."""
    derived: bool
    """True if recomputing overwrites the field."""
    cached: bool
    """True if entities cache values that were computed from it."""
    bounds: FieldBounds
    note: str


# Fields that `recompute_constants` writes, with the lowest level that does so.
_DERIVED = {
    "actuator_acc0": ZERO,
    "body_invweight0": ZERO,
    "body_subtreemass": FIXED,
    "cam_mat0": ZERO,
    "cam_pos0": ZERO,
    "cam_poscom0": ZERO,
    "dof_invweight0": ZERO,
    "geom_aabb": FIXED,
    "geom_rbound": FIXED,
    "light_dir0": ZERO,
    "light_pos0": ZERO,
    "light_poscom0": ZERO,
    "tendon_invweight0": ZERO,
    "tendon_length0": ZERO,
}

_CACHED = frozenset({"jnt_range", "qpos0"})

_TENDON = "`set_const_0` on warp if a tendon or an actuator passes here"
_STATIC = f"the level moves static geoms; {_TENDON}"
_ZERO = "on warp not from zero: the step was built without it"
_LAYOUT = "addresses and sizes of buffers: leave as compiled"
_NOTES = {
    "qpos_spring": "warp leaves `tendon_lengthspring` as it is",
    "body_ipos": "the body must be compiled with `simple=False` on native",
    "body_iquat": "the body must be compiled with `simple=False` on native",
    "body_inertia": "the body must be compiled with `simple=False` on native",
    "geom_dataid": "-1 only where `geom_contype` and `geom_conaffinity` are zero",
    "geom_pos": _STATIC,
    "geom_quat": _STATIC,
    "geom_size": f"bounds of primitives follow; {_TENDON}",
    "geom_aabb": "kept for meshes",
    "geom_rbound": "kept for meshes",
    "geom_surfacevel": _ZERO,
    "geom_adhesion": _ZERO,
    "pair_adhesion": _ZERO,
    "site_pos": _TENDON,
    "site_quat": _TENDON,
    "eq_data": "anchors and poses that follow from others are overwritten",
    "actuator_armature": "not from zero",
    "actuator_history": _LAYOUT,
    "actuator_historyadr": _LAYOUT,
    "sensor_history": _LAYOUT,
    "sensor_historyadr": _LAYOUT,
    "opt.impratio": "on warp `opt.impratio_invsqrt`, its inverse square root",
    "opt.impratio_invsqrt": "on native `opt.impratio`",
}

_FREE = FieldBounds()
_NOT_NEGATIVE = FieldBounds(low=0.0)
_POSITIVE = FieldBounds(low=0.0, above_low=True)
_SHARE = FieldBounds(low=0.0, high=1.0)
_ORDERED = FieldBounds(ordered=True)


def _limits(used_where: str) -> FieldBounds:
    """Return the bounds of pairs of limits."""
    return FieldBounds(ordered=True, used_where=used_where)


# Element -> field, shape of one element, level on native, level on warp, bounds if there are any.
_Levels = RecomputeLevel | None
_Row = (
    tuple[str, tuple[int, ...], _Levels, _Levels]
    | tuple[str, tuple[int, ...], _Levels, _Levels, FieldBounds]
)
_TABLE: dict[str, tuple[_Row, ...]] = {
    "position": (
        ("qpos0", (), FULL, ZERO),
        ("qpos_spring", (), FULL, NONE),
    ),
    "body": (
        ("body_pos", (3,), FULL, ZERO),
        ("body_quat", (4,), FULL, ZERO),
        ("body_ipos", (3,), FULL, FULL),
        ("body_iquat", (4,), FULL, ZERO),
        ("body_mass", (), FULL, FULL, _POSITIVE),
        ("body_subtreemass", (), NONE, NONE),
        ("body_inertia", (3,), FULL, ZERO, _POSITIVE),
        ("body_invweight0", (2,), NONE, NONE),
        ("body_gravcomp", (), FULL, FIXED),
    ),
    "joint": (
        ("jnt_solref", (2,), NONE, NONE),
        ("jnt_solimp", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("jnt_pos", (3,), FULL, ZERO),
        ("jnt_axis", (3,), FULL, ZERO),
        ("jnt_stiffness", (), NONE, NONE, _NOT_NEGATIVE),
        ("jnt_stiffnesspoly", (2,), NONE, NONE),
        ("jnt_springyield", (), NONE, NONE),
        ("jnt_range", (2,), NONE, NONE, _limits("jnt_limited")),
        ("jnt_actfrcrange", (2,), NONE, NONE, _limits("jnt_actfrclimited")),
        ("jnt_margin", (), NONE, NONE),
    ),
    "dof": (
        ("dof_solref", (2,), NONE, NONE),
        ("dof_solimp", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("dof_frictionloss", (), NONE, NONE, _NOT_NEGATIVE),
        ("dof_armature", (), FULL, ZERO, _NOT_NEGATIVE),
        ("dof_damping", (), NONE, NONE, _NOT_NEGATIVE),
        ("dof_dampingpoly", (2,), NONE, NONE),
        ("dof_invweight0", (), NONE, NONE),
    ),
    "geom": (
        ("geom_dataid", (), FULL, FIXED),
        ("geom_matid", (), NONE, NONE),
        ("geom_solmix", (), NONE, NONE, _NOT_NEGATIVE),
        ("geom_solref", (2,), NONE, NONE),
        ("geom_solimp", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("geom_size", (3,), FULL, FIXED, _NOT_NEGATIVE),
        ("geom_aabb", (2, 3), FULL, NONE),
        ("geom_rbound", (), NONE, NONE),
        ("geom_pos", (3,), FULL, FIXED),
        ("geom_quat", (4,), FULL, FIXED),
        ("geom_friction", (3,), NONE, NONE, _NOT_NEGATIVE),
        ("geom_margin", (), FULL, NONE, _NOT_NEGATIVE),
        ("geom_gap", (), FULL, NONE, _NOT_NEGATIVE),
        ("geom_surfacevel", (6,), FULL, NONE),
        ("geom_adhesion", (), FULL, NONE),
        ("geom_rgba", (4,), NONE, NONE, _SHARE),
    ),
    "site": (
        ("site_pos", (3,), FULL, NONE),
        ("site_quat", (4,), FULL, NONE),
    ),
    "camera": (
        ("cam_pos", (3,), FULL, ZERO),
        ("cam_quat", (4,), FULL, ZERO),
        ("cam_poscom0", (3,), NONE, NONE),
        ("cam_pos0", (3,), NONE, NONE),
        ("cam_mat0", (3, 3), NONE, NONE),
        ("cam_fovy", (), NONE, NONE, FieldBounds(0.0, 180.0, above_low=True)),
        ("cam_intrinsic", (4,), NONE, NONE),
    ),
    "light": (
        ("light_type", (), NONE, NONE),
        ("light_castshadow", (), NONE, NONE),
        ("light_active", (), NONE, NONE),
        ("light_pos", (3,), FULL, ZERO),
        ("light_dir", (3,), FULL, ZERO),
        ("light_poscom0", (3,), NONE, NONE),
        ("light_pos0", (3,), NONE, NONE),
        ("light_dir0", (3,), NONE, NONE),
        ("light_attenuation", (3,), NONE, NONE, _NOT_NEGATIVE),
        ("light_cutoff", (), NONE, NONE, FieldBounds(0.0, 180.0)),
        ("light_exponent", (), NONE, NONE, _NOT_NEGATIVE),
        ("light_ambient", (3,), NONE, NONE, _NOT_NEGATIVE),
        ("light_diffuse", (3,), NONE, NONE, _NOT_NEGATIVE),
        ("light_specular", (3,), NONE, NONE, _NOT_NEGATIVE),
    ),
    "material": (
        ("mat_texid", (10,), NONE, NONE),
        ("mat_texuniform", (), NONE, NONE),
        ("mat_texrepeat", (2,), NONE, NONE, _POSITIVE),
        ("mat_emission", (), NONE, NONE, _NOT_NEGATIVE),
        ("mat_specular", (), NONE, NONE, _SHARE),
        ("mat_shininess", (), NONE, NONE, _SHARE),
        ("mat_rgba", (4,), NONE, NONE, _SHARE),
    ),
    "pair": (
        ("pair_solref", (2,), NONE, NONE),
        ("pair_solreffriction", (2,), NONE, NONE),
        ("pair_solimp", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("pair_margin", (), NONE, NONE, _NOT_NEGATIVE),
        ("pair_gap", (), NONE, NONE, _NOT_NEGATIVE),
        ("pair_adhesion", (), FULL, NONE),
        ("pair_friction", (5,), NONE, NONE, _NOT_NEGATIVE),
    ),
    "equality": (
        ("eq_solref", (2,), NONE, NONE),
        ("eq_solimp", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("eq_data", (12,), FULL, ZERO),
    ),
    "tendon": (
        ("tendon_solref_lim", (2,), NONE, NONE),
        ("tendon_solimp_lim", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("tendon_solref_fri", (2,), NONE, NONE),
        ("tendon_solimp_fri", (5,), NONE, NONE, _NOT_NEGATIVE),
        ("tendon_range", (2,), NONE, NONE, _limits("tendon_limited")),
        ("tendon_actfrcrange", (2,), NONE, NONE, _limits("tendon_actfrclimited")),
        ("tendon_margin", (), NONE, NONE, _NOT_NEGATIVE),
        ("tendon_stiffness", (), FULL, NONE, _NOT_NEGATIVE),
        ("tendon_stiffnesspoly", (2,), FULL, NONE),
        ("tendon_damping", (), FULL, NONE, _NOT_NEGATIVE),
        ("tendon_dampingpoly", (2,), FULL, NONE),
        ("tendon_armature", (), FULL, ZERO, _NOT_NEGATIVE),
        ("tendon_frictionloss", (), NONE, NONE, _NOT_NEGATIVE),
        ("tendon_lengthspring", (2,), NONE, NONE, _ORDERED),
        ("tendon_springyield", (), NONE, NONE),
        ("tendon_length0", (), NONE, NONE),
        ("tendon_invweight0", (), NONE, NONE),
    ),
    "actuator": (
        ("actuator_cranklength", (), FULL, ZERO, _NOT_NEGATIVE),
        ("actuator_dynprm", (10,), NONE, NONE),
        ("actuator_gainprm", (10,), NONE, NONE),
        ("actuator_biasprm", (10,), NONE, NONE),
        ("actuator_actrange", (2,), NONE, NONE, _limits("actuator_actlimited")),
        ("actuator_history", (2,), NONE, NONE),
        ("actuator_historyadr", (), NONE, NONE),
        ("actuator_delay", (), NONE, NONE, _NOT_NEGATIVE),
        ("actuator_damping", (), FULL, NONE, _NOT_NEGATIVE),
        ("actuator_dampingpoly", (2,), FULL, NONE),
        ("actuator_armature", (), FULL, ZERO, _NOT_NEGATIVE),
        ("actuator_forcerange", (2,), NONE, NONE, _limits("actuator_forcelimited")),
        ("actuator_gear", (6,), FULL, ZERO),
        ("actuator_acc0", (), NONE, NONE),
        ("actuator_lengthrange", (2,), NONE, NONE),
    ),
    "control": (("actuator_ctrlrange", (2,), NONE, NONE, _limits("actuator_ctrllimited")),),
    "sensor": (
        ("sensor_history", (2,), NONE, NONE),
        ("sensor_historyadr", (), NONE, NONE),
        ("sensor_delay", (), NONE, NONE, _NOT_NEGATIVE),
        ("sensor_interval", (2,), NONE, NONE),
    ),
    "option": (
        ("opt.timestep", (), NONE, NONE, _POSITIVE),
        ("opt.tolerance", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.ls_tolerance", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.noslip_tolerance", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.ccd_tolerance", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.sleep_tolerance", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.gravity", (3,), NONE, NONE),
        ("opt.wind", (3,), NONE, NONE),
        ("opt.magnetic", (3,), NONE, NONE),
        ("opt.density", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.viscosity", (), NONE, NONE, _NOT_NEGATIVE),
        ("opt.impratio", (), NONE, None, _POSITIVE),
        ("opt.impratio_invsqrt", (), None, NONE, _POSITIVE),
    ),
}

MODEL_FIELD_TABLE: dict[str, ModelField] = {
    name: ModelField(
        name,
        element,
        shape,
        native,
        warp,
        derived=name in _DERIVED,
        cached=name in _CACHED,
        bounds=bounds[0] if bounds else _FREE,
        note=_NOTES.get(name, ""),
    )
    for element, rows in _TABLE.items()
    for name, shape, native, warp, *bounds in rows
}


# Elements that tendons and actuators may attach to, and the kinds of attachment.
_AT_PATHS = {"geom_pos", "geom_quat", "geom_size", "site_pos", "site_quat"}
_WRAP = mujoco.mjtWrap
_TRN = mujoco.mjtTrn
_WRAPS = [int(_WRAP.mjWRAP_SITE), int(_WRAP.mjWRAP_SPHERE), int(_WRAP.mjWRAP_CYLINDER)]
_SITES = [int(_TRN.mjTRN_SITE), int(_TRN.mjTRN_SLIDERCRANK)]


def recompute_level(
    fields: set[str], engine: Literal["native", "warp"], mj_model: mujoco.MjModel
) -> RecomputeLevel:
    """Return the strongest level that a change of some fields requires on an engine.

    Args:
        fields: names of model fields; one that is not in the table counts as `none`.
        engine: column of the table.
        mj_model: the model, in which tendons may attach to geoms and sites.
    """
    known = [MODEL_FIELD_TABLE[field] for field in fields & MODEL_FIELD_TABLE.keys()]
    levels = [getattr(field, engine) or NONE for field in known]
    if fields & _AT_PATHS and (
        np.isin(mj_model.wrap_type, _WRAPS).any()
        or np.isin(mj_model.actuator_trntype, _SITES).any()
    ):
        levels.append(ZERO)
    return max(levels, default=NONE)


def derived_fields(level: RecomputeLevel) -> tuple[str, ...]:
    """Return the fields that recomputing a level may write."""
    return tuple(name for name, needed in _DERIVED.items() if needed <= level)

"""Copies of one world's model fields, for drawing."""

from __future__ import annotations

from collections.abc import Iterable, Set
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

import mujoco
import numpy as np

if TYPE_CHECKING:
    import torch

    from manyworlds.sim.views import DataView, ModelView

DataArrays: TypeAlias = "DataView | SimpleNamespace"
"""Per-world arrays by field: `sim.data`, or copies of some of its fields."""
ModelArrays: TypeAlias = "ModelView | SimpleNamespace"
"""Per-world model fields: `sim.model`, or copies of some of them."""

VIEWER_INERTIAL_FIELDS = frozenset({"body_ipos", "body_iquat", "body_mass", "body_inertia"})
"""Model fields from which inertia boxes are drawn."""

VIEWER_MODEL_FIELDS = frozenset(
    {
        "qpos0",
        "body_pos",
        "body_quat",
        "jnt_pos",
        "jnt_axis",
        "geom_dataid",
        "geom_matid",
        "geom_pos",
        "geom_quat",
        "geom_rgba",
        "geom_size",
        "geom_type",
        "site_matid",
        "site_pos",
        "site_quat",
        "site_rgba",
        "site_size",
        "mat_emission",
        "mat_reflectance",
        "mat_rgba",
        "mat_shininess",
        "mat_specular",
        "mat_texid",
        "mat_texrepeat",
        "cam_fovy",
        "cam_intrinsic",
        "cam_mat0",
        "cam_pos",
        "cam_pos0",
        "cam_poscom0",
        "cam_quat",
        "cam_sensorsize",
        "light_active",
        "light_ambient",
        "light_attenuation",
        "light_castshadow",
        "light_cutoff",
        "light_diffuse",
        "light_dir",
        "light_dir0",
        "light_exponent",
        "light_pos",
        "light_pos0",
        "light_poscom0",
        "light_specular",
        "light_type",
        "tendon_rgba",
        "tendon_width",
    }
)
"""Model fields that affect the image of a world."""

_MESH = mujoco.mjtGeom.mjGEOM_MESH


def disable_model_sameframe_shortcuts(model: mujoco.MjModel) -> None:
    """Make kinematics read the poses of all inertias, geoms and sites of a model.

    MuJoCo marks at compile time the ones that share the frame of their body or its inertia, and
    ignores their own poses from then on, even if they change.
    """
    model.body_sameframe[:] = 0
    model.geom_sameframe[:] = 0
    model.site_sameframe[:] = 0


def sync_model_fields(
    dst_model: mujoco.MjModel,
    sim_model: ModelArrays,
    fields: Set[str] | Iterable[str],
    env_idx: int,
) -> None:
    """Copy rows of one world into a model.

    Args:
        dst_model: model to write.
        sim_model: `sim.model`, whose fields have one row per world, or one for all.
        fields: names of the fields to copy.
        env_idx: index of the world.
    """
    names = set(fields)
    if "geom_dataid" in names:
        # Both are changed below for absent geoms, so both must be copied again.
        names |= {"geom_rgba", "geom_matid"}
    for name in sorted(names):
        rows = getattr(sim_model, name)
        world = env_idx
        if rows.shape[0] == 1:  # one row for all worlds
            world = 0
        row = as_numpy(rows[world]).reshape(-1)
        # `bvh_aabb` has rows for bodies only, which come first.
        getattr(dst_model, name).reshape(-1)[: row.size] = row
    if "geom_dataid" in names:
        absent = (dst_model.geom_dataid < 0) & (dst_model.geom_type == _MESH)
        dst_model.geom_matid[absent] = -1
        dst_model.geom_rgba[absent, 3] = 0.0


def copy_model_fields(dst: mujoco.MjModel, src: mujoco.MjModel) -> None:
    """Copy the fields that affect a drawing from one model to another of the same sizes."""
    for name in VIEWER_MODEL_FIELDS | VIEWER_INERTIAL_FIELDS:
        value = getattr(src, name, None)
        if isinstance(value, np.ndarray):
            getattr(dst, name)[...] = value


def as_numpy(value: torch.Tensor | np.ndarray) -> np.ndarray:
    """Return a tensor or an array as an array of the same shape on the CPU."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value.detach().cpu().numpy()

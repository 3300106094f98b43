"""Validation of `geom_dataid` rows: geoms without a mesh must not collide."""

from __future__ import annotations

import mujoco
import numpy as np

# Writes to these fields can make a geom without a mesh collide.
ABSENCE_FIELDS = frozenset({"geom_dataid", "geom_type", "geom_contype", "geom_conaffinity"})

_WITH_DATA = [
    int(mujoco.mjtGeom.mjGEOM_MESH),
    int(mujoco.mjtGeom.mjGEOM_HFIELD),
    int(mujoco.mjtGeom.mjGEOM_SDF),
]


def check_absent_geoms(mj_model: mujoco.MjModel, rows: dict[str, np.ndarray]) -> None:
    """Check that no colliding mesh geom lacks its mesh, which would crash the process.

    Args:
        mj_model: the compiled model.
        rows: expanded model fields, each `(num_envs, ngeom)`; `geom_dataid` is among them.

    Raises:
        ValueError: a geom collides without a mesh; the message names the world and the geom.
    """
    contype = rows.get("geom_contype", mj_model.geom_contype)
    conaffinity = rows.get("geom_conaffinity", mj_model.geom_conaffinity)
    paired = np.isin(np.arange(mj_model.ngeom), [mj_model.pair_geom1, mj_model.pair_geom2])
    absent = np.isin(rows.get("geom_type", mj_model.geom_type), _WITH_DATA) & (
        rows["geom_dataid"] < 0
    )
    bad = np.argwhere(absent & ((contype != 0) | (conaffinity != 0) | paired))
    if not len(bad):
        return
    world, geom = bad[0].tolist()
    name = mj_model.geom(geom).name or geom
    remedy = "zero geom_contype and geom_conaffinity there"
    if paired[geom]:
        remedy = "remove the pair"
    raise ValueError(
        f"Geom '{name}' has geom_dataid -1 in world {world} but collides: it "
        f"must not without a mesh, so {remedy}, or give it a mesh."
    )

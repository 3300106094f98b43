"""Sizes and masses of models that are probably those of another unit."""

from __future__ import annotations

import mujoco
import numpy as np

LARGE = 20.0
"""Size from which on a shape is probably in millimeters [m]."""
_SMALL = 1e-3
_HEAVY = 1e5


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


def _geom(model: mujoco.MjModel, geom: int) -> str:
    name = model.geom(geom).name
    if name:
        return f"the geom '{name}'"
    return f"a geom of the body '{model.body(model.geom_bodyid[geom]).name}'"

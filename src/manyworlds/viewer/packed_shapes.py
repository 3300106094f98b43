"""Shapes of a scene as arrays, for a page in another process."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

PackedShapes = dict[str, Any]
"""Arrays with a row for each shape, by the name of the field of `mujoco.MjvGeom`, and `labels`."""

MOST_SHAPES = 4000
"""Largest number of shapes of a scene."""
_FIELDS = ("type", "dataid", "category", "pos", "size", "mat", "rgba")


def pack_shapes(scene: mujoco.MjvScene) -> PackedShapes:
    """Return arrays of the geoms of a scene, with a row each, and their labels by index."""
    geoms = scene.geoms[: scene.ngeom]
    rows = {name: np.array([getattr(geom, name) for geom in geoms]) for name in _FIELDS}
    labels = {str(i): geom.label for i, geom in enumerate(geoms) if geom.label}
    return {**rows, "labels": labels}


def unpack_shapes(packed: PackedShapes, scene: mujoco.MjvScene, offset: np.ndarray) -> None:
    """Make the shapes that `pack_shapes` returned the geoms of a scene.

    Args:
        packed: the shapes.
        scene: scene of the same model, with room for them.
        offset: displacement of all shapes [m], shape [3].
    """
    scene.ngeom = len(packed["type"])
    labels = packed["labels"]
    for i, geom in enumerate(scene.geoms[: scene.ngeom]):
        for name in _FIELDS[:3]:
            setattr(geom, name, int(packed[name][i]))
        geom.pos[:] = packed["pos"][i] + offset
        for name in _FIELDS[4:]:
            getattr(geom, name)[:] = packed[name][i]
        geom.label = labels.get(str(i), "")

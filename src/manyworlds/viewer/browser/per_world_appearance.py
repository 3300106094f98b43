"""Appearance of geoms and sites that differs between worlds."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser.geom_meshes import DEFAULT_RGBA, drawn_size
from manyworlds.viewer.browser.shapes import Instances, Shape, compose, pieces, rotate
from manyworlds.viewer.browser.textures import COLOR_ROLES
from manyworlds.viewer.model_sync import VIEWER_MODEL_FIELDS, as_numpy

if TYPE_CHECKING:
    from manyworlds.viewer.model_sync import ModelArrays

_FIELDS = {
    kind: tuple(sorted(name for name in VIEWER_MODEL_FIELDS if name.startswith(f"{kind}_")))
    for kind in ("geom", "site")
}
_MATERIAL_FIELDS = ("mat_rgba", "mat_texid")
_MESH = mujoco.mjtGeom.mjGEOM_MESH
_EPSILON = 1e-5
_MOST_LOOKS = 64
"""Number of looks of a geom with a texture, each a mesh of its own, from which on its texture is
left out."""


@dataclass(frozen=True)
class _Piece:
    """Shape of one geom or site, in the worlds where it looks like this."""

    shape: Shape
    body_id: int
    worlds: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    scales: np.ndarray
    rgba: np.ndarray


class PerWorldAppearance:
    """Appearance of the worlds shown, by their model rows.

    A geom or site whose row differs from the compiled model in any world shown is *varied*, and
    stays so: it is drawn separately, with color, size and pose from each world's rows. All others
    may be merged into one mesh per body.

    Args:
        model: the compiled model.
        sim_model: `sim.model`, or None if nothing differs.
        expanded_fields: the fields that differ.
    """

    def __init__(
        self, model: mujoco.MjModel, sim_model: ModelArrays | None, expanded_fields: Set[str] | None
    ) -> None:
        self._model = model
        self._sim_model = sim_model
        known = {*_FIELDS["geom"], *_FIELDS["site"], *_MATERIAL_FIELDS}
        self._watched = sorted(known & (expanded_fields or set()))
        self._rows: dict[str, np.ndarray] = {}
        self.varied: dict[str, np.ndarray] = {
            "geom": np.zeros(model.ngeom, bool),
            "site": np.zeros(model.nsite, bool),
        }

    def read(self, worlds: slice) -> bool:
        """Read the rows of the worlds shown; return True if any differs from the last time."""
        if self._sim_model is None or not self._watched:
            return False
        rows = {name: as_numpy(getattr(self._sim_model, name)[worlds]) for name in self._watched}
        same = all(
            name in self._rows
            and np.array_equal(row, self._rows[name], equal_nan=row.dtype.kind == "f")
            for name, row in rows.items()
        )
        if same:
            return False
        self._rows = {name: row.copy() for name, row in rows.items()}
        self._note_varied()
        return True

    def instances(
        self, kind: str, ids: list[int], positions: np.ndarray, quaternions: np.ndarray
    ) -> Iterator[tuple[Shape, Instances]]:
        """Return the instances of the shapes of varied geoms or sites.

        Args:
            kind: 'geom' or 'site'.
            ids: their indices; those that are not varied are left out.
            positions: of all bodies of the worlds shown [m], shape (count, nbody, 3).
            quaternions: of all bodies of the worlds shown, shape (count, nbody, 4).
        """
        for element in ids:
            if not self.varied[kind][element]:
                continue
            for piece in self._pieces(kind, element, len(positions)):
                position, quaternion = compose(
                    positions[piece.worlds, piece.body_id],
                    quaternions[piece.worlds, piece.body_id],
                    piece.positions,
                    piece.quaternions,
                )
                yield (
                    piece.shape,
                    Instances(position, quaternion, piece.scales, piece.rgba, piece.worlds),
                )

    def _differs(self, name: str) -> np.ndarray:
        """Return which elements have another value of a field in some world, shape (n,)."""
        rows = self._rows[name]
        compiled = getattr(self._model, name)
        differs = np.abs(rows - compiled.reshape(1, *rows.shape[1:])) > _EPSILON
        return differs.reshape(*differs.shape[:2], -1).any(axis=(0, 2))

    def _note_varied(self) -> None:
        """Note the elements that look different in some world, or whose material does."""
        model = self._model
        for kind, fields in _FIELDS.items():
            varied = self.varied[kind]
            for name in set(fields) & self._rows.keys():
                varied |= self._differs(name)
            materials = np.zeros(model.nmat + 1, bool)  # the last one is for no material
            for name in set(_MATERIAL_FIELDS) & self._rows.keys():
                materials[:-1] |= self._differs(name)
            varied |= materials[getattr(model, f"{kind}_matid")]

    def _row(self, name: str, element: int, count: int) -> np.ndarray:
        """Return a field of an element in each world."""
        rows = self._rows.get(name)
        if rows is None:
            row = getattr(self._model, name)[element][None]
        else:
            row = rows[:, element]
        return np.broadcast_to(row, (count, *row.shape[1:]))

    def _pieces(self, kind: str, element: int, count: int) -> list[_Piece]:
        """Return how an element is drawn: a piece for each shape that it has in some world."""
        model = self._model
        types = self._row(f"{kind}_type", element, count).astype(int)
        position = self._row(f"{kind}_pos", element, count)
        quaternion = self._row(f"{kind}_quat", element, count)
        sizes = self._row(f"{kind}_size", element, count)
        material = self._row(f"{kind}_matid", element, count)
        mesh_id = np.full(count, -1)
        if kind == "geom":
            mesh_id = np.where(types == _MESH, self._row("geom_dataid", element, count), -1)
        rgba, textured = self._colors(kind, element, material, count)
        body = int(getattr(model, f"{kind}_bodyid")[element])
        found = []
        for geom_type, one_mesh in sorted(set(zip(types.tolist(), mesh_id.tolist(), strict=True))):
            here = (types == geom_type) & (mesh_id == one_mesh) & (rgba[:, 3] > 0)
            printed = here & textured
            looks = self._looks(element, geom_type, one_mesh, sizes, printed, rgba, material)
            if len(looks) > _MOST_LOOKS:
                looks = {}
                printed = np.zeros_like(here)
            for shape, own in looks.items():
                scale = _stretched(shape, sizes)
                values = (position, quaternion, scale, rgba)
                found.append(_Piece(shape, body, np.array(own), *(v[own] for v in values)))
            worlds = np.flatnonzero(here & ~printed)
            if not len(worlds):
                continue
            for shape, along, scale in pieces(geom_type, one_mesh, drawn_size(geom_type, sizes)):
                offset = rotate(quaternion, np.column_stack([0 * along, 0 * along, along]))
                values = (position + offset, quaternion, scale, rgba)
                found.append(_Piece(shape, body, worlds, *(v[worlds] for v in values)))
        return found

    def _colors(
        self, kind: str, element: int, material: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the color in each world, and whether a texture replaces it there."""
        rgba = np.array(self._row(f"{kind}_rgba", element, count), np.float64)
        textured = np.zeros(count, bool)
        for one in np.unique(material[material >= 0]).tolist():
            here = material == one
            # As in MuJoCo, an element's own color takes precedence if it is not the default.
            plain = here & np.isclose(rgba, DEFAULT_RGBA).all(axis=1)
            rgba[plain] = self._row("mat_rgba", one, count)[plain]
            if kind == "geom":
                textures = self._row("mat_texid", one, count)[:, COLOR_ROLES]
                textured |= here & (textures >= 0).any(axis=1)
        return rgba, textured

    def _looks(
        self,
        geom: int,
        kind: int,
        mesh: int,
        sizes: np.ndarray,
        here: np.ndarray,
        rgba: np.ndarray,
        material: np.ndarray,
    ) -> dict[Shape, list[int]]:
        """Return the worlds with each look of a geom with a texture."""
        compiled = self._model.geom_size[geom]
        if kind == self._model.geom_type[geom] and compiled.any():
            sizes = np.broadcast_to(compiled, sizes.shape)
        looks: dict[Shape, list[int]] = {}
        for world in np.flatnonzero(here).tolist():
            one = int(material[world])
            look = (
                "textured",
                geom,
                kind,
                mesh,
                tuple(sizes[world].tolist()),
                one,
                tuple(np.round(rgba[world], 6).tolist()),
                tuple(self._row("mat_texid", one, len(here))[world].tolist()),
            )
            looks.setdefault(look, []).append(world)
        return looks


def _stretched(look: Shape, sizes: np.ndarray) -> np.ndarray:
    """Return the scale of a textured shape in each world; its texture is stretched, too."""
    _, _, kind, mesh, base, *_ = look
    if mesh >= 0:
        return np.ones((len(sizes), 3))
    own = drawn_size(kind, np.array(base)[None])
    return drawn_size(kind, sizes) / np.where(own > 0, own, 1.0)

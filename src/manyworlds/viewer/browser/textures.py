"""Textures of materials: images, and their places on surfaces as MuJoCo renders them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser.surfaces import Surface
from manyworlds.viewer.browser.tones import surface_texture

if TYPE_CHECKING:
    from PIL.Image import Image

COLOR_ROLES = (int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA))
"""Places of the textures in a material that have its color."""
_2D = mujoco.mjtTexture.mjTEXTURE_2D
_LEAST_FACES = 400
"""Number of triangles from which on the sides of a cube are printed on them without distortion."""
# For each side of a cube (+x, -x, +y, ...): the direction's components that count along the
# image's columns and rows, and their signs.
# Source: OpenGL 4.6, section 8.13, cube map texture selection.
_CUBE_COLUMN = (np.array([2, 2, 0, 0, 0, 0]), np.array([-1, 1, 1, 1, 1, -1]))
_CUBE_ROW = (np.array([1, 1, 2, 2, 1, 1]), np.array([-1, -1, 1, -1, -1, -1]))


def texture_of(model: mujoco.MjModel, material: int) -> int:
    """Return the texture with a material's color; -1 for none."""
    if material < 0:
        return -1
    return int(max(model.mat_texid[material, role] for role in COLOR_ROLES))


def is_cube(model: mujoco.MjModel, texture: int) -> bool:
    """Return True if a texture surrounds things, instead of being printed on them."""
    return int(model.tex_type[texture]) != _2D


def pixels(model: mujoco.MjModel, texture: int) -> np.ndarray:
    """Return the image of a texture, uint8, shape (height, width, channels)."""
    height = int(model.tex_height[texture])
    width = int(model.tex_width[texture])
    channels = int(model.tex_nchannel[texture])
    start = int(model.tex_adr[texture])
    values = model.tex_data[start : start + height * width * channels]
    return values.reshape(height, width, channels)


def image_of(model: mujoco.MjModel, texture: int) -> Image:
    """Return the image of a texture; its first row is at the bottom, as trimesh counts."""
    from PIL import Image

    rows = np.flipud(surface_texture(pixels(model, texture)))
    if rows.shape[2] == 1:
        rows = rows[..., 0]
    return Image.fromarray(np.ascontiguousarray(rows))


def place_texture(
    model: mujoco.MjModel, material: int, surface: Surface, size: np.ndarray
) -> Surface:
    """Return a surface with the coordinates that a material's texture has on it.

    Args:
        model: the model.
        material: a material with a texture.
        surface: surface of a geom: a unit shape, or the vertices of a mesh or a height field with
            the texture coordinates of a mesh, if it has any; otherwise NaN.
        size: sizes of the geom as an `MjvGeom` has them, shape (3,).
    """
    uniform = bool(model.mat_texuniform[material])
    texture = texture_of(model, material)
    if is_cube(model, texture):
        directions = surface.vertices
        if uniform:
            directions = directions * size
        return _on_cube(surface, directions, model, texture)
    repeat = model.mat_texrepeat[material]
    infinite = size[:2].min() <= 0
    if infinite or not np.isfinite(surface.uv).all():
        along = surface.vertices[:, :2]
        if not uniform and not infinite:
            along = along / size[:2]
        uv = 0.5 + 0.5 * repeat * along * (1.0, -1.0)
    else:
        uv = surface.uv * repeat
        if uniform:
            uv = uv * size[:2]
    return Surface(surface.vertices, surface.faces, uv)


def _on_cube(
    surface: Surface, directions: np.ndarray, model: mujoco.MjModel, texture: int
) -> Surface:
    """Divide triangles so that each shows one side of a cube, and place this side on it."""
    rows = np.concatenate([surface.vertices, directions], axis=1)
    faces = surface.faces
    while 0 < len(faces) < _LEAST_FACES:
        rows, faces = _quartered(rows, faces)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        for sign in (-1.0, 1.0):
            rows, faces = _split(rows, faces, rows[:, 3 + i] + sign * rows[:, 3 + j])
    corners = rows[faces]  # (m, 3, 6)
    middle = corners[:, :, 3:].mean(axis=1)
    axis = np.abs(middle).argmax(axis=1)
    face = np.arange(len(faces))
    side = 2 * axis + (middle[face, axis] < 0)
    at = corners[:, :, 3:]
    depth = np.maximum(np.abs(at[face, :, axis]), 1e-12)
    width = int(model.tex_width[texture])
    margin = 0.5 / width  # so that a side does not mix with the one below it in the image
    u, v = (
        np.clip(
            0.5 + 0.5 * sign[side][:, None] * at[face, :, index[side]] / depth, margin, 1 - margin
        )
        for index, sign in (_CUBE_COLUMN, _CUBE_ROW)
    )
    if int(model.tex_height[texture]) == 6 * width:  # otherwise, all sides share one image
        v = (v + side[:, None]) / 6.0
    return Surface(
        corners[:, :, :3].reshape(-1, 3),
        np.arange(3 * len(faces)).reshape(-1, 3),
        np.stack([u, v], axis=-1).reshape(-1, 2),
    )


def _quartered(rows: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each triangle into four."""
    a, b, c = (rows[faces[:, i]] for i in range(3))
    new = np.concatenate([rows, (a + b) / 2, (b + c) / 2, (c + a) / 2])
    p, q, r = (len(rows) + i * len(faces) + np.arange(len(faces)) for i in range(3))
    u, v, w = faces.T
    pieces = [np.column_stack(piece) for piece in ((u, p, r), (p, v, q), (r, q, w), (p, q, r))]
    return new, np.concatenate(pieces)


def _split(
    rows: np.ndarray, faces: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Divide triangles where values, one of each vertex, change their sign."""
    above = values >= -1e-9 * np.abs(rows).max(initial=1e-9)
    count = above[faces].sum(axis=1)
    crossing = (count == 1) | (count == 2)
    if not crossing.any():
        return rows, faces
    cut = faces[crossing]
    # The vertex that is alone on its side comes first.
    alone = (above[cut] == (count[crossing] == 1)[:, None]).argmax(axis=1)
    a, b, c = (cut[np.arange(len(cut)), (alone + i) % 3] for i in range(3))
    new = []
    for other in (b, c):
        share = np.clip(values[a] / (values[a] - values[other]), 0.0, 1.0)[:, None]
        new.append(rows[a] + share * (rows[other] - rows[a]))
    p = len(rows) + np.arange(len(cut))
    q = p + len(cut)
    pieces = [np.column_stack(piece) for piece in ((a, p, q), (p, b, c), (p, c, q))]
    return np.concatenate([rows, *new]), np.concatenate([faces[~crossing], *pieces])

"""Heights of a surface on a grid, sampled from arrays, images, functions, meshes and models."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.spec.load import load_spec
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.meshes import obj_file, read_solid, weld
from manyworlds.spec.references import copy_spec
from manyworlds.spec.uploads import MODEL_SUFFIXES
from manyworlds.terrains.utils import interpolate
from manyworlds.utils.cache import ArrayCache, content_key
from manyworlds.utils.extras import require_extra
from manyworlds.validation.names import match_whole

HeightFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
HeightSource = np.ndarray | str | Path | HeightFunction | mujoco.MjSpec | mujoco.MjModel
"""Things that have heights; see `HfSampledTerrainCfg.source`."""
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
_CACHE = ArrayCache("height_fields")
_MESH = mujoco.mjtGeom.mjGEOM_MESH
_OFF_GRID = (1.618e-5, 1.414e-5)  # along x and y, as shares of the distance between samples
_VERSION = 1  # of the samples; raise it when they change


@dataclass(frozen=True, kw_only=True)
class GeomFilter:
    """Selection of the geoms that rays can hit."""

    groups: Sequence[int] | None = None
    """Groups; None for all."""
    include: Sequence[str] = ()
    """Regular expressions of names of geoms or of their bodies; empty for all."""
    exclude: Sequence[str] = ()
    """Likewise, of geoms that are left out."""
    match: Callable[[str, Sequence[str]], list[int]] = field(default=match_whole, repr=False)
    """Function that returns the indices of the names that an expression matches."""

    def mask(self, model: mujoco.MjModel) -> np.ndarray:
        """Return True for each selected geom, shape [ngeom].

        Raises:
            ValueError: an expression matches nothing, or no geom is selected.
        """
        chosen = np.ones(model.ngeom, bool)
        if self.groups is not None:
            chosen &= np.isin(model.geom_group, self.groups)
        if self.include:
            chosen &= self._named(model, self.include)
        if self.exclude:
            chosen &= ~self._named(model, self.exclude)
        if not chosen.any():
            raise ValueError(f"No geom can be sampled with {self}: select others.")
        return chosen

    def _named(self, model: mujoco.MjModel, patterns: Sequence[str]) -> np.ndarray:
        """Return a mask of the geoms that patterns match, by their names or by those of bodies."""
        geoms = [model.geom(i).name for i in range(model.ngeom)]
        bodies = [model.body(body).name for body in model.geom_bodyid]
        found = np.zeros(model.ngeom, bool)
        for pattern in patterns:
            ids = [*self.match(pattern, geoms), *self.match(pattern, bodies)]
            if not ids:
                raise ValueError(f"No geom or body has a name like '{pattern}'.")
            found[ids] = True
        return found


def sample_heights(
    source: HeightSource,
    x: np.ndarray,
    y: np.ndarray,
    *,
    fill: float = 0.0,
    image_height: float = 1.0,
    geoms: GeomFilter | None = None,
) -> np.ndarray:
    """Sample heights on a grid.

    Args:
        source: see `HfSampledTerrainCfg.source`.
        x: positions of the columns, equally spaced and ascending [m], shape [num_x].
        y: positions of the rows, likewise [m], shape [num_y].
        fill: height where the source has none [m].
        image_height: height of white in an image [m].
        geoms: geoms of a model to sample; None for all.

    Returns:
        Heights [m], shape [num_y, num_x]; the first row is that of the lowest y.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the source has no heights, or they are not finite.
    """
    if isinstance(source, str | Path):
        source = _from_file(Path(source), image_height)
    if isinstance(source, np.ndarray):
        heights = _resampled(source, len(x), len(y))
    elif isinstance(source, mujoco.MjSpec):
        model = copy_spec(source).compile()
        heights = _cached_rays(model, x, y, geoms or GeomFilter())
    elif isinstance(source, mujoco.MjModel):
        heights = _cached_rays(source, x, y, geoms or GeomFilter())
    elif callable(source):
        heights = _of_function(source, x, y)
    else:
        raise TypeError(
            f"Heights cannot be sampled from {type(source).__name__}: give an array, a file, a "
            "function of x and y, an MjSpec or an MjModel."
        )
    heights = np.where(np.isnan(heights), fill, heights)
    if not np.isfinite(heights).all():
        raise ValueError("Heights must be finite, or NaN where there is no surface.")
    return heights


def cast_rays(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    x: np.ndarray,
    y: np.ndarray,
    chosen: np.ndarray,
) -> np.ndarray:
    """Return the heights of the highest surfaces, found by vertical rays.

    Args:
        model: the model; not modified.
        data: its state, with the poses of geoms; not modified.
        x: positions of the columns [m], shape [num_x].
        y: positions of the rows [m], shape [num_y].
        chosen: True for each geom to sample, at least one, shape [ngeom].

    Returns:
        Heights [m], shape [num_y, num_x]; NaN where a ray hits nothing.
    """
    model = copy.copy(model)
    model.geom_group[:] = np.where(chosen, 0, 1)
    model.geom_rgba[chosen, 3] = 1.0  # rays ignore invisible geoms
    model.geom_matid[chosen] = -1
    reach = np.where(model.geom_rbound > 0, model.geom_rbound, 0.0)
    top = float((data.geom_xpos[:, 2] + reach)[chosen].max()) + 1.0
    groups = np.array([1, 0, 0, 0, 0, 0], np.uint8)
    down = np.array([0.0, 0.0, -1.0])
    hit = np.full(1, -1, np.int32)
    heights = np.full((len(y), len(x)), np.nan)
    # A ray that meets an edge of a mesh exactly may miss both triangles. With meshes, rays start
    # slightly off the grid, toward its center, where a surface that ends with the grid still is.
    off_grid = (0.0, 0.0)
    if (model.geom_type[chosen] == _MESH).any():
        off_grid = _OFF_GRID
    inward = [np.sign(axis.mean() - axis) * np.diff(axis).min() for axis in (x, y)]
    off_x, off_y = (share * axis for share, axis in zip(off_grid, inward, strict=True))
    start = np.array([0.0, 0.0, top])
    for row, col in np.ndindex(heights.shape):
        for sign in (1.0, -1.0):
            start[:2] = x[col] + sign * off_x[col], y[row] + sign * off_y[row]
            distance = mujoco.mj_ray(model, data, start, down, groups, True, -1, hit)
            if distance >= 0:
                heights[row, col] = top - distance
                break
    return heights


def _cached_rays(
    model: mujoco.MjModel, x: np.ndarray, y: np.ndarray, geoms: GeomFilter
) -> np.ndarray:
    """Cast rays at the model's initial state, unless the result is in the cache."""
    content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, content)
    key = content_key((_VERSION, mujoco.__version__, geoms), content, x, y)
    kept = _CACHE.read(key)
    if kept is not None and len(kept) == 1 and kept[0].shape == (len(y), len(x)):
        return kept[0]
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    heights = cast_rays(model, data, x, y, geoms.mask(model))
    _CACHE.keep(key, [heights])
    return heights


def _from_file(path: Path, image_height: float) -> np.ndarray | mujoco.MjSpec:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}' to sample heights from.")
    suffix = path.suffix.lower()
    if suffix in MESH_SUFFIXES:
        return _mesh_spec(path)
    if suffix in MODEL_SUFFIXES:
        return load_spec(path)[0]
    if suffix not in IMAGE_SUFFIXES:
        known = ", ".join((*IMAGE_SUFFIXES, *MESH_SUFFIXES, *MODEL_SUFFIXES))
        raise ValueError(f"Heights cannot be sampled from '{path}': use one of {known}.")
    image = require_extra("PIL.Image", "lab")
    try:
        with image.open(path) as opened:
            white = 65535.0
            if not opened.mode.startswith(("I", "F")):
                white = 255.0
                opened = opened.convert("L")
            pixels = np.asarray(opened, float)
    except (OSError, ValueError, image.DecompressionBombError) as error:
        raise ValueError(f"The image '{path}' cannot be read: {error}") from error
    return pixels[::-1] / white * image_height  # its first row is the upper one


def _mesh_spec(path: Path) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.assets["surface.obj"] = obj_file(*weld(read_solid(path)))
    mesh = spec.add_mesh(name="surface", file="surface.obj")
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # that open surfaces have, too
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH, meshname="surface", contype=0, conaffinity=0
    )
    return spec


def _resampled(heights: np.ndarray, num_x: int, num_y: int) -> np.ndarray:
    heights = np.asarray(heights, float)
    if np.isinf(heights).any():
        raise ValueError("An array of heights must not have infinite values: NaN is no surface.")
    if heights.ndim != 2 or min(heights.shape) < 2:
        raise ValueError(
            "An array of heights must have at least two rows along y and two columns along x, got "
            f"the shape {heights.shape}."
        )
    if heights.shape == (num_y, num_x):
        return heights
    rows = np.linspace(0.0, heights.shape[0] - 1, num_y)
    cols = np.linspace(0.0, heights.shape[1] - 1, num_x)
    return interpolate(heights, rows[:, None], cols[None])


def _of_function(function: HeightFunction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    columns, rows = np.meshgrid(x, y)
    heights = np.asarray(function(columns, rows), float)
    if heights.shape not in ((), columns.shape):
        raise ValueError(
            f"A function of heights must return an array of the shape {columns.shape} of its "
            f"arguments, got {heights.shape}."
        )
    return np.broadcast_to(heights, columns.shape)

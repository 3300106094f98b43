"""Helpers that several kinds of terrain share: boxes, borders, and flat patches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

if TYPE_CHECKING:
    from manyworlds.terrains.terrain_generator import FlatPatchSamplingCfg, TerrainGeometry

Point = Sequence[float] | np.ndarray


def lerp(bounds: tuple[float, float], share: float) -> float:
    """Interpolate linearly between two bounds: the first at 0, the second at 1."""
    return bounds[0] + share * (bounds[1] - bounds[0])


def spiral_origins(world_ids: Sequence[int], spacing: float) -> np.ndarray:
    """Return positions on a square spiral about the origin [m], shape [n, 3].

    The position of a world depends on its id alone. Ring k has the worlds from (2k - 1)^2 on, on
    four sides of 2k worlds each.

    Args:
        world_ids: ids of the n worlds.
        spacing: distance between neighbors [m].
    """
    world = np.asarray(world_ids)
    ring = ((np.sqrt(world) + 1.0) / 2.0).astype(np.int64)
    side = np.maximum(2 * ring, 1)
    place = world - (2 * ring - 1).clip(0) ** 2
    along = place % side - ring + 1  # from -ring + 1 to ring
    across = np.where(ring == 0, 0, ring)
    along = np.where(ring == 0, 0, along)
    sides = [place // side == k for k in range(4)]
    origins = np.zeros((len(world), 3))
    origins[:, 0] = spacing * np.select(sides, [across, -along, -across, along])
    origins[:, 1] = spacing * np.select(sides, [along, across, -along, -across])
    return origins


def add_box(body: mujoco.MjsBody, lower: Point, upper: Point) -> mujoco.MjsGeom:
    """Add the box between two opposite corners [m]."""
    lower = np.asarray(lower, float)
    upper = np.asarray(upper, float)
    return body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=((lower + upper) / 2).tolist(),
        size=((upper - lower) / 2).tolist(),
    )


def add_block(
    body: mujoco.MjsBody, center: Point, size: Point, bottom: float, top: float
) -> mujoco.MjsGeom:
    """Add an upright box from the height `bottom` to `top`, with a footprint of `size` [m]."""
    middle = np.asarray(center, float)[:2]
    half = np.asarray(size, float) / 2
    return add_box(body, [*middle - half, bottom], [*middle + half, top])


def make_plane(
    body: mujoco.MjsBody,
    size: tuple[float, float],
    height: float,
    center_zero: bool = True,
    plane_thickness: float = 1.0,
) -> list[mujoco.MjsGeom]:
    """Add a flat floor: one box whose top is at `height`.

    Args:
        body: the body to which the floor is added.
        size: extent along x and y [m].
        height: height of the surface [m].
        center_zero: put the floor's center at (0, 0), instead of its lower corner.
        plane_thickness: thickness of the floor [m].
    """
    center = np.zeros(2) if center_zero else np.asarray(size) / 2
    return [add_block(body, center, size, height - plane_thickness, height)]


def make_border(
    body: mujoco.MjsBody,
    size: tuple[float, float],
    inner_size: tuple[float, float],
    height: float,
    position: tuple[float, float, float],
) -> list[mujoco.MjsGeom]:
    """Add a rectangular ring of up to four boxes.

    Args:
        body: the body to which the ring is added.
        size: outer extent along x and y [m].
        inner_size: extent of the opening [m]; sides of zero width are omitted.
        height: extent along z [m].
        position: center of the ring [m].

    Raises:
        ValueError: the opening is larger than the ring.
    """
    if inner_size[0] > size[0] or inner_size[1] > size[1]:
        raise ValueError(
            f"A border of size {tuple(size)} cannot have an opening of {tuple(inner_size)}: "
            "make inner_size at most size."
        )
    x, y, z = position
    bottom = position[2] - height / 2
    width_x = (size[0] - inner_size[0]) / 2
    width_y = (size[1] - inner_size[1]) / 2
    # The sides along x are as long as the ring; those along y are between them.
    sides = [((x, y + s * (inner_size[1] + width_y) / 2), (size[0], width_y)) for s in (-1, 1)] + [
        ((x + s * (inner_size[0] + width_x) / 2, y), (width_x, inner_size[1])) for s in (-1, 1)
    ]
    return [
        add_block(body, center, extent, bottom, z + height / 2)
        for center, extent in sides
        if min(extent) > 1e-9
    ]


def geom_rotation(geom: mujoco.MjsGeom) -> np.ndarray:
    """Return the geom's rotation matrix in its body's frame, shape [3, 3]."""
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, geom.quat)
    return rotation.reshape(3, 3)


def height_map(
    geometries: Sequence[TerrainGeometry], size: tuple[float, float], resolution: float
) -> np.ndarray:
    """Return the height of the surface at multiples of `resolution` from the cell's corner.

    Args:
        geometries: boxes in any orientation, and height fields, in the cell's frame.
        size: the cell's extent along x and y [m].
        resolution: distance between samples [m].

    Returns:
        Heights [m], shape [num_y, num_x]; -inf where there is no geometry.

    Raises:
        ValueError: a geom is neither a box nor a height field.
    """
    x, y = (np.arange(math.floor(length / resolution + 1e-6) + 1) * resolution for length in size)
    heights = np.full((len(y), len(x)), -np.inf)
    for geometry in geometries:
        geom = geometry.geom
        if geom is None:
            continue
        if geom.type == mujoco.mjtGeom.mjGEOM_BOX:
            half = np.abs(geom_rotation(geom)) @ geom.size
            surface = _box_height
        elif geom.type == mujoco.mjtGeom.mjGEOM_HFIELD and geometry.hfield is not None:
            half = geometry.hfield.size[:3]
            surface = _hfield_height
        else:
            raise ValueError(
                f"Flat patches are found on boxes and height fields, but geom '{geom.name}' is "
                f"a {geom.type.name}: remove flat_patch_sampling or fill "
                "TerrainOutput.flat_patches yourself."
            )
        rows = np.flatnonzero(np.abs(y - geom.pos[1]) <= half[1] + 1e-9)
        cols = np.flatnonzero(np.abs(x - geom.pos[0]) <= half[0] + 1e-9)
        if len(rows) and len(cols):
            part = heights[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
            at_x = x[cols][None, :] - geom.pos[0]
            at_y = y[rows][:, None] - geom.pos[1]
            np.maximum(part, geom.pos[2] + surface(geometry, at_x, at_y), out=part)
    return heights


def _box_height(geometry: TerrainGeometry, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the height at which vertical lines at (x, y) leave a box, relative to its center.

    The result is in meters, and -inf for lines that miss the box.
    """
    assert geometry.geom is not None
    rotation = geom_rotation(geometry.geom)
    size = geometry.geom.size
    enter = np.full(np.broadcast_shapes(x.shape, y.shape), -np.inf)
    leave = -enter
    # A line is inside the box where it is between all three pairs of faces.
    for axis in range(3):
        start = rotation[0, axis] * x + rotation[1, axis] * y
        slope = rotation[2, axis]
        if abs(slope) < 1e-9:
            leave = np.where(np.abs(start) <= size[axis] + 1e-9, leave, -np.inf)
            continue
        enter = np.maximum(enter, (-np.sign(slope) * size[axis] - start) / slope)
        leave = np.minimum(leave, (np.sign(slope) * size[axis] - start) / slope)
    return np.where(enter <= leave, leave, -np.inf)


def _hfield_height(geometry: TerrainGeometry, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Interpolate a height field bilinearly at points relative to its center [m]."""
    hfield = geometry.hfield
    assert hfield is not None
    data = np.asarray(hfield.userdata).reshape(hfield.nrow, hfield.ncol) * hfield.size[2]
    return interpolate(
        data,
        (y + hfield.size[1]) / (2 * hfield.size[1]) * (hfield.nrow - 1),
        (x + hfield.size[0]) / (2 * hfield.size[0]) * (hfield.ncol - 1),
    )


def interpolate(grid: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Interpolate a grid bilinearly at fractional rows and columns, in their broadcast shape."""
    # Positions that differ from a node only by rounding must give the node's value.
    rows = np.round(rows, 9)
    cols = np.round(cols, 9)
    row = np.clip(rows.astype(int), 0, grid.shape[0] - 2)
    col = np.clip(cols.astype(int), 0, grid.shape[1] - 2)
    v = np.clip(rows - row, 0.0, 1.0)
    u = np.clip(cols - col, 0.0, 1.0)
    lower = (1 - u) * grid[row, col] + u * grid[row, col + 1]
    upper = (1 - u) * grid[row + 1, col] + u * grid[row + 1, col + 1]
    return (1 - v) * lower + v * upper


def find_flat_patches_from_heightfield(
    heights: np.ndarray,
    horizontal_scale: float,
    z_offset: float,
    cfg: FlatPatchSamplingCfg,
    rng: np.random.Generator,
) -> np.ndarray:
    """Choose random patches where the ground is flat.

    A patch is flat if the heights of all samples that affect the disc of `cfg.patch_radius` around
    it differ by at most `cfg.max_height_diff`. If there is none within the ranges of `cfg`, all
    patches are at the center.

    Args:
        heights: heights at equally spaced samples [m], shape [num_y, num_x].
        horizontal_scale: distance between samples [m].
        z_offset: offset added to the heights [m].
        cfg: size, number and ranges of the patches.
        rng: random number generator.

    Returns:
        Centers of the patches [m], shape [cfg.num_patches, 3], relative to the first sample.
    """
    heights = np.asarray(heights, float) + z_offset
    # A disc touches grid cells whose corners are up to a diagonal away from it.
    reach = cfg.patch_radius / horizontal_scale + math.sqrt(2.0)
    margin = math.floor(reach)
    rows, cols = (np.arange(margin, n - margin) for n in heights.shape)
    flat = np.zeros((len(rows), len(cols)), bool)
    if flat.size:
        spread = _disc_max(heights, reach) + _disc_max(-heights, reach)
        centers = heights[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
        # Nothing is flat where there is no ground: -inf fails the comparison with z_range.
        flat = spread <= cfg.max_height_diff + 1e-9
        flat &= _within(rows * horizontal_scale, cfg.y_range)[:, None]
        flat &= _within(cols * horizontal_scale, cfg.x_range)[None, :]
        flat &= _within(centers, cfg.z_range)
    candidates = np.argwhere(flat) + margin
    if not len(candidates):
        center = [(n - 1) / 2 for n in heights.shape]
        z = interpolate(heights, *(np.array(c) for c in center))
        row, col = center
        return np.tile([col * horizontal_scale, row * horizontal_scale, z], (cfg.num_patches, 1))
    chosen = rng.choice(len(candidates), cfg.num_patches, replace=len(candidates) < cfg.num_patches)
    row, col = candidates[chosen].T
    return np.stack([col * horizontal_scale, row * horizontal_scale, heights[row, col]], axis=1)


def _disc_max(values: np.ndarray, reach: float) -> np.ndarray:
    """Return the maximum over the disc of `reach` samples about each sample with a full disc."""
    margin = math.floor(reach)
    rows, cols = values.shape
    result = np.full((rows - 2 * margin, cols - 2 * margin), -np.inf)
    for offset in range(margin + 1):
        half = math.floor(math.sqrt(reach**2 - offset**2))
        half = min(half, margin)
        strip = values[:, margin - half : cols - margin + half]
        widest = np.lib.stride_tricks.sliding_window_view(strip, 2 * half + 1, axis=1).max(-1)
        for start in (margin - offset, margin + offset):
            np.maximum(result, widest[start : start + len(result)], out=result)
    return result


def _within(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    return (values >= bounds[0] - 1e-9) & (values <= bounds[1] + 1e-9)

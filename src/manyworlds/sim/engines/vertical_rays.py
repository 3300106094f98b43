"""Hits of vertical rays on geoms that never move, found in a grid instead of geom by geom.

MuJoCo tests each ray against each geom. Terrain has hundreds of geoms, but few of them cross one
vertical line. `VerticalRays` lists the geoms in each cell of a horizontal grid, and evaluates the
formulas of MuJoCo for these geoms, for many rays at once, in double precision.

Where rounding decides, for example on the edge between two triangles, the result may depend on the
order of MuJoCo's operations. Such rays, and rays that may meet a geom of another type, are left
undecided: MuJoCo itself has to cast them.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

_TYPE = mujoco.mjtGeom

# Kinds of geoms by their formulas; rays that may meet one of the last kind are undecided.
_LEVEL, _PLANE, _TILTED, _HFIELD, _OTHER = range(5)

# Differences below this are MuJoCo's to decide [m; fraction of a cell of a height field].
_MARGIN = 1e-9

# MuJoCo discards intersections with determinants below 1e-15. Within these bounds, none of the hits
# that are found here has such a small one.
_MIN_SIZE, _MAX_COORDINATE = 1e-4, 1e3
_MIN_SLOPE, _MAX_SLOPE = 1e-3, 1e3
_MIN_TILT = 1e-6

# Bounds of the grid: cell size [m], number of cells, and number of geoms in all cells.
_MIN_CELL, _MAX_CELLS, _MAX_ENTRIES = 0.1, 2**20, 2**22
_PADDING = 1e-6

# Number of rays at a time, so that temporary arrays stay in the processor's cache.
_CHUNK = 16384


@dataclass
class VerticalHits:
    """First hits of rays; those of undecided rays are meaningless."""

    dist: np.ndarray
    """Distance in lengths of the direction, float64, -1 for a miss. Shape (n, nray)."""
    geomid: np.ndarray
    """Id of the geom, int32, -1 for a miss. Shape (n, nray)."""
    normal: np.ndarray
    """Surface normal in the world frame, float64, zero for a miss. Shape (n, nray, 3)."""
    undecided: np.ndarray
    """Mask of the rays that MuJoCo has to cast. Shape (n, nray)."""


class VerticalRays:
    """Finds the first of some geoms that vertical rays hit, as `mj_ray` does.

    Args:
        model: the model, of which the necessary parts are copied.
        geoms: ids of the geoms, ascending; their poses must not depend on the state.
    """

    def __init__(self, model: mujoco.MjModel, geoms: np.ndarray) -> None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        self._pos = np.ascontiguousarray(data.geom_xpos.T)
        self._mat = np.ascontiguousarray(data.geom_xmat.T)
        self._size = np.ascontiguousarray(model.geom_size.T)
        self._heights = _Heights(model)
        # Boxes with horizontal faces, and the boxes below the surfaces of height fields.
        self._center, self._half = self._pos[2].copy(), self._size[2].copy()
        hfields = np.flatnonzero(model.geom_type == _TYPE.mjGEOM_HFIELD)
        sizes = model.hfield_size[model.geom_dataid[hfields]]
        self._size[:2, hfields] = sizes[:, :2].T
        self._half[hfields] = 0.5 * sizes[:, 3]
        self._center[hfields] -= 0.5 * sizes[:, 3]
        self._kind = np.full(model.ngeom, _OTHER, np.int8)
        self._kind[geoms] = [self._kind_of(model, geom) for geom in geoms.tolist()]
        lower, upper = _bounds(model, data, geoms)
        bounded = np.isfinite(lower).all(axis=1)
        self._everywhere = geoms[~bounded]
        self._grid = _Grid(geoms[bounded], lower[bounded], upper[bounded])

    def _kind_of(self, model: mujoco.MjModel, geom: int) -> int:
        kind, mat = model.geom_type[geom], self._mat[:, geom]
        lengths = self._size[:, geom]
        if kind == _TYPE.mjGEOM_HFIELD:
            lengths = model.hfield_size[model.geom_dataid[geom]]
        level = bool((mat == np.eye(3).ravel()).all())
        if max(np.abs(self._pos[:, geom]).max(), lengths.max()) > _MAX_COORDINATE:
            return _OTHER
        if kind == _TYPE.mjGEOM_PLANE:
            return _PLANE if level else _OTHER
        if lengths.min() < _MIN_SIZE:
            return _OTHER
        if kind == _TYPE.mjGEOM_HFIELD:
            return _HFIELD if level else _OTHER
        if kind != _TYPE.mjGEOM_BOX:
            return _OTHER
        tilt = np.abs(mat[6:])
        return _LEVEL if level else _TILTED if tilt[tilt > 0].min() > _MIN_TILT else _OTHER

    def cast(self, pnt: np.ndarray, vec: np.ndarray) -> VerticalHits:
        """Cast rays with origins and directions of shape (n, nray, 3).

        Rays that are not vertical are undecided. The arrays may be views, with equal directions
        repeated.
        """
        shape = pnt.shape[:2]
        # One element for each axis along which the directions are repeated, which saves time.
        distinct = vec[tuple(slice(1 if stride == 0 else None) for stride in vec.strides[:2])]
        slope = distinct[..., 2].astype(float)
        vertical = ~distinct[..., :2].any(axis=-1)
        vertical &= (np.abs(slope) >= _MIN_SLOPE) & (np.abs(slope) <= _MAX_SLOPE)
        slopes = np.broadcast_to(np.where(vertical, slope, -1.0), shape).ravel()
        points = pnt.reshape(-1, 3)
        dist, normal = np.full(len(points), np.inf), np.zeros((len(points), 3))
        geomid = np.full(len(points), -1, np.int32)
        undecided = np.broadcast_to(~vertical, shape).ravel()
        if vertical.any():
            for start in range(0, len(points), _CHUNK):
                part = slice(start, start + _CHUNK)
                rays = _Rays(
                    *(points[part, axis].astype(float) for axis in range(3)),
                    slopes[part], dist[part], geomid[part], normal[part], undecided[part],
                )  # fmt: skip
                self._cast(rays)
        dist[geomid < 0] = -1.0
        return VerticalHits(
            *(array.reshape(shape) for array in (dist, geomid)),
            normal.reshape(*shape, 3), undecided.reshape(shape),
        )  # fmt: skip

    # Values that are not finite occur in rays of worlds that diverged, and for rays without a hit.
    @np.errstate(invalid="ignore", divide="ignore", over="ignore")
    def _cast(self, rays: _Rays) -> None:
        """Find the first hits, going through the geoms of each cell from the top."""
        rays.undecided |= np.abs(rays.z) > _MAX_COORDINATE
        for geom in self._everywhere.tolist():
            rows = np.arange(len(rays.z))
            self._meet(rays, rows, np.full(len(rows), geom))
        entry, stop = self._grid.entries(rays.x, rays.y)
        rows = np.flatnonzero((entry < stop) & ~rays.undecided)
        entry, stop = entry[rows], stop[rows]
        while len(rows):
            self._meet(rays, rows, self._grid.geoms[entry])
            # A hit above everything that follows is the first on the way down.
            slope = rays.slope[rows]
            height = rays.z[rows] + rays.dist[rows] * slope
            found = (slope < 0) & (height > self._grid.below[entry] + _MARGIN)
            entry += 1
            more = np.flatnonzero((entry < stop) & ~found & ~rays.undecided[rows])
            rows, entry, stop = rows[more], entry[more], stop[more]

    def _meet(self, rays: _Rays, rows: np.ndarray, geoms: np.ndarray) -> None:
        """Intersect rays with one geom each."""
        kinds = self._kind[geoms]
        for kind in range(_OTHER + 1):
            chosen = np.flatnonzero(kinds == kind)
            if not len(chosen):
                continue
            some, geom = rows, geoms
            if len(chosen) < len(rows):
                some, geom = rows[chosen], geoms[chosen]
            if kind == _LEVEL:
                self._meet_box(rays, some, geom)
            elif kind == _PLANE:
                self._meet_plane(rays, some, geom)
            elif kind == _TILTED:
                self._meet_tilted_box(rays, some, geom)
            elif kind == _HFIELD:
                self._meet_hfield(rays, some, geom)
            else:
                rays.undecided[some] = True

    def _meet_box(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with horizontal faces. The operations are exact except for the distance's."""
        inside = np.abs(rays.x[rows] - self._pos[0][geom]) <= self._size[0][geom]
        inside &= np.abs(rays.y[rows] - self._pos[1][geom]) <= self._size[1][geom]
        chosen = np.flatnonzero(inside)
        if len(chosen) < len(rows):
            rows, geom = rows[chosen], geom[chosen]
        local, half, slope = rays.z[rows] - self._center[geom], self._half[geom], rays.slope[rows]
        top, bottom = (half - local) / slope, (-half - local) / slope
        near = np.where(slope < 0, top, bottom)
        dist = np.where(near >= 0, near, np.where(slope < 0, bottom, top))
        up = np.where(dist == top, 1.0, -1.0)
        rays.meet(rows, geom, dist, (0.0, 0.0, up), exact=True)

    def _meet_plane(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the upper side of a plane, which may be infinite."""
        inside = rays.slope[rows] < 0
        for axis, along in enumerate((rays.x, rays.y)):
            size = self._size[axis][geom]
            inside &= (size <= 0) | (np.abs(along[rows] - self._pos[axis][geom]) <= size)
        dist = -(rays.z[rows] - self._pos[2][geom]) / rays.slope[rows]
        rays.meet(rows, geom, np.where(inside, dist, np.inf), (0.0, 0.0, 1.0), exact=True)

    def _meet_tilted_box(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the six faces of a box of any orientation."""
        mat, size, slope = self._mat[:, geom], self._size[:, geom], rays.slope[rows]
        x, y, z = (
            along[rows] - self._pos[axis][geom]
            for axis, along in enumerate((rays.x, rays.y, rays.z))
        )
        local = mat[0:3] * x + mat[3:6] * y + mat[6:9] * z
        along = mat[6:9] * slope
        nearest = np.full(len(rows), np.inf)
        face = np.zeros(len(rows), np.int64)
        sign, close = np.zeros(len(rows)), np.zeros(len(rows), bool)
        for axis in range(3):
            others = [i for i in range(3) if i != axis]
            for side in (-1.0, 1.0):
                dist = (side * size[axis] - local[axis]) / along[axis]
                outside = np.abs(local[others] + dist * along[others]) - size[others]
                outside = outside.max(axis=0)
                ahead = dist * np.abs(slope)
                close |= (ahead > -_MARGIN) & (np.abs(outside) < _MARGIN)
                close |= (np.abs(ahead) < _MARGIN) & (outside < _MARGIN)
                better = (ahead >= 0) & (outside <= 0) & (dist < nearest)
                nearest[better], face[better], sign[better] = dist[better], axis, side
        columns = mat.reshape(3, 3, -1)[:, face, np.arange(len(rows))] * sign
        rays.undecided[rows[close]] = True
        rays.meet(rows, geom, nearest, tuple(columns), exact=False)

    def _meet_hfield(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the triangle of a height field on the ray's line, and the box below."""
        x, y = rays.x[rows] - self._pos[0][geom], rays.y[rows] - self._pos[1][geom]
        size_x, size_y = self._size[0][geom], self._size[1][geom]
        outside = np.maximum(np.abs(x) - size_x, np.abs(y) - size_y)
        rays.undecided[rows[np.abs(outside) < _MARGIN]] = True
        chosen = np.flatnonzero(outside <= -_MARGIN)
        if len(chosen) < len(rows):
            rows, geom, x, y = rows[chosen], geom[chosen], x[chosen], y[chosen]
        height, slope_x, slope_y, edge = self._heights.at(geom, x, y)
        local = rays.z[rows] - self._pos[2][geom]
        self._meet_box(rays, rows, geom)
        undecided = edge | (np.abs(height - local) < _MARGIN)
        rays.undecided[rows[undecided]] = True
        dist = (height - local) / rays.slope[rows]
        # There the surface is the upper face of the box below, with the same normal.
        dist[(np.abs(height) < _MARGIN) & (slope_x == 0) & (slope_y == 0)] = np.inf
        up = 1.0 / np.sqrt(slope_x * slope_x + slope_y * slope_y + 1.0)
        rays.meet(rows, geom, dist, (-slope_x * up, -slope_y * up, up), exact=False)


class _Rays:
    """Origins and slopes of vertical rays, and views of arrays that receive their nearest hits."""

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        z: np.ndarray,
        slope: np.ndarray,
        dist: np.ndarray,
        geomid: np.ndarray,
        normal: np.ndarray,
        undecided: np.ndarray,
    ) -> None:
        self.x, self.y, self.z, self.slope = x, y, z, slope
        self.dist, self.geomid, self.normal, self.undecided = dist, geomid, normal, undecided
        # Hits whose distance may differ from MuJoCo's by rounding.
        self._rounded = np.zeros(len(x), bool)

    def meet(
        self,
        rows: np.ndarray,
        geom: np.ndarray,
        dist: np.ndarray,
        normal: tuple[np.ndarray | float, ...],
        exact: bool,
    ) -> None:
        """Record hits that are nearer than previous ones; of equal ones, that of the lower id.

        Args:
            rows: the rays, each once.
            geom: geom of each.
            dist: distance of each; negative or infinite without a hit.
            normal: components of the surface normal.
            exact: the distance is computed by the same operations as in MuJoCo.
        """
        before, ahead = self.dist[rows], dist >= 0
        if not exact or self._rounded.any():
            gap = np.abs(dist - before) * np.abs(self.slope[rows])
            tie = ahead & (gap < _MARGIN)
            if exact:
                tie &= self._rounded[rows]
            self.undecided[rows[tie]] = True
        better = (dist < before) | ((dist == before) & (geom < self.geomid[rows]))
        chosen = np.flatnonzero(better & ahead)
        if len(chosen) < len(rows):
            rows, geom, dist = rows[chosen], geom[chosen], dist[chosen]
            normal = tuple(n[chosen] if isinstance(n, np.ndarray) else n for n in normal)
        self.dist[rows], self.geomid[rows] = dist, geom
        for axis, component in enumerate(normal):
            self.normal[rows, axis] = component
        self._rounded[rows] = not exact


class _Heights:
    """Surfaces of all height fields of a model, as piecewise linear functions."""

    def __init__(self, model: mujoco.MjModel) -> None:
        fields = np.where(model.geom_type == _TYPE.mjGEOM_HFIELD, model.geom_dataid, -1)
        # The last row, of geoms that are no height fields, is not used.
        size = np.concatenate([model.hfield_size, np.ones((1, 4))])[fields]
        cols, rows = (
            np.append(count, 2)[fields].astype(np.int64)
            for count in (model.hfield_ncol, model.hfield_nrow)
        )
        self._adr = np.append(model.hfield_adr, 0)[fields].astype(np.int64)
        self._data = model.hfield_data.copy()
        self._cols, self._rows = cols, rows
        self._half_x, self._half_y, self._scale = size[:, 0], size[:, 1], size[:, 2]
        self._step_x, self._step_y = 2 * size[:, 0] / (cols - 1), 2 * size[:, 1] / (rows - 1)

    def at(
        self, geom: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return heights, slopes along x and y, and a mask of points on edges of triangles.

        Args:
            geom: geoms with height fields, shape (n,).
            x: points within the field, relative to its center [m], shape (n,).
            y: likewise.
        """
        step_x, step_y = self._step_x[geom], self._step_y[geom]
        u, v = (x + self._half_x[geom]) / step_x, (y + self._half_y[geom]) / step_y
        count = self._cols[geom]
        col, row = u.astype(np.int64), v.astype(np.int64)
        u, v = u - col, v - row
        # Each cell has two triangles, which share the diagonal from its lower corner.
        edge = np.abs(u - v) < _MARGIN
        for part in (u, v):
            edge |= (part < _MARGIN) | (part > 1 - _MARGIN)
        first = self._adr[geom] + row * count + col
        last = first + count + 1
        data, scale = self._data, self._scale[geom]
        low = data[first] * scale
        corner = data[np.where(u > v, first + 1, last - 1)] * scale
        high = data[last] * scale
        along_x, along_y = corner - low, high - corner
        along_x, along_y = np.where(u > v, (along_x, along_y), (along_y, along_x))
        return low + u * along_x + v * along_y, along_x / step_x, along_y / step_y, edge


class _Grid:
    """Geoms above each cell of a horizontal grid, from the highest top to the lowest.

    Attributes:
        geoms: ids of the geoms of all cells, cell by cell.
        below: for each of these, the top of the next one in the same cell [m]; -inf for the last.
    """

    def __init__(self, geoms: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        lower, upper = lower - _PADDING, upper + _PADDING
        if not len(geoms):
            lower, upper = np.zeros((1, 3)), np.zeros((1, 3))
        extent = (upper - lower)[:, :2]
        area = np.prod(np.ptp(np.concatenate([lower, upper])[:, :2], axis=0))
        sizes = (_MIN_CELL, (area / _MAX_CELLS) ** 0.5, (extent.prod(1).sum() / _MAX_ENTRIES) ** 0.5)
        self._cell = max(sizes)
        # Cells at the margin have no geoms.
        self._origin = lower.min(axis=0)[:2] - 2 * self._cell
        first, last = (
            ((bound[:, :2] - self._origin) / self._cell).astype(np.int64) for bound in (lower, upper)
        )
        self._shape = last.max(axis=0) + 2
        if not len(geoms):
            first, last = first[:0], last[:0]
        regions = [
            tuple(slice(a, b + 1) for a, b in zip(*bounds, strict=True))
            for bounds in zip(first.tolist(), last.tolist(), strict=True)
        ]
        counts = np.zeros(self._shape, np.int64)
        for region in regions:
            counts[region] += 1
        self._start = np.concatenate([[0], counts.ravel().cumsum()])
        slot = self._start[:-1].reshape(self._shape).copy()
        self.geoms = np.zeros(self._start[-1], np.int64)
        tops = np.zeros(len(self.geoms))
        for i in np.argsort(-upper[:, 2], kind="stable")[: len(regions)].tolist():
            self.geoms[slot[regions[i]]] = geoms[i]
            tops[slot[regions[i]]] = upper[i, 2]
            slot[regions[i]] += 1
        self.below = np.append(tops[1:], -np.inf)[: len(tops)]
        self.below[self._start[1:][counts.ravel() > 0] - 1] = -np.inf

    def entries(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the range of entries of the cells that contain the points, each of shape (n,)."""
        col, row = (
            np.clip(((along - start) / self._cell).astype(np.int64), 0, count - 1)
            for along, start, count in zip((x, y), self._origin, self._shape, strict=True)
        )
        cell = col * self._shape[1] + row
        return self._start[cell], self._start[cell + 1]


def _bounds(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of geoms [m], shape (n, 3), infinite for most planes."""
    mat = data.geom_xmat[geoms].reshape(-1, 3, 3)
    center = data.geom_xpos[geoms] + np.einsum("nij,nj->ni", mat, model.geom_aabb[geoms, :3])
    half = np.einsum("nij,nj->ni", np.abs(mat), model.geom_aabb[geoms, 3:])
    size = model.geom_size[geoms]
    planes = model.geom_type[geoms] == _TYPE.mjGEOM_PLANE
    level = (mat == np.eye(3)).all(axis=(1, 2))
    finite = level & (size[:, :2] > 0).all(axis=1)
    half[planes] = np.where(finite[planes, None], size[planes] * [1, 1, 0], np.inf)
    center[planes] = data.geom_xpos[geoms[planes]]
    return center - half, center + half

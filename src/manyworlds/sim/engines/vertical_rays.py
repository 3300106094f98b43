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

from manyworlds.sim.engines.ray_tables import MARGIN, Grid, Heights
from manyworlds.sim.engines.upper_surface import Hits, UpperSurface

_TYPE = mujoco.mjtGeom

# Kinds of geoms by their formulas; rays that may meet one of the last kind are undecided.
_LEVEL, _TURNED, _TILTED, _PLANE, _HFIELD, _OTHER = range(6)

# MuJoCo discards intersections with determinants below 1e-15. Within these bounds, none of the hits
# that are found here has such a small one.
_MIN_SIZE = 1e-4
_MAX_COORDINATE = 1e3
_MIN_SLOPE = 1e-3
_MAX_SLOPE = 1e3
_MIN_TILT = 1e-6

# Number of rays at a time, which bounds the memory of temporary arrays to some MB.
_CHUNK = 2**15

# Number of different directions up to which each is worth a search of its own.
_MAX_DIRECTIONS = 8


@dataclass
class VerticalHits:
    """First hits of rays; those of undecided rays are meaningless."""

    dist: np.ndarray
    """Distance in lengths of the direction, float64, -1 for a miss. Shape (n, nray)."""
    geomid: np.ndarray
    """Id of the geom, int32, -1 for a miss. Shape (n, nray)."""
    normal: np.ndarray
    """Surface normal in the world frame, float32, zero for a miss. Shape (n, nray, 3)."""
    undecided: np.ndarray
    """Mask of the rays that MuJoCo has to cast. Shape (n, nray)."""


class VerticalRays:
    """Finds the first of some geoms that vertical rays hit, as `mj_ray` does.

    Args:
        model: the model; what is needed of it is copied.
        geoms: ids of the geoms, ascending; their poses must not depend on the state.
    """

    def __init__(self, model: mujoco.MjModel, geoms: np.ndarray) -> None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        self._pos = np.ascontiguousarray(data.geom_xpos.T)
        self._mat = np.ascontiguousarray(data.geom_xmat.T)
        self._size = np.ascontiguousarray(model.geom_size.T)
        self._heights = Heights(model)
        # Boxes with horizontal faces, and the boxes below the surfaces of height fields.
        self._center = self._pos[2].copy()
        self._half = self._size[2].copy()
        hfields = np.flatnonzero(model.geom_type == _TYPE.mjGEOM_HFIELD)
        sizes = model.hfield_size[model.geom_dataid[hfields]]
        self._size[:2, hfields] = sizes[:, :2].T
        self._half[hfields] = 0.5 * sizes[:, 3]
        self._center[hfields] -= 0.5 * sizes[:, 3]
        self._kind = np.full(model.ngeom, _OTHER, np.int8)
        self._kind[geoms] = [self._kind_of(model, geom) for geom in geoms.tolist()]
        formulas = {
            _LEVEL: self._meet_box,
            _TURNED: self._meet_turned_box,
            _TILTED: self._meet_tilted_box,
            _PLANE: self._meet_plane,
            _HFIELD: self._meet_hfield,
        }
        present = np.unique(self._kind[geoms])
        self._formulas = [(kind, meet) for kind, meet in formulas.items() if kind in present]
        lower, upper = _bounds(model, data, geoms)
        bounded = np.isfinite(lower).all(axis=1)
        self._everywhere = geoms[~bounded]
        self._grid = Grid(geoms[bounded], lower[bounded], upper[bounded])
        kinds = self._kind == _LEVEL, self._kind == _HFIELD
        self._surface = UpperSurface(self._grid, self._heights, *kinds, self._pos, self._size)

    def _kind_of(self, model: mujoco.MjModel, geom: int) -> int:
        """Return the formula for a geom; `_OTHER` if there is none."""
        kind = model.geom_type[geom]
        mat = self._mat[:, geom]
        lengths = self._size[:, geom]
        if kind == _TYPE.mjGEOM_HFIELD:
            lengths = model.hfield_size[model.geom_dataid[geom]]
            # MuJoCo looks for surfaces between heights 0 and 1 only.
            heights = self._heights.of(geom)
            if heights.min() < 0 or heights.max() > 1:
                return _OTHER
        level = bool((mat == np.eye(3).ravel()).all())
        if max(np.abs(self._pos[:, geom]).max(), lengths.max()) > _MAX_COORDINATE:
            return _OTHER
        if kind != _TYPE.mjGEOM_PLANE and lengths.min() < _MIN_SIZE:
            return _OTHER
        if level:
            kinds = {
                int(_TYPE.mjGEOM_PLANE): _PLANE,
                int(_TYPE.mjGEOM_HFIELD): _HFIELD,
                int(_TYPE.mjGEOM_BOX): _LEVEL,
            }
            return kinds.get(int(kind), _OTHER)
        if kind != _TYPE.mjGEOM_BOX:
            return _OTHER
        if not mat[[2, 5, 6, 7]].any() and mat[8] > 0:
            return _TURNED
        tilt = np.abs(mat[6:])
        if tilt[tilt > 0].min() > _MIN_TILT:
            return _TILTED
        return _OTHER

    def cast(self, pnt: np.ndarray, vec: np.ndarray) -> VerticalHits | None:
        """Cast rays with origins and directions of shape (n, nray, 3); None if none is vertical.

        Other rays are undecided. `vec` may be a view with repeated directions.
        """
        shape = pnt.shape[:2]
        points = pnt.reshape(-1, 3)
        # One element for each axis along which the directions are repeated, which saves time.
        distinct = vec[tuple(slice(1 if stride == 0 else None) for stride in vec.strides[:2])]
        slopes = distinct[..., 2].astype(float)
        vertical = ~distinct[..., :2].any(axis=-1)
        vertical &= (np.abs(slopes) >= _MIN_SLOPE) & (np.abs(slopes) <= _MAX_SLOPE)
        directions = np.unique(slopes[vertical])[:_MAX_DIRECTIONS]
        if not len(directions):
            return None
        count = len(points)
        dist = np.full(count, -1.0)
        geomid = np.full(count, -1, np.int32)
        normal = np.zeros((count, 3), np.float32)
        undecided = np.ones(count, bool)
        for slope in directions.tolist():
            rows = np.flatnonzero(np.broadcast_to(vertical & (slopes == slope), shape))
            for start in range(0, len(rows), _CHUNK):
                part = slice(start, start + _CHUNK)
                if len(rows) < count:
                    part = rows[part]
                rays = _Rays(points[part], slope)
                self._cast(rays)
                dist[part] = rays.dist
                geomid[part] = rays.geomid
                normal[part] = rays.normal
                undecided[part] = rays.undecided
        dist[geomid < 0] = -1.0
        arrays = (dist, geomid, normal, undecided)
        return VerticalHits(*(array.reshape(*shape, *array.shape[1:]) for array in arrays))

    # Values that are not finite occur in rays of worlds that diverged.
    @np.errstate(invalid="ignore", over="ignore")
    def _cast(self, rays: _Rays) -> None:
        """Find the first hits, going through the geoms of each cell from the top."""
        rows = np.arange(len(rays.x))
        for geom in self._everywhere.tolist():
            self._meet(rays, rows, np.full(len(rows), geom))
        if rays.slope < 0 and rays.untouched and not self._surface.empty:
            rows = rays.take(self._surface.find(rays.origins, rays.slope))
        entry = self._grid.first(rays.x[rows], rays.y[rows])
        rows, entry = _select(entry > 0, rows, entry)
        while len(rows):
            self._meet(rays, rows, self._grid.geoms[entry])
            below = self._grid.below[entry]
            rows, entry, below = _select(below > -np.inf, rows, entry, below)
            more = ~rays.undecided[rows]
            if rays.slope < 0:
                # On the way down, a hit above everything that follows is the first.
                more &= ~(rays.z[rows] + rays.dist[rows] * rays.slope > below + MARGIN)
            rows, entry = _select(more, rows, entry)
            entry = entry + 1

    def _meet(self, rays: _Rays, rows: np.ndarray, geoms: np.ndarray) -> None:
        """Intersect rays with one geom each."""
        kinds = self._kind[geoms]
        for kind, meet in self._formulas:
            chosen = np.flatnonzero(kinds == kind)
            if len(chosen) == len(rows):
                meet(rays, rows, geoms)
            elif len(chosen):
                meet(rays, rows[chosen], geoms[chosen])
        rays.undecided[rows[kinds == _OTHER]] = True
        rays.untouched = False

    def _meet_box(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the upper and the lower face of a level box, in MuJoCo's operations."""
        inside = np.abs(rays.x[rows] - self._pos[0][geom]) <= self._size[0][geom]
        inside &= np.abs(rays.y[rows] - self._pos[1][geom]) <= self._size[1][geom]
        rows, geom = _select(inside, rows, geom)
        local = rays.z[rows] - self._center[geom]
        dist, up = _faces(local, self._half[geom], rays.slope)
        rays.meet(rows, geom, dist, (0.0, 0.0, up), exact=True)

    def _meet_turned_box(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Likewise for a box that is turned about the vertical."""
        x = rays.x[rows] - self._pos[0][geom]
        y = rays.y[rows] - self._pos[1][geom]
        local_x = np.abs(self._mat[0][geom] * x + self._mat[3][geom] * y)
        local_y = np.abs(self._mat[1][geom] * x + self._mat[4][geom] * y)
        outside = np.maximum(local_x - self._size[0][geom], local_y - self._size[1][geom])
        rays.undecided[rows[np.abs(outside) < MARGIN]] = True
        rows, geom = _select(outside < 0, rows, geom)
        # Up to rounding, this is 1.
        scale = self._mat[8][geom]
        local = scale * (rays.z[rows] - self._pos[2][geom])
        dist, up = _faces(local, self._half[geom], scale * rays.slope)
        rays.meet(rows, geom, dist, (0.0, 0.0, up), exact=True)

    def _meet_plane(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the upper side of a level plane, finite or not, in MuJoCo's operations."""
        if rays.slope > 0:
            return
        inside = np.ones(len(rows), bool)
        for axis, along in enumerate((rays.x, rays.y)):
            size = self._size[axis][geom]
            inside &= (size <= 0) | (np.abs(along[rows] - self._pos[axis][geom]) <= size)
        rows, geom = _select(inside, rows, geom)
        dist = -(rays.z[rows] - self._pos[2][geom]) / rays.slope
        rays.meet(rows, geom, dist, (0.0, 0.0, 1.0), exact=True)

    @np.errstate(divide="ignore")
    def _meet_tilted_box(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the six faces of a box of any orientation."""
        mat = self._mat[:, geom]
        size = self._size[:, geom]
        x, y, z = (
            along[rows] - self._pos[axis][geom]
            for axis, along in enumerate((rays.x, rays.y, rays.z))
        )
        local = mat[0:3] * x + mat[3:6] * y + mat[6:9] * z
        along = mat[6:9] * rays.slope
        nearest = np.full(len(rows), np.inf)
        face = np.zeros(len(rows), np.int64)
        sign = np.zeros(len(rows))
        close = np.zeros(len(rows), bool)
        for axis in range(3):
            others = [i for i in range(3) if i != axis]
            for side in (-1.0, 1.0):
                dist = (side * size[axis] - local[axis]) / along[axis]
                outside = (np.abs(local[others] + dist * along[others]) - size[others]).max(axis=0)
                ahead = dist * abs(rays.slope)
                close |= (ahead > -MARGIN) & (np.abs(outside) < MARGIN)
                close |= (np.abs(ahead) < MARGIN) & (outside < MARGIN)
                better = (dist >= 0) & (outside <= 0) & (dist < nearest)
                nearest[better] = dist[better]
                face[better] = axis
                sign[better] = side
        rays.undecided[rows[close]] = True
        columns = mat.reshape(3, 3, -1)[:, face, np.arange(len(rows))] * sign
        rays.meet(rows, geom, nearest, tuple(columns), exact=False)

    def _meet_hfield(self, rays: _Rays, rows: np.ndarray, geom: np.ndarray) -> None:
        """Intersect with the surface of a height field and the box below it."""
        x = rays.x[rows] - self._pos[0][geom]
        y = rays.y[rows] - self._pos[1][geom]
        outside = np.maximum(np.abs(x) - self._size[0][geom], np.abs(y) - self._size[1][geom])
        rays.undecided[rows[np.abs(outside) < MARGIN]] = True
        rows, geom, x, y = _select(outside <= -MARGIN, rows, geom, x, y)
        height, slope_x, slope_y, edge = self._heights.at(geom, x, y)
        above = height - (rays.z[rows] - self._pos[2][geom])
        steep = (slope_x != 0) | (slope_y != 0)
        # Where the surface is level with the box, both have the same normal.
        close = edge | (np.abs(above) < MARGIN) | (steep & (height < MARGIN))
        rays.undecided[rows[close]] = True
        dist = above / rays.slope
        length = np.sqrt(slope_x * slope_x + slope_y * slope_y + 1.0)
        normal = [-slope_x / length, -slope_y / length, 1.0 / length]
        below = rays.z[rows] - self._center[geom]
        box, up = _faces(below, self._half[geom], rays.slope)
        first = np.flatnonzero((box >= 0) & ~((dist >= 0) & (dist <= box)))
        dist[first] = box[first]
        if isinstance(up, np.ndarray):
            up = up[first]
        for component, value in zip(normal, (0.0, 0.0, up), strict=True):
            component[first] = value
        rays.meet(rows, geom, dist, tuple(normal), exact=False)


class _Rays:
    """Vertical rays with the same direction, and their nearest hits so far.

    Attributes:
        slope: z component of the direction.
        dist: distances, infinite without a hit; likewise geomid, normal (n, 3) and undecided.
        untouched: no geom has been met so far.
    """

    def __init__(self, pnt: np.ndarray, slope: float) -> None:
        self.origins = pnt.T.astype(float, order="C")
        self.x, self.y, self.z = self.origins
        self.slope = slope
        self.dist = np.full(len(pnt), np.inf)
        self.geomid = np.full(len(pnt), -1, np.int32)
        self.normal = np.zeros((len(pnt), 3), np.float32)
        self.undecided = np.abs(self.z) > _MAX_COORDINATE
        self.untouched = True
        # Rays whose distance may differ from MuJoCo's by rounding.
        self._rounded = np.zeros(len(pnt), bool)

    def take(self, hits: Hits) -> np.ndarray:
        """Take final hits; return the rows of the other rays, shape (m,)."""
        found, self.dist, self.geomid, self.normal = hits
        rows = np.flatnonzero(~found | self.undecided)
        self.dist[rows] = np.inf
        self.geomid[rows] = -1
        self.normal[rows] = 0.0
        return rows

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
            exact: the distances are computed by the same operations as in MuJoCo.
        """
        better = (dist >= 0) & (dist < np.inf)
        if not self.untouched:
            before = self.dist[rows]
            tie = better & (np.abs(dist - before) * abs(self.slope) < MARGIN)
            if exact:
                tie &= self._rounded[rows]
            self.undecided[rows[tie]] = True
            better &= (dist < before) | ((dist == before) & (geom < self.geomid[rows]))
        arrays = [component for component in normal if isinstance(component, np.ndarray)]
        rows, geom, dist, *arrays = _select(better, rows, geom, dist, *arrays)
        self.dist[rows] = dist
        self.geomid[rows] = geom
        for axis, component in enumerate(normal):
            if isinstance(component, np.ndarray):
                self.normal[rows, axis] = arrays.pop(0)
            elif component or not self.untouched:
                self.normal[rows, axis] = component
        if not exact or not self.untouched:
            self._rounded[rows] = not exact


def _faces(
    local: np.ndarray, half: np.ndarray, slope: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray | float]:
    """Return distances to the nearest level face ahead, and z components of the normals.

    Args:
        local: heights above the centers of boxes [m], shape (n,).
        half: half the heights of the boxes [m], shape (n,).
        slope: z components of the directions, of equal signs.
    """
    side = -1.0 if np.min(slope, initial=np.inf) > 0 else 1.0
    dist = (side * half - local) / slope
    behind = np.flatnonzero(dist < 0)
    if not len(behind):
        return dist, side
    up = np.full(len(local), side)
    up[behind] = -side
    dist[behind] = ((-side * half - local) / slope)[behind]
    return dist, up


def _select(mask: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the elements of arrays where a mask is true."""
    chosen = np.flatnonzero(mask)
    if len(chosen) == len(mask):
        return arrays
    return tuple(array[chosen] for array in arrays)


def _bounds(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of geoms [m], shape (n, 3), infinite for infinite planes."""
    center = model.geom_aabb[geoms, :3].copy()
    half = model.geom_aabb[geoms, 3:].copy()
    planes = model.geom_type[geoms] == _TYPE.mjGEOM_PLANE
    size = model.geom_size[geoms[planes]]
    center[planes] = 0.0
    half[planes] = size * [1.0, 1.0, 0.0]
    mat = data.geom_xmat[geoms].reshape(-1, 3, 3)
    center = data.geom_xpos[geoms] + np.einsum("nij,nj->ni", mat, center)
    half = np.einsum("nij,nj->ni", np.abs(mat), half)
    half[np.flatnonzero(planes)[(size[:, :2] <= 0).any(axis=1)]] = np.inf
    return center - half, center + half

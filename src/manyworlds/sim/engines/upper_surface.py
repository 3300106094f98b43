"""Hits of rays straight down on what is seen from above, with one lookup for each ray.

In most cells of the grid, the geom with the highest top decides alone: a level box or a height
field, of which a ray from above meets the upper surface. `UpperSurface` finds these hits for all
rays at once and leaves the others to `VerticalRays`, which goes from geom to geom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyworlds.sim.engines.ray_tables import MARGIN, Grid, Heights

# Bound of the number of facets, which take 36 bytes each; with more, nothing is looked up.
_MAX_FACETS = 2**21


class Hits(NamedTuple):
    """First hits of rays; values of rays without are meaningless."""

    found: np.ndarray
    """Mask of the rays whose hits are found, shape (n,)."""
    dist: np.ndarray
    """Distance in lengths of the direction, float64, shape (n,)."""
    geomid: np.ndarray
    """Id of the geom, int32, shape (n,)."""
    normal: np.ndarray
    """Surface normal in the world frame, float32, shape (n, 3)."""


class UpperSurface:
    """Finds hits of rays on the highest geom of each cell of a grid.

    The upper surface of a geom has cells: one of a level box, those of a height field. Each has two
    facets, triangles that share the diagonal from the lower corner, where the height is linear.

    Args:
        grid: geoms in each cell of a grid, highest first.
        heights: the height fields.
        boxes: mask of the geoms that are level boxes, shape (ngeom,).
        hfields: mask of the geoms that are level height fields, likewise.
        pos: positions of the geoms [m], shape (3, ngeom).
        half: half the lengths of boxes; of height fields along x and y only [m], likewise.
    """

    def __init__(
        self,
        grid: Grid,
        heights: Heights,
        boxes: np.ndarray,
        hfields: np.ndarray,
        pos: np.ndarray,
        half: np.ndarray,
    ) -> None:
        self._grid = grid
        self._base = pos[2]
        cols, rows = (
            np.where(hfields, count - 1, np.where(boxes, 1, 0))
            for count in (heights.cols, heights.rows)
        )
        # Positions in cells are linear functions of x and y; others have no cells to be in.
        self._factors = []
        self._summands = []
        self._ends = []
        for axis, count in enumerate((cols, rows)):
            factor = count / np.where(count > 0, 2 * half[axis], 1.0)
            self._factors.append(factor)
            self._summands.append(count / 2 - factor * pos[axis])
            self._ends.append(count - MARGIN)
        self._cols = cols
        counts = 2 * cols * rows
        self._first = counts.cumsum() - counts
        self.empty = not 0 < counts.sum() <= _MAX_FACETS
        if self.empty:
            return
        # Highest geom in each cell of the grid, and height above which it alone decides.
        self._geom = grid.geoms.take(grid.start)
        self._floor = grid.below.take(grid.start) + MARGIN
        # Lowest corner, rise along a cell in x and y [m], and normal.
        self._low, self._rise_x, self._rise_y = np.zeros((3, counts.sum()))
        self._normal = np.zeros((counts.sum(), 3), np.float32)
        self._normal[:, 2] = 1.0
        for geom in np.flatnonzero(boxes).tolist():
            self._low[self._first[geom] : self._first[geom] + 2] = half[2, geom]
        for geom in np.flatnonzero(hfields).tolist():
            low, rise_x, rise_y, slope_x, slope_y = heights.triangles(geom)
            part = slice(self._first[geom], self._first[geom] + len(low))
            length = np.sqrt(slope_x * slope_x + slope_y * slope_y + 1.0)
            normal = np.stack([-slope_x / length, -slope_y / length, 1.0 / length], axis=1)
            self._low[part] = low
            self._normal[part] = normal
            self._rise_x[part] = rise_x
            self._rise_y[part] = rise_y

    @np.errstate(invalid="ignore", over="ignore")
    def find(self, origins: np.ndarray, slope: float) -> Hits:
        """Find hits of rays with these origins [m], shape (3, n), and direction (0, 0, slope)."""
        cell = self._grid.cells(origins[0], origins[1])
        geom, floor = (table.take(cell, mode="clip") for table in (self._geom, self._floor))
        hits = self._meet(origins, slope, geom, floor)
        # On a step of stairs, the highest geom of a cell may be the next step, beside the ray.
        rows = np.flatnonzero(~hits.found)
        rows = rows[self._outside(origins[:, rows], geom[rows])]
        entry = self._grid.start.take(cell[rows], mode="clip")
        more = np.flatnonzero(self._grid.below.take(entry) > -np.inf)
        rows = rows[more]
        entry = entry[more] + 1
        geom = self._grid.geoms.take(entry)
        floor = self._grid.below.take(entry) + MARGIN
        for array, part in zip(hits, self._meet(origins[:, rows], slope, geom, floor), strict=True):
            array[rows] = part
        return hits

    def _meet(self, origins: np.ndarray, slope: float, geom: np.ndarray, floor: np.ndarray) -> Hits:
        """Intersect rays with one geom each, for hits above `floor` [m]."""
        x, y, z = origins
        u, v = self._position(x, y, geom)
        found = (u < self._ends[0].take(geom)) & (v < self._ends[1].take(geom))
        col = u.astype(np.int32)
        row = v.astype(np.int32)
        u -= col
        v -= row
        across = u - v
        # Not on an edge of a facet, nor before the first cell.
        found &= np.minimum(np.minimum(u, v), np.abs(across)) > MARGIN
        found &= np.maximum(u, v) < 1 - MARGIN
        facet = self._cols.take(geom) * row
        facet += col
        facet *= 2
        facet += self._first.take(geom)
        facet += across > 0
        height = self._low.take(facet, mode="clip")
        rise_x = self._rise_x.take(facet, mode="clip")
        rise_y = self._rise_y.take(facet, mode="clip")
        height += u * rise_x
        height += v * rise_y
        # Where a slope reaches height 0, the box below the surface may be what is hit.
        found &= (height > MARGIN) | ((rise_x == 0) & (rise_y == 0))
        height -= z - self._base.take(geom)
        found &= (height < -MARGIN) & (z + height > floor)
        normal = self._normal.take(facet, axis=0, mode="clip")
        return Hits(found, height / slope, geom.astype(np.int32), normal)

    def _position(
        self, x: np.ndarray, y: np.ndarray, geom: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return positions in cells of the geoms' upper surfaces, shape (n,)."""
        u = x * self._factors[0].take(geom) + self._summands[0].take(geom)
        v = y * self._factors[1].take(geom) + self._summands[1].take(geom)
        return u, v

    def _outside(self, origins: np.ndarray, geom: np.ndarray) -> np.ndarray:
        """Return a mask of the origins that are beside their geom, shape (n,)."""
        result = np.zeros(len(geom), bool)
        for part, ends in zip(
            self._position(origins[0], origins[1], geom), self._ends, strict=True
        ):
            result |= (part < -MARGIN) | (part > ends.take(geom) + 2 * MARGIN)
        return result

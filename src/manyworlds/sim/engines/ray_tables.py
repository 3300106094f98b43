"""Tables for vertical rays: geoms in the cells of a grid, and surfaces of height fields."""

from __future__ import annotations

import mujoco
import numpy as np

MARGIN = 1e-9
"""Differences below this are MuJoCo's to decide [m; fraction of a cell of a height field]."""

# Bounds of the grid: cell size [m], number of cells, and number of geoms in all cells.
_MIN_CELL = 0.1
_MAX_CELLS = 2**20
_MAX_ENTRIES = 2**22
_PADDING = 1e-6


class Heights:
    """Surfaces of all height fields of a model, as piecewise linear functions.

    Attributes:
        cols: number of points along x of each geom's height field, shape (ngeom,).
        rows: likewise along y.
        scale: height of a point at 1 [m], likewise.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        fields = np.where(model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD, model.geom_dataid, -1)
        # The last row, of geoms that are no height fields, is not used.
        size = np.concatenate([model.hfield_size, np.ones((1, 4))])[fields]
        cols, rows = (
            np.append(count, 2)[fields].astype(np.int64)
            for count in (model.hfield_ncol, model.hfield_nrow)
        )
        self._adr = np.append(model.hfield_adr, 0)[fields].astype(np.int64)
        self._data = model.hfield_data.copy()
        self.cols = cols
        self.rows = rows
        self._half_x = size[:, 0]
        self._half_y = size[:, 1]
        self.scale = size[:, 2]
        self._step_x = 2 * size[:, 0] / (cols - 1)
        self._step_y = 2 * size[:, 1] / (rows - 1)

    def of(self, geom: int) -> np.ndarray:
        """Return the elements of a geom's height field, shape (nrow * ncol,)."""
        start = self._adr[geom]
        return self._data[start : start + self.rows[geom] * self.cols[geom]]

    def triangles(self, geom: int) -> tuple[np.ndarray, ...]:
        """Return the triangles of a geom's height field, as `at` evaluates them.

        Each cell has two, those with u <= v and with u > v; cells go along x first.

        Returns:
            Heights of the lower corner, rises along a cell in x and y [m], and slopes along x and
            y, shape (2 * cells,).
        """
        points = self.of(geom).reshape(self.rows[geom], self.cols[geom]) * self.scale[geom]
        low = points[:-1, :-1]
        high = points[1:, 1:]
        beside = points[:-1, 1:]
        behind = points[1:, :-1]
        rise_x = np.stack([high - behind, beside - low], axis=-1).ravel()
        rise_y = np.stack([behind - low, high - beside], axis=-1).ravel()
        step_x = self._step_x[geom]
        step_y = self._step_y[geom]
        return low.repeat(2, axis=1).ravel(), rise_x, rise_y, rise_x / step_x, rise_y / step_y

    def at(
        self, geom: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return heights, slopes along x and y, and a mask of points on edges of triangles.

        Args:
            geom: geoms with height fields, shape (n,).
            x: points within the field, relative to its center [m], shape (n,).
            y: likewise.
        """
        step_x = self._step_x[geom]
        step_y = self._step_y[geom]
        u = (x + self._half_x[geom]) / step_x
        v = (y + self._half_y[geom]) / step_y
        count = self.cols[geom]
        col = u.astype(np.int64)
        row = v.astype(np.int64)
        u = u - col
        v = v - row
        # Each cell has two triangles, which share the diagonal from its lower corner.
        edge = np.abs(u - v) < MARGIN
        for part in (u, v):
            edge |= (part < MARGIN) | (part > 1 - MARGIN)
        first = self._adr[geom] + row * count + col
        last = first + count + 1
        data = self._data
        scale = self.scale[geom]
        low = data[first] * scale
        corner = data[np.where(u > v, first + 1, last - 1)] * scale
        high = data[last] * scale
        along_x = corner - low
        along_y = high - corner
        along_x, along_y = np.where(u > v, (along_x, along_y), (along_y, along_x))
        return low + u * along_x + v * along_y, along_x / step_x, along_y / step_y, edge


class Grid:
    """Geoms in each cell of a horizontal grid, from the highest top to the lowest.

    Attributes:
        start: first entry of each cell, 0 if it has none.
        geoms: ids of the geoms of all cells, cell by cell; the first entry is not used.
        below: for each of these, the top of the next one in the same cell [m]; -inf for the last.
    """

    def __init__(self, geoms: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        if not len(geoms):
            geoms = np.zeros(0, np.int64)
            lower = np.zeros((1, 3))
            upper = np.zeros((1, 3))
        low = lower[:, :2] - _PADDING
        high = upper[:, :2] + _PADDING
        area = np.prod(high.max(axis=0) - low.min(axis=0))
        total = (high - low).prod(axis=1).sum()
        cell = max(_MIN_CELL, (area / _MAX_CELLS) ** 0.5, (total / _MAX_ENTRIES) ** 0.5)
        # Cells at the margin have no geoms.
        self._origin = low.min(axis=0) - 2 * cell
        self._scale = 1.0 / cell
        first, last = (((end - self._origin) * self._scale).astype(int) for end in (low, high))
        self._shape = (last.max(axis=0) + 2).tolist()
        tops = upper[:, 2]
        regions = [
            (geoms[i], tops[i], tuple(map(slice, first[i], last[i] + 1)))
            for i in np.argsort(-tops, kind="stable")[: len(geoms)]
        ]
        counts = np.zeros(self._shape, np.int64)
        for _, _, region in regions:
            counts[region] += 1
        start = 1 + counts.ravel().cumsum() - counts.ravel()
        slot = start.reshape(self._shape).copy()
        self.geoms = np.zeros(1 + counts.sum(), np.int64)
        self.below = np.full(len(self.geoms) + 1, -np.inf)
        for geom, top, region in regions:
            self.geoms[slot[region]] = geom
            self.below[slot[region] - 1] = top
            slot[region] += 1
        # The last entry of one cell is not followed by the first of the next.
        self.below[start - 1] = -np.inf
        self.start = np.where(counts.ravel() > 0, start, 0)

    def cells(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the cell of each point, to be clipped, shape (n,).

        Points beyond the grid have any cell: they are outside of all geoms.
        """
        start_x, start_y = self._origin
        scale = self._scale
        col = ((x - start_x) * scale).astype(np.int32)
        row = ((y - start_y) * scale).astype(np.int32)
        col *= self._shape[1]
        col += row
        return col.astype(np.int64)

    def first(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the first entry of the cell of each point, 0 if it has none, shape (n,)."""
        return self.start.take(self.cells(x, y), mode="clip")

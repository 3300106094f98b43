"""Rays of the native engine: `mujoco.batch` casts those for which there is no shorter way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco
import numpy as np
import torch

from manyworlds.sim.engines.vertical_rays import VerticalHits, VerticalRays
from manyworlds.sim.rays import DoubleBuffers, Rays

if TYPE_CHECKING:
    from mujoco.batch import Batch

# Model fields that determine places and shapes, and those that determine what rays pass through.
_GEOM_FIELDS = frozenset(
    {"geom_bodyid", "geom_dataid", "geom_pos", "geom_quat", "geom_sameframe", "geom_size"}
    | {"geom_type"}
)
_BODY_FIELDS = frozenset(
    {"body_mocapid", "body_parentid", "body_pos", "body_quat", "body_sameframe", "body_weldid"}
)
_COLOR_FIELDS = frozenset({"geom_rgba", "mat_rgba"})
_VISIBILITY_FIELDS = _COLOR_FIELDS | {"geom_group", "geom_matid"}
_FIELDS = _GEOM_FIELDS | _BODY_FIELDS | _VISIBILITY_FIELDS

# Typical times [ns]: of MuJoCo for the pose of a body or geom of one world, and for a ray and a
# geom, on one of its threads; of `VerticalRays`, which uses one thread, for a ray and for a call.
# The time for a pose is an estimate, not a measurement.
_POSE_NS = 30
_GEOM_NS = 10
_RAY_NS = 60
_CALL_NS = 200_000


class RayRequest(NamedTuple):
    """Arguments of `mujoco.batch.Batch.ray`, with rays as tensors."""

    pnt: torch.Tensor
    """Origins in the world frame [m], shape (n, nray, 3)."""
    vec: torch.Tensor
    """Directions, likewise."""
    geomgroup: Sequence[int] | None
    flg_static: bool
    bodyexclude: np.ndarray
    """Ids of bodies, shape (nray,)."""
    ids: np.ndarray | None
    """Ids of the worlds, ascending, shape (n,); None for all."""


@dataclass
class _Table:
    """Geoms of some groups, apart from those that move."""

    fixed: VerticalRays
    bodies: np.ndarray
    """Ids of the bodies with these geoms."""
    moving: bool
    """Rays can also hit geoms that move."""


class NativeRays:
    """Casts rays in the worlds of a batch.

    `VerticalRays` finds the hits of vertical rays on geoms that are the same, at the same place, in
    all worlds. MuJoCo adds hits on geoms that move, and casts the remaining rays. If rows of any
    world move or change a geom that is fixed in the compiled model, MuJoCo casts all rays.

    Args:
        batch: the worlds.
        compiled: all fields of the model as compiled, by name.
        call: calls a function of the batch and translates its errors.
    """

    def __init__(
        self, batch: Batch, compiled: Mapping[str, np.ndarray], call: Callable[..., Any]
    ) -> None:
        self._batch = batch
        self._compiled = compiled
        self._call = call
        # MuJoCo's rays call these static. Bodies of motion capture are not welded to the world.
        self._bodies = compiled["body_weldid"] == 0
        self._geoms = self._bodies[compiled["geom_bodyid"]]
        self._num_fixed = int(self._geoms.sum())
        self._num_poses = len(self._bodies) + len(self._geoms)
        self._tables: dict[tuple[tuple[bool, ...] | None, bool], _Table | None] = {}
        self._written: set[str] = set()
        self._moved: set[str] = set()
        """Fields whose rows move, change or hide fixed geoms."""
        self._shown: set[str] = set()
        """Fields whose rows show or hide any geoms."""
        self._doubles = DoubleBuffers()

    def note_written(self, fields: Collection[str]) -> None:
        """Note that rows of these model fields were written."""
        self._written |= _FIELDS.intersection(fields)

    def cast(self, request: RayRequest, rows: Mapping[str, np.ndarray]) -> Rays:
        """Cast rays; `rows` are those of all expanded model fields."""
        hits = self._search(request, rows)
        if hits is None:
            dist, geomid, normal = self._mujoco(request)
        else:
            dist, geomid, normal = hits.dist, hits.geomid, hits.normal
        return Rays(
            torch.from_numpy(dist).float(),
            torch.from_numpy(geomid),
            torch.from_numpy(normal).float(),
        )

    def _mujoco(self, request: RayRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cast rays on the thread pool, which computes kinematics from each world's state."""
        pnt, vec, *others = request
        origins = self._doubles.copy("pnt", pnt)
        directions = self._doubles.copy("vec", vec)
        return self._call(self._batch.ray, origins, directions, *others, True)

    def _search(self, request: RayRequest, rows: Mapping[str, np.ndarray]) -> VerticalHits | None:
        """Search for vertical rays' hits on fixed geoms; None if MuJoCo has to cast most rays."""
        pnt, vec, geomgroup, flg_static, exclude, _ = request
        if not (flg_static and self._worthwhile(pnt) and self._fixed_alike(rows)):
            return None
        table = self._table(geomgroup, rows)
        if table is None:
            return None
        hits = table.fixed.cast(pnt.numpy(), vec.numpy())
        if hits is None:
            return None
        hits.undecided |= np.isin(exclude, table.bodies)
        counts = hits.undecided.sum(axis=1)
        # MuJoCo takes the same number of rays in each world.
        if np.count_nonzero(counts) * counts.max() > 0.5 * hits.undecided.size:
            return None
        if table.moving:
            self._add_moving(hits, request)
        if counts.any():
            self._decide(hits, counts, request)
        return hits

    def _add_moving(self, hits: VerticalHits, request: RayRequest) -> None:
        """Replace hits by those on nearer geoms that move; of equal ones the lower id counts."""
        dist, geomid, normal = self._mujoco(request._replace(flg_static=False))
        nearer = (hits.geomid < 0) | (dist < hits.dist)
        nearer |= (dist == hits.dist) & (geomid < hits.geomid)
        nearer &= geomid >= 0
        hits.dist[nearer] = dist[nearer]
        hits.geomid[nearer] = geomid[nearer]
        hits.normal[nearer] = normal[nearer]

    def _decide(self, hits: VerticalHits, counts: np.ndarray, request: RayRequest) -> None:
        """Let MuJoCo cast the undecided rays, `counts` in each row."""
        rows = np.flatnonzero(counts)
        # Rows with fewer undecided rays have others cast as well, with the same hits.
        columns = np.argsort(~hits.undecided[rows], axis=1, kind="stable")[:, : counts.max()]
        index = rows[:, None], columns
        part = torch.from_numpy(rows)[:, None], torch.from_numpy(columns)
        ids = rows.astype(np.int32)
        if request.ids is not None:
            ids = request.ids[rows]
        found = self._mujoco(
            request._replace(
                pnt=request.pnt[part],
                vec=request.vec[part],
                bodyexclude=request.bodyexclude[columns],
                ids=ids,
            )
        )
        hits.dist[index], hits.geomid[index], hits.normal[index] = found

    def _worthwhile(self, pnt: torch.Tensor) -> bool:
        """Return whether MuJoCo alone would take longer for rays of shape (n, nray, 3)."""
        worlds = pnt.shape[0]
        count = pnt.shape[0] * pnt.shape[1]
        threads = max(min(worlds, self._batch.nthread), 1)
        theirs = _POSE_NS * worlds * self._num_poses + _GEOM_NS * count * self._num_fixed
        return theirs / threads > _RAY_NS * count + _CALL_NS

    def _fixed_alike(self, rows: Mapping[str, np.ndarray]) -> bool:
        """Return whether fixed geoms are in all worlds as compiled."""
        for field in self._written:
            written = rows[field]
            compiled = self._compiled[field]
            if field in _COLOR_FIELDS:
                written = written[..., 3] == 0
                compiled = compiled[:, 3] == 0
            differs = (written.reshape(len(written), *compiled.shape) != compiled).any(axis=0)
            differs = differs.reshape(len(compiled), -1).any(axis=1)
            self._shown.discard(field)
            if field in _VISIBILITY_FIELDS and differs.any():
                self._shown.add(field)
            self._moved.discard(field)
            if (differs & self._fixed_elements(field)).any():
                self._moved.add(field)
        self._written.clear()
        return not self._moved

    def _fixed_elements(self, field: str) -> np.ndarray | bool:
        """Return a mask of the elements of a field that concern fixed geoms; True for all."""
        if field.startswith("mat_"):
            return True
        if field in _BODY_FIELDS:
            return self._bodies
        return self._geoms

    def _table(
        self, geomgroup: Sequence[int] | None, rows: Mapping[str, np.ndarray]
    ) -> _Table | None:
        """Return the table of these groups; None if MuJoCo has to cast all rays."""
        groups: tuple[bool, ...] | None = None
        if geomgroup is not None:
            groups = tuple(map(bool, geomgroup))
        key = (groups, bool(self._shown))
        if key not in self._tables:
            self._tables[key] = self._build(groups, rows)
        return self._tables[key]

    def _build(
        self, groups: tuple[bool, ...] | None, rows: Mapping[str, np.ndarray]
    ) -> _Table | None:
        fields = self._compiled
        visible = _visible(fields, groups)
        fixed = np.flatnonzero(visible & self._geoms)
        # If rows show or hide geoms, any geom that is not fixed may be visible in some world.
        others = ~self._geoms & (visible | bool(self._shown))
        if not len(fixed):
            return None
        model = self._batch.get_model(0)
        if model.nflex:
            return None  # rays may hit flexes, too
        for field in {*_FIELDS, "geom_aabb"}.intersection(rows):
            getattr(model, field)[:] = fields[field]
        bodies = np.unique(fields["geom_bodyid"][fixed])
        return _Table(VerticalRays(model, fixed), bodies, bool(others.any()))


def _visible(fields: Mapping[str, np.ndarray], groups: tuple[bool, ...] | None) -> np.ndarray:
    """Return a mask of the geoms that are in the groups and not transparent."""
    material = fields["geom_matid"]
    alpha = np.append(fields["mat_rgba"][:, 3], 0.0)[material]
    visible = np.where(material < 0, fields["geom_rgba"][:, 3], alpha) != 0
    if groups is not None:
        visible &= np.array(groups)[np.clip(fields["geom_group"], 0, mujoco.mjNGROUP - 1)]
    return visible

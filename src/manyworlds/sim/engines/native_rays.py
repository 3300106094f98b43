"""Rays of the native engine: `mujoco.batch` casts those for which there is no shorter way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch

from manyworlds.sim.engines.vertical_rays import VerticalHits, VerticalRays
from manyworlds.sim.rays import DoubleBuffers, Rays
from manyworlds.validation.worlds import Worlds

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

# If geoms that move are visible, MuJoCo goes through all geoms for these anyway. Then fewer fixed
# geoms than this are not worth a second search.
_MIN_FIXED = 8


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
        self._batch, self._compiled, self._call = batch, compiled, call
        self._bodies = _fixed_bodies(compiled)
        self._geoms = self._bodies[compiled["geom_bodyid"]]
        self._tables: dict[Any, _Table | None] = {}
        self._written: set[str] = set()
        self._differing: set[str] = set()
        self._doubles = DoubleBuffers()

    def note_written(self, fields: Collection[str]) -> None:
        """Note that rows of these model fields were written."""
        self._written |= _FIELDS.intersection(fields)

    def cast(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        bodyexclude: torch.Tensor,
        worlds: Worlds,
        rows: Mapping[str, np.ndarray],
    ) -> Rays:
        """Cast rays as `Simulation.ray` does; `rows` are all expanded model fields."""
        exclude = bodyexclude.numpy()
        table = None
        if flg_static and self._fixed_alike(rows):
            table = self._table(geomgroup, rows)
        if table is not None:
            hits = table.fixed.cast(pnt.numpy(), vec.numpy())
            hits.undecided |= np.isin(exclude, table.bodies)
            undecided = np.flatnonzero(hits.undecided.any(axis=1))
            width = int(hits.undecided.sum(axis=1).max(initial=0))
            # MuJoCo takes the same number of rays in each world.
            if len(undecided) * width <= 0.5 * hits.undecided.size:
                if table.moving:
                    self._add_moving(hits, pnt, vec, geomgroup, exclude, worlds)
                if width:
                    self._decide(hits, undecided, width, pnt, vec, geomgroup, exclude, worlds)
                dist, geomid, normal = map(torch.from_numpy, (hits.dist, hits.geomid, hits.normal))
                return Rays(dist.float(), geomid, normal)
        found = self._mujoco(pnt, vec, geomgroup, flg_static, exclude, worlds.host_ids_or_none)
        dist, geomid, normal = map(torch.from_numpy, found)
        return Rays(dist.float(), geomid, normal.float())

    def _mujoco(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        exclude: np.ndarray,
        ids: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cast rays on the thread pool, which computes kinematics from each world's state."""
        origins, directions = self._doubles.copy("pnt", pnt), self._doubles.copy("vec", vec)
        cast = self._batch.ray
        return self._call(cast, origins, directions, geomgroup, flg_static, exclude, ids, True)

    def _add_moving(
        self,
        hits: VerticalHits,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        exclude: np.ndarray,
        worlds: Worlds,
    ) -> None:
        """Replace hits by those on nearer geoms that move; of equal ones the lower id counts."""
        ids = worlds.host_ids_or_none
        dist, geomid, normal = self._mujoco(pnt, vec, geomgroup, False, exclude, ids)
        nearer = (hits.geomid < 0) | (dist < hits.dist)
        nearer |= (dist == hits.dist) & (geomid < hits.geomid)
        nearer &= geomid >= 0
        hits.dist[nearer], hits.geomid[nearer] = dist[nearer], geomid[nearer]
        hits.normal[nearer] = normal[nearer]

    def _decide(
        self,
        hits: VerticalHits,
        rows: np.ndarray,
        width: int,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        exclude: np.ndarray,
        worlds: Worlds,
    ) -> None:
        """Let MuJoCo cast the undecided rays, at most `width` in each of some rows."""
        # Rows with fewer undecided rays have others cast as well, with the same hits.
        columns = np.argsort(~hits.undecided[rows], axis=1, kind="stable")[:, :width]
        part = torch.from_numpy(rows)[:, None], torch.from_numpy(columns)
        found = self._mujoco(
            pnt[part], vec[part], geomgroup, True, exclude[columns], worlds.host_ids[rows]
        )
        index = rows[:, None], columns
        hits.dist[index], hits.geomid[index], hits.normal[index] = found

    def _fixed_alike(self, rows: Mapping[str, np.ndarray]) -> bool:
        """Return whether fixed geoms are in all worlds as compiled."""
        for field in self._written:
            written, compiled = rows[field], self._compiled[field]
            if field in _COLOR_FIELDS:
                written, compiled = written[..., 3] == 0, compiled[:, 3] == 0
            if not field.startswith("mat_"):
                fixed = self._bodies if field in _BODY_FIELDS else self._geoms
                written, compiled = written[:, fixed], compiled[fixed]
            if written.size and (written.reshape(len(written), *compiled.shape) != compiled).any():
                self._differing.add(field)
            else:
                self._differing.discard(field)
        self._written.clear()
        return not self._differing

    def _table(
        self, geomgroup: Sequence[int] | None, rows: Mapping[str, np.ndarray]
    ) -> _Table | None:
        """Return the table of these groups; None if MuJoCo has to cast all rays."""
        groups = None if geomgroup is None else tuple(map(bool, geomgroup))
        # Then geoms that move may be visible in some worlds only.
        varying = not _VISIBILITY_FIELDS.isdisjoint(rows)
        key = groups, varying
        if key not in self._tables:
            self._tables[key] = self._build(groups, varying, rows)
        return self._tables[key]

    def _build(
        self, groups: tuple[bool, ...] | None, varying: bool, rows: Mapping[str, np.ndarray]
    ) -> _Table | None:
        fields = self._compiled
        visible = _visible(fields, groups)
        fixed = np.flatnonzero(visible & self._geoms)
        others = ~self._geoms & (visible | varying)
        if len(fixed) < (_MIN_FIXED if others.any() else 1):
            return None
        # MuJoCo calls bodies of motion capture static: it cannot leave out only those that are.
        carried = fields["body_weldid"][fields["geom_bodyid"]] == 0
        model = self._batch.get_model(0)
        if model.nflex or (others & carried).any():
            return None
        for field in {*_FIELDS, "geom_aabb"}.intersection(rows):
            getattr(model, field)[:] = fields[field]
        bodies = np.unique(fields["geom_bodyid"][fixed])
        return _Table(VerticalRays(model, fixed), bodies, bool(others.any()))


def _fixed_bodies(fields: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a mask of the bodies that neither joints nor motion capture can move."""
    fixed = (fields["body_weldid"] == 0) & (fields["body_mocapid"] < 0)
    for body, parent in enumerate(fields["body_parentid"].tolist()):
        fixed[body] &= fixed[parent]
    return fixed


def _visible(fields: Mapping[str, np.ndarray], groups: tuple[bool, ...] | None) -> np.ndarray:
    """Return a mask of the geoms that are in the groups and not transparent."""
    material = fields["geom_matid"]
    alpha = np.append(fields["mat_rgba"][:, 3], 0.0)[material]
    visible = np.where(material < 0, fields["geom_rgba"][:, 3], alpha) != 0
    if groups is not None:
        visible &= np.array(groups)[np.clip(fields["geom_group"], 0, mujoco.mjNGROUP - 1)]
    return visible

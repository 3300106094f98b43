"""Overlays of contacts, wireframes, joints, sites and tendons over one world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser.line_groups import LineGroups
from manyworlds.viewer.browser.overlays import shapes as draw
from manyworlds.viewer.browser.overlays.captures import (
    Capture,
    CapturedContacts,
    CapturedJoints,
    CapturedTendons,
)
from manyworlds.viewer.browser.shapes import SOLID_GEOMS, Instances, Shape, ShapeLayer
from manyworlds.viewer.browser.shapes import merge_instances as merge

if TYPE_CHECKING:
    import viser

CAPTURES: dict[str, type[Capture]] = {
    "contact_points": CapturedContacts,
    "contact_forces": CapturedContacts,
    "joints": CapturedJoints,
    "tendons": CapturedTendons,
}
"""Captures that each overlay requires, by its name; the others require poses only."""
_GRAVITY = 9.81
_NONE = np.zeros(0, int)


@dataclass
class Selection:
    """Elements for which overlays are drawn."""

    contact_points: bool = False
    contact_forces: bool = False
    friction: bool = False
    """True if force arrows include friction; otherwise they show the normal component."""
    force_scale: float = 0.001
    """Length of force arrows [m/N]."""
    tendons: bool = False
    wireframes: np.ndarray = field(default_factory=lambda: _NONE)
    """Geoms with a wireframe."""
    joints: np.ndarray = field(default_factory=lambda: _NONE)
    """Ids of joints with axis and range; only hinge and slide joints have them."""
    sites: np.ndarray = field(default_factory=lambda: _NONE)


class WorldOverlays:
    """Overlays of one world, as shapes and lines in a frame of the scene.

    Args:
        server: server of the page.
        model: the world's compiled model; changes in it are drawn.
        path: name of the frame in the scene, in which world coordinates are drawn.
    """

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel, path: str) -> None:
        self._server = server
        self._model = model
        self.shapes = ShapeLayer(server, f"{path}/shapes", model)
        """Arrows, discs, tubes, and the shapes that a page adds."""
        self.radius = float(np.clip(0.2 * model.stat.meansize, 0.005, 0.1))
        """Radius of contact discs, and smallest size of sites [m]."""
        self.length = float(np.clip(1.5 * model.stat.meansize, 0.04, 0.3))
        """Half of the length of joint axes [m]."""
        self.wireframes: LineGroups[int] = LineGroups(
            server, f"{path}/wireframe", lambda geom: draw.geom_lines(model, geom)
        )
        self.joints: LineGroups[tuple[int, bool]] = LineGroups(
            server,
            f"{path}/joint",
            lambda key: draw.joint_lines(model, key[0], self.length, key[1]),
        )
        self.sites: LineGroups[int] = LineGroups(
            server, f"{path}/site", lambda site: draw.site_lines(model, site, self.radius)
        )

    def show(
        self,
        poses: draw.Poses,
        captured: Mapping[type[Capture], Capture],
        selection: Selection,
        more: Iterable[tuple[Shape, Instances]] = (),
    ) -> None:
        """Draw what is selected, and nothing else.

        Args:
            poses: state of the world.
            captured: captures by type; an overlay whose capture is missing is left out.
            selection: elements to draw.
            more: additional shapes.
        """
        drawing = draw.Drawing(list(more))
        self._add_shapes(drawing, poses, captured, selection)
        with self._server.atomic():
            self.shapes.show(merge(drawing.shapes))
            joints = captured.get(CapturedJoints)
            if not isinstance(joints, CapturedJoints):
                joints = None
            self._show_lines(poses, joints, selection)

    def remove(self) -> None:
        """Remove everything from the scene."""
        for part in (self.shapes, self.wireframes, self.joints, self.sites):
            part.remove()

    def _add_shapes(
        self,
        drawing: draw.Drawing,
        poses: draw.Poses,
        captured: Mapping[type[Capture], Capture],
        selection: Selection,
    ) -> None:
        """Add contacts, tendons and other shapes to the drawing."""
        contacts = captured.get(CapturedContacts)
        if isinstance(contacts, CapturedContacts) and selection.contact_points:
            draw.contact_points(drawing, contacts, self.radius)
        if isinstance(contacts, CapturedContacts) and selection.contact_forces:
            forces = contacts.along_normals
            if selection.friction:
                forces = contacts.forces
            scale = selection.force_scale
            radius = self.radius / 4
            draw.contact_forces(drawing, contacts.positions, forces, scale, radius)
        tendons = captured.get(CapturedTendons)
        if isinstance(tendons, CapturedTendons) and selection.tendons:
            draw.tendons(drawing, self._model, poses, tendons)

    def _show_lines(
        self, poses: draw.Poses, joints: CapturedJoints | None, selection: Selection
    ) -> None:
        """Show wireframes and the frames of joints and sites."""
        model = self._model
        geoms = selection.wireframes
        sites = selection.sites
        self.wireframes.show(
            geoms.tolist(),
            poses.geom_xpos[geoms],
            draw.quats_of(poses.geom_xmat[geoms]),
            _rows(geoms, model.geom_type, model.geom_dataid, model.geom_size),
        )
        self.sites.show(
            sites.tolist(),
            poses.site_xpos[sites],
            draw.quats_of(poses.site_xmat[sites]),
            _rows(sites, model.site_size),
        )
        ids = selection.joints
        if joints is None:
            ids = _NONE
            joints = CapturedJoints(np.zeros((0, 3)), np.zeros((0, 3)))
        keys, positions, quats = draw.joint_frames(model, poses, joints, ids)
        own = np.array([joint for joint, _ in keys], int)
        zeros = model.qpos0[model.jnt_qposadr]
        self.joints.show(keys, positions, quats, _rows(own, model.jnt_range, zeros))


def default_force_scale(model: mujoco.MjModel) -> float:
    """Return the length of arrows of forces [m/N] for a model.

    The weight of the heaviest thing that moves is as long as the longest arrow.
    """
    weight = _GRAVITY * float(model.body_subtreemass[model.body_weldid > 0].max(initial=0.1))
    return draw.LONGEST_M / weight


def convex_hull_geoms(model: mujoco.MjModel) -> np.ndarray:
    """Return the mesh geoms that have a convex hull, shape (n,)."""
    meshes = (model.geom_type == mujoco.mjtGeom.mjGEOM_MESH) & (model.geom_dataid >= 0)
    geoms = np.flatnonzero(meshes)
    return geoms[model.mesh_graphadr[model.geom_dataid[geoms]] >= 0]


def wired_geoms(model: mujoco.MjModel, bodies: np.ndarray, convex_hulls: bool) -> np.ndarray:
    """Return the geoms that have a wireframe, shape (n,).

    Args:
        model: the model.
        bodies: mask of the bodies whose colliding geoms have one, shape (nbody,).
        convex_hulls: whether those that collide as convex hulls of meshes have one, too.
    """
    wired = collider_geoms(model) & bodies[model.geom_bodyid]
    if convex_hulls:
        wired[convex_hull_geoms(model)] = True
    return np.flatnonzero(wired)


def collider_geoms(model: mujoco.MjModel) -> np.ndarray:
    """Return a mask of the geoms that can collide and have a wireframe, shape (ngeom,)."""
    return draw.is_collider(model) & np.isin(model.geom_type, SOLID_GEOMS)


def robot_bodies(model: mujoco.MjModel) -> np.ndarray:
    """Return a mask of the bodies of entities that have actuators, shape (nbody,)."""
    driven = {_entity_of(model.actuator(i).name) for i in range(model.nactuator)}
    owners = [_entity_of(model.body(i).name) for i in range(model.nbody)]
    return np.array([i > 0 and owner in driven for i, owner in enumerate(owners)], bool)


def _entity_of(name: str) -> str:
    """Return the entity of an element by the prefix of its name; empty without one."""
    entity, slash, _ = name.partition("/")
    if not slash:
        return ""
    return entity


def _rows(ids: np.ndarray, *fields: np.ndarray) -> list[bytes]:
    """Return the values of some fields in one row per element, as bytes to compare."""
    columns = np.column_stack([np.asarray(column[ids], float) for column in fields])
    return [row.tobytes() for row in columns]

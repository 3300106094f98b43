"""Overlays as shapes and lines, computed from a snapshot and what was captured with it."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field

import mujoco
import numpy as np

from manyworlds.lab.page.capture import Contacts, Joints, Tendons
from manyworlds.lab.snapshot import Snapshot
from manyworlds.viewer.viser.shapes import Instances, Shape, drawn_size, pieces

_Geom = mujoco.mjtGeom
RED, YELLOW, BLUE = (0.86, 0.16, 0.16, 1.0), (0.98, 0.77, 0.1, 1.0), (0.15, 0.5, 0.95, 1.0)
GREY, GREEN = (0.62, 0.65, 0.68, 1.0), (0.2, 0.7, 0.35, 1.0)
TYPE_COLORS = {
    _Geom.mjGEOM_BOX: (0.1, 0.75, 0.85, 1.0),
    _Geom.mjGEOM_MESH: (0.85, 0.25, 0.8, 1.0),
}
"""Colours of collision shapes; all round ones are green."""
METERS_PER_NEWTON = 0.001
LONGEST_NEWTONS = 1000.0
_ARC = 20
_MESH_NUMBER = 1000


@dataclass
class Drawing:
    """What overlays draw."""

    shapes: list[tuple[Shape, Instances]] = field(default_factory=list)
    lines: list[np.ndarray] = field(default_factory=list)
    """Ends of lines [m], each of shape (n, 2, 3)."""
    colors: list[np.ndarray] = field(default_factory=list)
    """Colours of lines, uint8, each of shape (n, 3)."""

    def add_lines(self, points: np.ndarray, rgba: tuple[float, ...]) -> None:
        """Draw lines of one colour."""
        self.lines.append(points)
        color = (255 * np.array(rgba[:3])).astype(np.uint8)
        self.colors.append(np.tile(color, (len(points), 1)))

    def add(
        self,
        kind: int,
        positions: np.ndarray,
        quats: np.ndarray,
        size: np.ndarray,
        rgba: np.ndarray,
    ) -> None:
        """Draw geoms of one type, or of the mesh `kind // _MESH_NUMBER - 1`."""
        if not len(positions):
            return
        mesh, kind = divmod(int(kind), _MESH_NUMBER)
        axis = _rotated_z(quats)
        rgba = np.broadcast_to(rgba, (len(positions), 4))
        for shape, along, scale in pieces(kind, mesh - 1, size):
            where = positions + along[:, None] * axis
            worlds = np.zeros(len(positions), int)
            self.shapes.append((shape, Instances(where, quats, scale, rgba, worlds)))


def contact_points(drawing: Drawing, contacts: Contacts, radius: float) -> None:
    """Draw a ball at each contact."""
    count = len(contacts.positions)
    size = np.full((count, 3), radius)
    drawing.add(int(_Geom.mjGEOM_SPHERE), contacts.positions, _identity(count), size, np.array(RED))


def contact_forces(drawing: Drawing, contacts: Contacts, radius: float) -> None:
    """Draw an arrow along the normal of each contact, 1 mm a newton and at most 1 m."""
    length = np.minimum(contacts.forces, LONGEST_NEWTONS) * METERS_PER_NEWTON
    size = np.column_stack([np.full((len(length), 2), radius / 2), length])
    quats = quats_along(contacts.normals)
    drawing.add(int(_Geom.mjGEOM_ARROW), contacts.positions, quats, size, np.array(YELLOW))


def joint_axes(
    drawing: Drawing,
    model: mujoco.MjModel,
    snapshot: Snapshot,
    joints: Joints,
    ids: np.ndarray,
    length: float,
) -> None:
    """Draw axes of hinges and slides, and of limited ones the range, where they are, and 0."""
    for joint in ids.tolist():
        kind = int(model.jnt_type[joint])
        if kind not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            continue
        anchor, axis = joints.anchors[joint], joints.axes[joint]
        drawing.add_lines(np.array([[anchor - length * axis, anchor + length * axis]]), BLUE)
        low, high = model.jnt_range[joint]
        q = float(snapshot.qpos[model.jnt_qposadr[joint]])
        if not model.jnt_limited[joint]:
            continue
        if kind == mujoco.mjtJoint.mjJNT_SLIDE:
            ends = anchor + np.outer([low - q, high - q], axis)
            drawing.add_lines(ends[None], GREEN)
            continue
        side = _side(snapshot.xquat[model.jnt_bodyid[joint]], model.jnt_axis[joint])

        def at(angle: float, side=side, axis=axis, anchor=anchor, q=q) -> np.ndarray:
            turned = np.cos(angle - q) * side + np.sin(angle - q) * np.cross(axis, side)
            return anchor + 0.7 * length * turned

        arc = np.array([at(angle) for angle in np.linspace(low, high, _ARC + 1)])
        drawing.add_lines(np.stack([arc[:-1], arc[1:]], axis=1), GREEN)
        drawing.add_lines(np.array([[anchor, at(q)]]), RED)
        drawing.add_lines(
            np.array([[anchor, at(float(model.qpos0[model.jnt_qposadr[joint]]))]]), GREY
        )


def sites(drawing: Drawing, model: mujoco.MjModel, snapshot: Snapshot, ids: np.ndarray) -> None:
    """Draw a cross at each site, along its axes and at least 2 cm wide."""
    if not len(ids):
        return
    half = np.maximum(model.site_size[ids].max(axis=1), 0.01)
    axes = snapshot.site_xmat[ids].reshape(-1, 3, 3).transpose(0, 2, 1) * half[:, None, None]
    center = snapshot.site_xpos[ids][:, None]
    lines = np.stack([center - axes, center + axes], axis=2).reshape(-1, 2, 3)
    drawing.add_lines(lines, BLUE)


def tendons(drawing: Drawing, model: mujoco.MjModel, snapshot: Snapshot, found: Tendons) -> None:
    """Draw tendons as tubes: red the more they are stretched within their range."""
    if not len(found.ids):
        return
    along = found.points[:, 1] - found.points[:, 0]
    length = np.linalg.norm(along, axis=1)
    low, high = model.tendon_range[found.ids].T
    rest = model.tendon_length0[found.ids]
    low = np.where(high > low, low, 0.5 * rest)
    high = np.where(high > low, high, 1.5 * rest)
    stretch = np.clip((snapshot.ten_length[found.ids] - low) / np.maximum(high - low, 1e-9), 0, 1)
    rgba = np.outer(stretch, RED) + np.outer(1 - stretch, BLUE)
    radius = model.tendon_width[found.ids]
    size = np.column_stack([radius, radius, length / 2])
    quats = quats_along(along / np.maximum(length, 1e-9)[:, None])
    drawing.add(int(_Geom.mjGEOM_CYLINDER), found.points.mean(axis=1), quats, size, rgba)


def solid_geoms(
    drawing: Drawing, model: mujoco.MjModel, snapshot: Snapshot, geoms: np.ndarray, rgba: np.ndarray
) -> None:
    """Draw geoms in colours that are not their own, shape (len(geoms), 4)."""
    kinds = model.geom_type[geoms] + _MESH_NUMBER * (
        (model.geom_type[geoms] == _Geom.mjGEOM_MESH) * (model.geom_dataid[geoms] + 1)
    )
    for kind in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        own = geoms[rows]
        size = drawn_size(kind % _MESH_NUMBER, model.geom_size[own])
        drawing.add(
            kind, snapshot.geom_xpos[own], quats_of(snapshot.geom_xmat[own]), size, rgba[rows]
        )


def is_collider(model: mujoco.MjModel) -> np.ndarray:
    """Which geoms can touch anything, or are in the group that is meant for those."""
    return (model.geom_contype != 0) | (model.geom_conaffinity != 0) | (model.geom_group == 3)


def type_color(kind: int) -> tuple[float, float, float, float]:
    """The colour of a collision shape."""
    return TYPE_COLORS.get(mujoco.mjtGeom(kind), GREEN)


def id_color(number: int) -> tuple[float, float, float, float]:
    """A colour for a number, far from those of its neighbours; grey for -1."""
    if number < 0:
        return GREY
    return (*colorsys.hsv_to_rgb((0.6 + 0.618034 * number) % 1.0, 0.6, 0.9), 1.0)


def quats_of(matrices: np.ndarray) -> np.ndarray:
    """Quaternions (w, x, y, z) of rotation matrices in any layout of nine numbers each."""
    quats = np.empty((len(matrices), 4))
    for i, matrix in enumerate(matrices.reshape(-1, 9)):
        mujoco.mju_mat2Quat(quats[i], np.ascontiguousarray(matrix))
    return quats


def quats_along(directions: np.ndarray) -> np.ndarray:
    """Quaternions that turn the z axis into unit vectors, shape (n, 4)."""
    quats = np.empty((len(directions), 4))
    for i, direction in enumerate(directions):
        mujoco.mju_quatZ2Vec(quats[i], np.ascontiguousarray(direction))
    return quats


def _identity(count: int) -> np.ndarray:
    return np.tile((1.0, 0.0, 0.0, 0.0), (count, 1))


def _rotated_z(quats: np.ndarray) -> np.ndarray:
    w, x, y, z = quats.T
    return np.column_stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])


def _side(quat: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """A direction across a joint's axis that is fixed in its body, in the world."""
    least = np.eye(3)[np.abs(axis).argmin()]
    local = np.cross(axis, least)
    side = np.empty(3)
    mujoco.mju_rotVecQuat(side, local / np.linalg.norm(local), np.ascontiguousarray(quat))
    return side

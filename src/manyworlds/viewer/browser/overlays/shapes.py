"""Shapes and lines of overlays, computed from poses and captures of one world."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field
from typing import Protocol

import mujoco
import numpy as np

from manyworlds.viewer.browser.geom_meshes import drawn_size
from manyworlds.viewer.browser.line_groups import Lines
from manyworlds.viewer.browser.overlays.captures import (
    CapturedContacts,
    CapturedJoints,
    CapturedTendons,
)
from manyworlds.viewer.browser.shapes import (
    Instances,
    Shape,
    pieces,
    rotate,
    surface_colors,
)
from manyworlds.viewer.browser.wireframes import wireframe_points

_Geom = mujoco.mjtGeom
RED = (0.86, 0.16, 0.16, 1.0)
YELLOW = (0.98, 0.77, 0.1, 1.0)
BLUE = (0.15, 0.5, 0.95, 1.0)
GRAY = (0.62, 0.65, 0.68, 1.0)
GREEN = (0.2, 0.7, 0.35, 1.0)
TYPE_COLORS = {
    _Geom.mjGEOM_BOX: (0.1, 0.75, 0.85, 1.0),
    _Geom.mjGEOM_MESH: (0.85, 0.25, 0.8, 1.0),
}
"""Colors of collision shapes; all round ones are green."""
LONGEST_M = 1.0
"""Length of the longest arrow [m]."""
_ARC = 20
_MESH_NUMBER = 1000


class Poses(Protocol):
    """State of one world, as `mujoco.MjData` has it."""

    @property
    def qpos(self) -> np.ndarray:
        """Joint positions [rad or m], shape (nq,)."""
        ...

    @property
    def xpos(self) -> np.ndarray:
        """Positions of the bodies [m], shape (nbody, 3)."""
        ...

    @property
    def xquat(self) -> np.ndarray:
        """Orientations of the bodies (w, x, y, z), shape (nbody, 4)."""
        ...

    @property
    def geom_xpos(self) -> np.ndarray:
        """Positions of the geoms [m], shape (ngeom, 3)."""
        ...

    @property
    def geom_xmat(self) -> np.ndarray:
        """Rotation matrices of the geoms, shape (ngeom, 9)."""
        ...

    @property
    def site_xpos(self) -> np.ndarray:
        """Positions of the sites [m], shape (nsite, 3)."""
        ...

    @property
    def site_xmat(self) -> np.ndarray:
        """Rotation matrices of the sites, shape (nsite, 9)."""
        ...

    @property
    def ten_length(self) -> np.ndarray:
        """Lengths of the tendons [m], shape (ntendon,)."""
        ...


@dataclass
class Drawing:
    """Shapes of overlays."""

    shapes: list[tuple[Shape, Instances]] = field(default_factory=list)

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
        axis = rotate(quats, np.array([[0.0, 0.0, 1.0]]))
        rgba = np.broadcast_to(rgba, (len(positions), 4))
        for shape, along, scale in pieces(kind, mesh - 1, size):
            where = positions + along[:, None] * axis
            worlds = np.zeros(len(positions), int)
            self.shapes.append((shape, Instances(where, quats, scale, rgba, worlds)))


def contact_points(drawing: Drawing, contacts: CapturedContacts, radius: float) -> None:
    """Draw a disc at each contact, perpendicular to its normal, as MuJoCo does."""
    size = np.tile((radius, radius, radius / 5), (len(contacts.positions), 1))
    quats = quats_along(contacts.normals)
    drawing.add(int(_Geom.mjGEOM_CYLINDER), contacts.positions, quats, size, np.array(RED))


def contact_forces(
    drawing: Drawing, positions: np.ndarray, forces: np.ndarray, scale: float, radius: float
) -> None:
    """Draw forces as arrows.

    Args:
        drawing: drawing to add to.
        positions: tails of the arrows [m], shape (n, 3).
        forces: forces [N], shape (n, 3).
        scale: length of an arrow [m/N]; none is longer than `LONGEST_M`.
        radius: radius of a shaft [m].
    """
    newtons = np.linalg.norm(forces, axis=1)
    some = newtons > 0.0
    length = np.minimum(newtons[some] * scale, LONGEST_M)
    size = np.column_stack([np.full((len(length), 2), radius), length])
    quats = quats_along(forces[some] / newtons[some, None])
    drawing.add(int(_Geom.mjGEOM_ARROW), positions[some], quats, size, np.array(YELLOW))


def joint_lines(model: mujoco.MjModel, joint: int, length: float, moves: bool) -> Lines:
    """Return the lines of a hinge or slide joint, in a frame whose z axis is the joint's.

    Args:
        model: the compiled model.
        joint: index of the joint.
        length: half of the axis [m].
        moves: True for the lines that move with the joint's body, False for the fixed ones: the
            range, with 0 along x for a hinge and at the frame's origin for a slide.
    """
    low, high = model.jnt_range[joint]
    zero = model.qpos0[model.jnt_qposadr[joint]]
    axis = np.array([[[0.0, 0.0, -length], [0.0, 0.0, length]]])
    if is_slide(model, joint):
        if moves:
            return _colored((axis, BLUE))
        return _colored((np.array([[[0.0, 0.0, low], [0.0, 0.0, high]]]), GREEN))

    def at(angle: float | np.ndarray) -> np.ndarray:
        return 0.7 * length * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=-1)

    if moves:
        return _colored((np.stack([np.zeros(3), at(0.0)])[None], RED))
    if not model.jnt_limited[joint]:
        return _colored((axis, BLUE))
    arc = at(np.linspace(low, high, _ARC + 1))
    pieces_of_arc = np.stack([arc[:-1], arc[1:]], axis=1)
    hand = np.stack([np.zeros(3), at(zero)])[None]
    return _colored((axis, BLUE), (pieces_of_arc, GREEN), (hand, GRAY))


def joint_frames(
    model: mujoco.MjModel, poses: Poses, joints: CapturedJoints, ids: np.ndarray
) -> tuple[list[tuple[int, bool]], np.ndarray, np.ndarray]:
    """Return the frames of the lines of hinge and slide joints.

    Returns:
        Joint, and whether the lines move with its body, for each of n groups of lines; positions
        [m], shape (n, 3); quaternions, shape (n, 4).
    """
    keys = []
    positions = []
    matrices = []
    for joint in ids.tolist():
        anchor = joints.anchors[joint]
        axis = joints.axes[joint]
        q = float(poses.qpos[model.jnt_qposadr[joint]])
        side = _side(poses.xquat[model.jnt_bodyid[joint]], model.jnt_axis[joint])
        across = np.cross(axis, side)
        slides = is_slide(model, joint)
        limited = bool(model.jnt_limited[joint])
        if slides or limited:
            keys.append((joint, True))
            positions.append(anchor)
            matrices.append(np.column_stack([side, across, axis]))
        if not slides or limited:
            keys.append((joint, False))
            turn = q
            if slides:
                anchor = anchor - q * axis
                turn = 0.0
            positions.append(anchor)
            x = np.cos(turn) * side - np.sin(turn) * across
            matrices.append(np.column_stack([x, np.cross(axis, x), axis]))
    return keys, np.array(positions).reshape(-1, 3), quats_of(np.array(matrices).reshape(-1, 9))


def hinges_and_slides(model: mujoco.MjModel) -> np.ndarray:
    """Return the ids of the hinge and slide joints, shape (n,)."""
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return np.flatnonzero(np.isin(model.jnt_type, kinds))


def is_slide(model: mujoco.MjModel, joint: int) -> bool:
    """Return True if a joint is a slide joint."""
    return model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE


def site_lines(model: mujoco.MjModel, site: int, least: float) -> Lines:
    """Return a cross along a site's axes, as large as the site, and at least `least` [m]."""
    half = max(float(model.site_size[site].max()), least)
    return _colored((half * np.stack([-np.eye(3), np.eye(3)], axis=1), BLUE))


def geom_lines(model: mujoco.MjModel, geom: int) -> Lines:
    """Return the wireframe of a geom, in the color of its type."""
    return _colored((wireframe_points(model, geom), type_color(int(model.geom_type[geom]))))


def tendons(drawing: Drawing, model: mujoco.MjModel, poses: Poses, found: CapturedTendons) -> None:
    """Draw tendons as tubes; the closer to the end of its range, the redder."""
    if not len(found.ids):
        return
    along = found.points[:, 1] - found.points[:, 0]
    length = np.linalg.norm(along, axis=1)
    low, high = model.tendon_range[found.ids].T
    rest = model.tendon_length0[found.ids]
    low = np.where(high > low, low, 0.5 * rest)
    high = np.where(high > low, high, 1.5 * rest)
    stretch = np.clip((poses.ten_length[found.ids] - low) / np.maximum(high - low, 1e-9), 0, 1)
    rgba = np.outer(stretch, RED) + np.outer(1 - stretch, BLUE)
    radius = model.tendon_width[found.ids]
    size = np.column_stack([radius, radius, length / 2])
    quats = quats_along(along / np.maximum(length, 1e-9)[:, None])
    drawing.add(int(_Geom.mjGEOM_CYLINDER), found.points.mean(axis=1), quats, size, rgba)


def solid_geoms(
    drawing: Drawing, model: mujoco.MjModel, poses: Poses, geoms: np.ndarray, rgba: np.ndarray
) -> None:
    """Draw geoms in other colors than their own, shape (len(geoms), 4)."""
    types = model.geom_type[geoms]
    types = np.where(types == _Geom.mjGEOM_SDF, int(_Geom.mjGEOM_MESH), types)  # they have meshes
    kinds = types + _MESH_NUMBER * ((types == _Geom.mjGEOM_MESH) * (model.geom_dataid[geoms] + 1))
    for kind in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        own = geoms[rows]
        size = drawn_size(kind % _MESH_NUMBER, model.geom_size[own])
        drawing.add(kind, poses.geom_xpos[own], quats_of(poses.geom_xmat[own]), size, rgba[rows])


def is_collider(model: mujoco.MjModel) -> np.ndarray:
    """Return a mask of the geoms that can collide or are in group 3, shape (ngeom,)."""
    return (model.geom_contype != 0) | (model.geom_conaffinity != 0) | (model.geom_group == 3)


def own_colors(model: mujoco.MjModel) -> np.ndarray:
    """Return the color of each geom, its own or its material's, shape (ngeom, 4)."""
    colors = model.geom_rgba.copy()
    plain = np.isclose(colors, (0.5, 0.5, 0.5, 1.0)).all(axis=1) & (model.geom_matid >= 0)
    colors[plain] = model.mat_rgba[model.geom_matid[plain]]
    return colors


def type_color(kind: int) -> tuple[float, float, float, float]:
    """Return the color of a collision shape."""
    return TYPE_COLORS.get(mujoco.mjtGeom(kind), GREEN)


def id_color(number: int) -> tuple[float, float, float, float]:
    """Return a color for a number, distinct from those of adjacent numbers; gray for -1."""
    if number < 0:
        return GRAY
    return (*colorsys.hsv_to_rgb((0.6 + 0.618034 * number) % 1.0, 0.6, 0.9), 1.0)


def quats_of(matrices: np.ndarray) -> np.ndarray:
    """Return quaternions (w, x, y, z), shape (n, 4), of n rotation matrices in any layout."""
    quats = np.empty((len(matrices), 4))
    for i, matrix in enumerate(matrices.reshape(-1, 9)):
        mujoco.mju_mat2Quat(quats[i], np.ascontiguousarray(matrix))
    return quats


def quats_along(directions: np.ndarray) -> np.ndarray:
    """Return quaternions that rotate the z axis to unit vectors, shape (n, 4)."""
    quats = np.empty((len(directions), 4))
    for i, direction in enumerate(directions):
        mujoco.mju_quatZ2Vec(quats[i], np.ascontiguousarray(direction))
    return quats


def _colored(*groups: tuple[np.ndarray, tuple[float, ...]]) -> Lines:
    points = [points for points, _ in groups]
    colors = [np.tile(rgba, (len(points), 1)) for points, rgba in groups]
    return np.concatenate(points), surface_colors(np.concatenate(colors))


def _side(quat: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return a direction in the world, perpendicular to a joint's axis and fixed in its body."""
    least = np.eye(3)[np.abs(axis).argmin()]
    local = np.cross(axis, least)
    side = np.empty(3)
    mujoco.mju_rotVecQuat(side, local / np.linalg.norm(local), np.ascontiguousarray(quat))
    return side

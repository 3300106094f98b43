"""Places of items: boxes around them, the ground below them, and free places for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.scene.items import ItemBounds, Pose, SceneItem
from manyworlds.lab.world.elements import RobotElements
from manyworlds.spec.elements import qpos_width

if TYPE_CHECKING:
    from manyworlds.lab.loop.snapshot import Snapshot
    from manyworlds.lab.scene.draft import ItemContent

GAP = 0.1
"""Distance between an item and a new one beside it [m]."""
_GROUND = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))
_MOST_PLACES = 200
_SAMPLES = 5  # of the ground along each side of an item
_BELOW = 1e-6  # distance behind a surface from which a ray goes on [m]

Box = tuple[np.ndarray, np.ndarray]
"""Lowest and highest corner [m], shape [3] each."""


def bounds_of(model: mujoco.MjModel, snapshot: Snapshot, item: SceneItem) -> ItemBounds:
    """Return a box around an item as it is now, planes left out.

    Raises:
        ValueError: nothing of it has an extent.
    """
    box = _box(model, _geoms_of(model, item), snapshot.geom_xpos, snapshot.geom_xmat)
    if box is None:
        raise ValueError(f"Nothing of the item '{item.name}' has an extent.")
    return ItemBounds(low=tuple(box[0].tolist()), high=tuple(box[1].tolist()))


def find_obstacles(model: mujoco.MjModel, elements: RobotElements) -> np.ndarray:
    """Return True for each geom of a robot or of what moves, shape [ngeom]; all else is ground.

    Args:
        model: model of the world.
        elements: elements of the model by the robot that they belong to.
    """
    body = model.geom_bodyid
    moves = model.body_weldid[body] != 0
    moves |= model.body_mocapid[model.body_rootid[body]] >= 0
    # A robot without a prefix has all elements of the world, the ground included.
    robots = {name for name, prefix in elements.robots.items() if prefix}
    of_robot = [owner in robots for owner in elements.owners["body"]]
    return moves | np.array(of_robot)[body]


class Surroundings:
    """Ground and obstacles around new items.

    What moves, and robots, are obstacles; all else that collides is ground, on which items stand.

    Args:
        model: model of the world.
        data: its present state, with the poses of geoms.
        elements: elements of the model by the robot that they belong to.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, elements: RobotElements) -> None:
        self._model = model
        self._data = data
        collides = (model.geom_contype | model.geom_conaffinity) != 0
        obstacles = find_obstacles(model, elements)
        self._obstacles = np.flatnonzero(obstacles)
        self._ground = collides & ~obstacles

    def place_of_new(
        self, part: ItemContent, quat: np.ndarray, near: Sequence[float] | np.ndarray = (0.0, 0.0)
    ) -> Pose:
        """Return a pose of a new item that stands on the ground and meets no obstacle.

        Heights in the item's source are above the ground; what would be in the ground is lifted.

        Args:
            part: the new item.
            quat: its orientation (wxyz), shape [4].
            near: wanted place along x and y [m]; the next one along x that is free is taken.
        """
        start = np.array([*np.asarray(near, float)[:2], 0.0])
        box = _initial_box(part, quat)
        if box is None:
            return start, quat
        return self._free_place(box, start, max(0.0, -float(box[0][2]))), quat

    def place_of_copy(self, item: SceneItem, origin: np.ndarray) -> np.ndarray:
        """Return a free place beside an item, as high above the ground as the item is.

        Args:
            item: the item.
            origin: its present position [m], shape [3].

        Returns:
            Position of the copy's origin [m], shape [3].
        """
        model = self._model
        data = self._data
        start = np.array(item.pos)
        geoms = _geoms_of(model, item)
        box = _box(model, geoms, data.geom_xpos, data.geom_xmat)
        if box is None:
            return start + np.array((1.0 + GAP, 0.0, 0.0))
        box = box[0] - origin, box[1] - origin
        others = self._ground.copy()
        others[geoms] = False
        height = start[2] - self._height_below((box[0] + start, box[1] + start), others)
        start[0] += box[1][0] - box[0][0] + GAP
        return self._free_place(box, start, height)

    def _free_place(self, box: Box, start: np.ndarray, height: float) -> np.ndarray:
        """Return the first place along x where a box meets no obstacle, nor falls onto one.

        Args:
            box: box of the item at the origin.
            start: the first place [m], shape [3].
            height: height of the item's origin above the ground [m].
        """
        low, high = box
        obstacles = self._obstacle_boxes()
        pos = start.copy()
        for _ in range(_MOST_PLACES):
            level = self._height_below((low + pos, high + pos), self._ground)
            pos[2] = level + height
            bottom = np.array((low[0] + pos[0], low[1] + pos[1], min(level, low[2] + pos[2])))
            apart = (obstacles[0] > high + pos) | (obstacles[1] < bottom)
            if apart.any(axis=1).all():
                break
            pos[0] += high[0] - low[0] + GAP
        return pos

    def _obstacle_boxes(self) -> Box:
        """Return boxes around obstacles, somewhat too large, shape [num_obstacles, 3] each."""
        model = self._model
        data = self._data
        geoms = self._obstacles
        turn = data.geom_xmat[geoms].reshape(-1, 3, 3)
        center = model.geom_aabb[geoms, :3]
        half = model.geom_aabb[geoms, 3:]
        middle = data.geom_xpos[geoms] + np.einsum("gij,gj->gi", turn, center)
        reach = np.einsum("gij,gj->gi", np.abs(turn), half)
        soft = [
            data.flexvert_xpos[start : start + count]
            for start, count in zip(model.flex_vertadr, model.flex_vertnum, strict=True)
        ]
        low = np.array([*(middle - reach), *(points.min(axis=0) for points in soft)])
        high = np.array([*(middle + reach), *(points.max(axis=0) for points in soft)])
        return low.reshape(-1, 3), high.reshape(-1, 3)

    def _height_below(self, box: Box, ground: np.ndarray) -> float:
        """Return the height of the highest ground below a box [m]; 0 where there is none."""
        if not ground.any():
            return 0.0
        low, high = box
        reach = np.maximum(self._model.geom_rbound, 0.0)
        top = float((self._data.geom_xpos[:, 2] + reach)[ground].max()) + 1.0
        heights = []
        for x in np.linspace(low[0], high[0], _SAMPLES):
            for y in np.linspace(low[1], high[1], _SAMPLES):
                height = self._height_at(np.array((x, y, top)), ground)
                if height is not None:
                    heights.append(height)
        return max(heights, default=0.0)

    def _height_at(self, start: np.ndarray, ground: np.ndarray) -> float | None:
        """Return the height of the first ground that a ray meets downward [m]; None for none."""
        down = np.array((0.0, 0.0, -1.0))
        hit = np.full(1, -1, np.int32)
        for _ in range(4 * self._model.ngeom):
            distance = mujoco.mj_ray(self._model, self._data, start, down, None, True, -1, hit)
            if distance < 0.0:
                return None
            start[2] -= distance
            if ground[hit[0]]:
                return float(start[2])
            start[2] -= _BELOW
        return None


def _geoms_of(model: mujoco.MjModel, item: SceneItem) -> list[int]:
    """Return the geoms of an item, planes left out."""
    geoms = []
    for geom in range(model.ngeom):
        body = model.geom_bodyid[geom]
        name = model.geom(geom).name
        named = name == item.name or (bool(item.prefix) and name.startswith(item.prefix))
        own = model.body_rootid[body] in item.roots or (not body and named)
        if own and model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_PLANE:
            geoms.append(geom)
    return geoms


def _initial_box(part: ItemContent, quat: np.ndarray) -> Box | None:
    """Return the box around what collides of an item, or is drawn if nothing does, at the origin.

    Returns:
        The box; None if there is nothing.
    """
    model = part.model
    if model is None:
        return None
    data = mujoco.MjData(model)
    for name, values in part.qpos.items():
        joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint >= 0 and model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            start = int(model.jnt_qposadr[joint])
            data.qpos[start : start + qpos_width(model.jnt_type[joint])] = values
    mujoco.mj_kinematics(model, data)
    mujoco.mj_flex(model, data)
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, quat)
    rotation = turn.reshape(3, 3)
    pos = data.geom_xpos @ rotation.T
    mat = rotation @ data.geom_xmat.reshape(-1, 3, 3)
    shapes = ~np.isin(model.geom_type, _GROUND)
    colliding = shapes & ((model.geom_contype | model.geom_conaffinity) != 0)
    if colliding.any():
        shapes = colliding
    chosen = np.flatnonzero(shapes).tolist()
    vertices = data.flexvert_xpos @ rotation.T
    return _box(model, chosen, pos, mat, vertices)


def _box(
    model: mujoco.MjModel,
    geoms: list[int],
    pos: np.ndarray,
    mat: np.ndarray,
    vertices: np.ndarray | None = None,
) -> Box | None:
    """Return the box around geoms and vertices; None if nothing has an extent."""
    boxes = [_geom_box(model, geom, pos[geom], mat[geom].reshape(3, 3)) for geom in geoms]
    if vertices is not None and len(vertices):
        boxes.append((vertices.min(axis=0), vertices.max(axis=0)))
    if not boxes:
        return None
    return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)


def _geom_box(model: mujoco.MjModel, geom: int, pos: np.ndarray, turn: np.ndarray) -> Box:
    """Return the smallest box along the axes of the world around a geom."""
    kinds = mujoco.mjtGeom
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    mesh, size = model.geom_dataid[geom], model.geom_size[geom]
    if mesh >= 0 and kind in (kinds.mjGEOM_MESH, kinds.mjGEOM_SDF):
        start = model.mesh_vertadr[mesh]
        corners = model.mesh_vert[start : start + model.mesh_vertnum[mesh]] @ turn.T
        return pos + corners.min(axis=0), pos + corners.max(axis=0)
    along = np.abs(turn[:, 2])
    if kind == kinds.mjGEOM_SPHERE:
        half = np.full(3, size[0])
    elif kind == kinds.mjGEOM_CAPSULE:
        half = size[0] + size[1] * along
    elif kind == kinds.mjGEOM_CYLINDER:
        half = size[0] * np.sqrt(np.maximum(0.0, 1.0 - along**2)) + size[1] * along
    elif kind == kinds.mjGEOM_ELLIPSOID:
        half = np.linalg.norm(turn * size, axis=1)
    else:
        pos = pos + turn @ model.geom_aabb[geom, :3]
        half = np.abs(turn) @ model.geom_aabb[geom, 3:]
    return pos - half, pos + half

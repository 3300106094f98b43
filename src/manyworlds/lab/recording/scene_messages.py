"""Joints, transforms and shapes of a world in MCAP files, as Foxglove and other programs show them.

There are three topics of Protobuf messages beside the exact states: `/joint_states` of the schema
`foxglove.JointStates`, all hinges and slides; `/tf` of `foxglove.FrameTransforms`, the pose of each
body in the frame `world`; and `/scene` of `foxglove.SceneUpdate`, once for each model, the shapes
of the bodies in their frames
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.moments.recording import joint_names
from manyworlds.lab.recording.images import quaternion, stamp, transform, vector
from manyworlds.lab.recording.messages import MESSAGES
from manyworlds.lab.recording.protobuf import Value, descriptors, encode, encode_points
from manyworlds.lab.world.model_facts import STATE, body_frames, element_names

if TYPE_CHECKING:
    from mcap.writer import Writer

_DIGITS = 5  # of vertices [m]
_LAST_GROUP = 2  # MuJoCo's programs show the groups of geoms up to this one
_GEOM = mujoco.mjtGeom


TOPICS = {
    "/joint_states": "foxglove.JointStates",
    "/tf": "foxglove.FrameTransforms",
    "/scene": "foxglove.SceneUpdate",
}
"""Message of each topic."""
_POINTS = MESSAGES["foxglove.TriangleListPrimitive"]["points"][0]


class SceneTracks:
    """Writes joints, transforms and shapes of a world into a file.

    Args:
        writer: writer of the file.
        rate: largest number of messages per second of the recording [Hz].
    """

    def __init__(self, writer: Writer, rate: float) -> None:
        self._writer, self._period = writer, 1.0 / rate
        self._channels: dict[str, int] = {}
        for topic, name in TOPICS.items():
            number = writer.register_schema(name, "protobuf", descriptors(name))
            self._channels[topic] = writer.register_channel(topic, "protobuf", number)
        self._due, self._count = -math.inf, 0
        self._model: mujoco.MjModel | None = None
        self._is_new = False

    def begin(self, model: mujoco.MjModel | None) -> None:
        """Begin a segment of a model; None leaves it out, because its model is not there."""
        self._model, self._is_new = model, True
        if model is None:
            return
        self._data = mujoco.MjData(model)
        self._size = mujoco.mj_stateSize(model, STATE)
        kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
        joints = [j for j, kind in enumerate(model.jnt_type.tolist()) if kind in kinds]
        names = joint_names(model)
        self._names = [names[j] for j in joints]
        self._q, self._v = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
        self._frames = body_frames(element_names(model, "body"))[1:]

    def add(self, row: np.ndarray) -> None:
        """Write the messages of a frame, if they are due.

        Args:
            row: time [s], and the state, shape [1 + num_columns].
        """
        time, model = float(row[0]), self._model
        if model is None or time < self._due - 1e-9:
            return
        self._due = max(self._due, time - self._period) + self._period
        nanoseconds, data = max(0, round(time * 1e9)), self._data
        state = np.ascontiguousarray(row[1 : 1 + self._size])
        mujoco.mj_setState(model, data, state, STATE)
        mujoco.mj_kinematics(model, data)
        if self._is_new:
            self._is_new = False
            self._send("/scene", nanoseconds, scene_update(model, nanoseconds, self._count > 0))
        moment = stamp(nanoseconds)
        values = zip(
            self._names, data.qpos[self._q].tolist(), data.qvel[self._v].tolist(), strict=True
        )
        joints = [{"name": n, "position": pos, "velocity": vel} for n, pos, vel in values]
        self._send("/joint_states", nanoseconds, {"timestamp": moment, "joints": joints})
        poses = zip(self._frames, data.xpos[1:].tolist(), data.xquat[1:].tolist(), strict=True)
        transforms = [transform(moment, name, pos, quat) for name, pos, quat in poses]
        self._send("/tf", nanoseconds, {"transforms": transforms})
        self._count += 1

    def _send(self, topic: str, nanoseconds: int, values: Mapping[str, Value]) -> None:
        channel, message = self._channels[topic], encode(TOPICS[topic], values)
        self._writer.add_message(channel, nanoseconds, message, nanoseconds, self._count)


def scene_update(
    model: mujoco.MjModel, nanoseconds: int, replaces: bool = False
) -> dict[str, Value]:
    """Return the message `foxglove.SceneUpdate` with the shapes of all bodies.

    Args:
        model: the model.
        nanoseconds: time of the message [ns].
        replaces: whether it replaces the shapes of another model.
    """
    moment = stamp(nanoseconds)
    deletions = [{"timestamp": moment, "type": 1, "id": ""}] if replaces else []
    entities: list[Value] = []
    for body, frame in enumerate(body_frames(element_names(model, "body"))):
        shapes = _body_shapes(model, body)
        if not any(shapes.values()):
            continue
        head: dict[str, Value] = {
            "timestamp": moment,
            "frame_id": frame,
            "id": frame,
            "lifetime": {"seconds": 0, "nanos": 0},
            "frame_locked": True,
        }
        entities.append(head | shapes)
    return {"deletions": deletions, "entities": entities}


def _body_shapes(model: mujoco.MjModel, body: int) -> dict[str, Value]:
    """Return the encoded shapes of a body, by the field of an entity."""
    shapes: dict[str, list[Value]] = {n: [] for n in ("cubes", "spheres", "cylinders", "triangles")}
    start = int(model.body_geomadr[body])
    for geom in range(start, start + int(model.body_geomnum[body])):
        rgba = model.geom_rgba[geom]
        if (material := int(model.geom_matid[geom])) >= 0 and (rgba == 0.5).sum() >= 3:
            rgba = model.mat_rgba[material]  # MuJoCo's default color gives way to a material
        if model.geom_group[geom] <= _LAST_GROUP and rgba[3] > 0.0:
            for field, shape in _geom_shapes(model, geom, rgba):
                shapes[field].append(shape)
    return {**shapes}


def _geom_shapes(model: mujoco.MjModel, geom: int, rgba: np.ndarray) -> Iterator[tuple[str, Value]]:
    """Return the fields and the shapes of a geom in the frame of its body."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom].tolist()
    pos: np.ndarray = model.geom_pos[geom]
    quat: np.ndarray = model.geom_quat[geom]
    color = dict(zip("rgba", rgba.astype(float).tolist(), strict=True))
    along, up = np.empty(3), np.array([0.0, 0.0, 1.0])
    mujoco.mju_rotVecQuat(along, up, quat)

    def shape(field: str, sizes: list[float], center: np.ndarray = pos, **more: Any) -> Any:
        return field, {"pose": _pose(center, quat), "size": vector(sizes), "color": color, **more}

    scales: dict[str, Any] = {"bottom_scale": 1.0, "top_scale": 1.0}
    if kind == _GEOM.mjGEOM_BOX:
        yield shape("cubes", [2.0 * s for s in size])
    elif kind == _GEOM.mjGEOM_PLANE:
        half = [s or 10.0 * float(model.stat.extent) for s in size[:2]]
        yield shape(
            "cubes", [2.0 * half[0], 2.0 * half[1], 0.001], np.subtract(pos, 0.0005 * along)
        )
    elif kind == _GEOM.mjGEOM_SPHERE:
        yield shape("spheres", [2.0 * size[0]] * 3)
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        yield shape("spheres", [2.0 * s for s in size])
    elif kind in (_GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_CAPSULE):
        yield shape("cylinders", [2.0 * size[0], 2.0 * size[0], 2.0 * size[1]], **scales)
        if kind == _GEOM.mjGEOM_CAPSULE:
            for side in (-1.0, 1.0):
                yield shape("spheres", [2.0 * size[0]] * 3, np.add(pos, side * size[1] * along))
    elif kind in (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_SDF) and model.geom_dataid[geom] >= 0:
        yield "triangles", _mesh(model, int(model.geom_dataid[geom]), _pose(pos, quat), color)
    elif kind == _GEOM.mjGEOM_HFIELD:
        yield "triangles", _heights(model, int(model.geom_dataid[geom]), _pose(pos, quat), color)


def _mesh(model: mujoco.MjModel, mesh: int, pose: Value, color: Value) -> Value:
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    points = model.mesh_vert[start : start + count]
    return _triangles(points, model.mesh_face[first : first + faces], pose, color)


def _heights(model: mujoco.MjModel, field: int, pose: Value, color: Value) -> Value:
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    start = int(model.hfield_adr[field])
    x, y, top, _ = model.hfield_size[field]
    heights = top * model.hfield_data[start : start + rows * columns]
    ys, xs = np.meshgrid(np.linspace(-y, y, rows), np.linspace(-x, x, columns), indexing="ij")
    points = np.column_stack([xs.ravel(), ys.ravel(), heights])
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    below = np.column_stack([corner, corner + 1, corner + columns + 1])
    above = np.column_stack([corner, corner + columns + 1, corner + columns])
    return _triangles(points, np.vstack([below, above]), pose, color)


def _triangles(points: np.ndarray, faces: np.ndarray, pose: Value, color: Value) -> Value:
    """Return a `TriangleListPrimitive`."""
    rounded = np.round(np.asarray(points, np.float64), _DIGITS)
    indices = np.asarray(faces, np.uint32).ravel()
    return {
        "pose": pose,
        "color": color,
        "points": encode_points(_POINTS, rounded),
        "indices": indices,
    }


def _pose(pos: Any, quat: Any) -> dict[str, Value]:
    return {"position": vector(pos), "orientation": quaternion(quat)}

"""Joints, transforms and shapes of a world in MCAP files, as Foxglove and other programs show them.

There are three topics of Protobuf messages beside the exact states: `/joint_states` of the schema
`foxglove.JointStates`, all hinges and slides; `/tf` of `foxglove.FrameTransforms`, the pose of each
body in the frame `world`; and `/scene` of `foxglove.SceneUpdate`, once for each model, the shapes
of the bodies in their frames
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from foxglove_schemas_protobuf.Color_pb2 import Color
from foxglove_schemas_protobuf.CubePrimitive_pb2 import CubePrimitive
from foxglove_schemas_protobuf.CylinderPrimitive_pb2 import CylinderPrimitive
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.JointState_pb2 import JointState
from foxglove_schemas_protobuf.JointStates_pb2 import JointStates
from foxglove_schemas_protobuf.Pose_pb2 import Pose
from foxglove_schemas_protobuf.SceneEntity_pb2 import SceneEntity
from foxglove_schemas_protobuf.SceneEntityDeletion_pb2 import SceneEntityDeletion
from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate
from foxglove_schemas_protobuf.SpherePrimitive_pb2 import SpherePrimitive
from foxglove_schemas_protobuf.TriangleListPrimitive_pb2 import TriangleListPrimitive
from google.protobuf.duration_pb2 import Duration

from manyworlds.lab.moments.recording import joint_names
from manyworlds.lab.recording.foxglove import descriptors, quaternion, stamp, transform, vector
from manyworlds.lab.world.frames import ModelFrames
from manyworlds.lab.world.model_facts import STATE

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from mcap.writer import Writer

_DIGITS = 5  # of vertices [m]
_LAST_GROUP = 2  # MuJoCo's programs show the groups of geoms up to this one
_GEOM = mujoco.mjtGeom

TOPICS = {"/joint_states": JointStates, "/tf": FrameTransforms, "/scene": SceneUpdate}
"""Message of each topic."""
_POINT = np.dtype(
    [
        ("head", "u1", 2),
        ("x_key", "u1"),
        ("x", "<f8"),
        ("y_key", "u1"),
        ("y", "<f8"),
        ("z_key", "u1"),
        ("z", "<f8"),
    ]
)
"""Encoding of a `Point3` in a `TriangleListPrimitive`."""
_Shape = CubePrimitive | SpherePrimitive | CylinderPrimitive | TriangleListPrimitive


class SceneTracks:
    """Writes joints, transforms and shapes of a world into a file.

    Args:
        writer: writer of the file.
        rate: largest number of messages per second of the recording [Hz].
    """

    def __init__(self, writer: Writer, rate: float) -> None:
        self._writer = writer
        self._period = 1.0 / rate
        self._channels: dict[str, int] = {}
        for topic, kind in TOPICS.items():
            name = kind.DESCRIPTOR.full_name
            number = writer.register_schema(name, "protobuf", descriptors(kind))
            self._channels[topic] = writer.register_channel(topic, "protobuf", number)
        self._due = -math.inf
        self._count = 0
        self._model: mujoco.MjModel | None = None
        self._is_new = False

    def begin(self, model: mujoco.MjModel | None) -> None:
        """Begin a segment of a model; None leaves it out, because its model is not there."""
        self._model = model
        self._is_new = True
        if model is None:
            return
        self._data = mujoco.MjData(model)
        self._size = mujoco.mj_stateSize(model, STATE)
        kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
        joints = [j for j, kind in enumerate(model.jnt_type.tolist()) if kind in kinds]
        names = joint_names(model)
        self._names = [names[j] for j in joints]
        self._q = model.jnt_qposadr[joints]
        self._v = model.jnt_dofadr[joints]
        self._frames = ModelFrames(model).bodies[1:]

    def add(self, row: np.ndarray) -> None:
        """Write the messages of a frame, if they are due.

        Args:
            row: time [s], and the state, shape [1 + num_columns].
        """
        time = float(row[0])
        model = self._model
        if model is None or time < self._due - 1e-9:
            return
        self._due = max(self._due, time - self._period) + self._period
        nanoseconds = max(0, round(time * 1e9))
        data = self._data
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
        joints = [JointState(name=n, position=pos, velocity=vel) for n, pos, vel in values]
        self._send("/joint_states", nanoseconds, JointStates(timestamp=moment, joints=joints))
        poses = zip(self._frames, data.xpos[1:].tolist(), data.xquat[1:].tolist(), strict=True)
        transforms = [transform(moment, name, pos, quat) for name, pos, quat in poses]
        self._send("/tf", nanoseconds, FrameTransforms(transforms=transforms))
        self._count += 1

    def _send(self, topic: str, nanoseconds: int, message: Message) -> None:
        channel = self._channels[topic]
        content = message.SerializeToString()
        self._writer.add_message(channel, nanoseconds, content, nanoseconds, self._count)


def scene_update(model: mujoco.MjModel, nanoseconds: int, replaces: bool = False) -> SceneUpdate:
    """Return the shapes of all bodies.

    Args:
        model: the model.
        nanoseconds: time of the message [ns].
        replaces: whether it replaces the shapes of another model.
    """
    moment = stamp(nanoseconds)
    update = SceneUpdate()
    if replaces:
        update.deletions.append(SceneEntityDeletion(timestamp=moment, type=SceneEntityDeletion.ALL))
    for body, frame in enumerate(ModelFrames(model).bodies):
        entity = SceneEntity(
            timestamp=moment, frame_id=frame, id=frame, lifetime=Duration(), frame_locked=True
        )
        shapes = list(_body_shapes(model, body))
        for shape in shapes:
            if isinstance(shape, CubePrimitive):
                entity.cubes.append(shape)
            elif isinstance(shape, SpherePrimitive):
                entity.spheres.append(shape)
            elif isinstance(shape, CylinderPrimitive):
                entity.cylinders.append(shape)
            else:
                entity.triangles.append(shape)
        if shapes:
            update.entities.append(entity)
    return update


def _body_shapes(model: mujoco.MjModel, body: int) -> Iterator[_Shape]:
    """Yield the shapes of a body."""
    start = int(model.body_geomadr[body])
    for geom in range(start, start + int(model.body_geomnum[body])):
        rgba = model.geom_rgba[geom]
        material = int(model.geom_matid[geom])
        if material >= 0 and (rgba == 0.5).sum() >= 3:
            rgba = model.mat_rgba[material]  # MuJoCo's default color gives way to a material
        if model.geom_group[geom] <= _LAST_GROUP and rgba[3] > 0.0:
            yield from _geom_shapes(model, geom, rgba)


def _geom_shapes(model: mujoco.MjModel, geom: int, rgba: np.ndarray) -> Iterator[_Shape]:
    """Yield the shapes of a geom in the frame of its body."""
    kind = int(model.geom_type[geom])
    size = model.geom_size[geom].tolist()
    pos: np.ndarray = model.geom_pos[geom]
    quat: np.ndarray = model.geom_quat[geom]
    pose = _pose(pos, quat)
    color = Color(**dict(zip("rgba", rgba.astype(float).tolist(), strict=True)))
    along = np.empty(3)
    up = np.array([0.0, 0.0, 1.0])
    mujoco.mju_rotVecQuat(along, up, quat)
    if kind == _GEOM.mjGEOM_BOX:
        yield CubePrimitive(pose=pose, size=vector([2.0 * s for s in size]), color=color)
    elif kind == _GEOM.mjGEOM_PLANE:
        half = [s or 10.0 * float(model.stat.extent) for s in size[:2]]
        below = _pose(pos - 0.0005 * along, quat)
        sides = vector([2.0 * half[0], 2.0 * half[1], 0.001])
        yield CubePrimitive(pose=below, size=sides, color=color)
    elif kind == _GEOM.mjGEOM_SPHERE:
        yield SpherePrimitive(pose=pose, size=vector([2.0 * size[0]] * 3), color=color)
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        yield SpherePrimitive(pose=pose, size=vector([2.0 * s for s in size]), color=color)
    elif kind in (_GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_CAPSULE):
        sides = vector([2.0 * size[0], 2.0 * size[0], 2.0 * size[1]])
        yield CylinderPrimitive(pose=pose, size=sides, color=color, bottom_scale=1.0, top_scale=1.0)
        if kind == _GEOM.mjGEOM_CAPSULE:
            for end in (-size[1], size[1]):
                cap = _pose(pos + end * along, quat)
                yield SpherePrimitive(pose=cap, size=vector([2.0 * size[0]] * 3), color=color)
    elif kind in (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_SDF) and model.geom_dataid[geom] >= 0:
        yield _mesh(model, int(model.geom_dataid[geom]), pose, color)
    elif kind == _GEOM.mjGEOM_HFIELD:
        yield _heights(model, int(model.geom_dataid[geom]), pose, color)


def _mesh(model: mujoco.MjModel, mesh: int, pose: Pose, color: Color) -> TriangleListPrimitive:
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    points = model.mesh_vert[start : start + count]
    return _triangles(points, model.mesh_face[first : first + faces], pose, color)


def _heights(model: mujoco.MjModel, field: int, pose: Pose, color: Color) -> TriangleListPrimitive:
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


def _triangles(
    points: np.ndarray, faces: np.ndarray, pose: Pose, color: Color
) -> TriangleListPrimitive:
    # Messages of single points would hold up the physics thread for 0.2 s in a large mesh. On the
    # wire each is 29 bytes: field 2 with 27 bytes, in them the fields 1 to 3 of eight bytes each.
    rows = np.empty(len(points), _POINT)
    rows["head"] = 0x12, 27
    for column, axis in enumerate("xyz"):
        rows[f"{axis}_key"] = 0x09 + 8 * column
        rows[axis] = np.round(np.asarray(points[:, column], np.float64), _DIGITS)
    shape = TriangleListPrimitive.FromString(rows.tobytes())
    shape.pose.CopyFrom(pose)
    shape.color.CopyFrom(color)
    shape.indices.extend(np.asarray(faces, np.uint32).ravel().tolist())
    return shape


def _pose(pos: Iterable[float], quat: Iterable[float]) -> Pose:
    return Pose(position=vector(pos), orientation=quaternion(quat))

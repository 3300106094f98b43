"""Properties of `EntityData` for a robot of a lab's world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import INITIAL_KEYFRAME

if TYPE_CHECKING:
    import torch

    from manyworlds.entity.data import EntityData, EntityDefaults
    from manyworlds.entity.indexing import EntityIndexing

NOT_READ = frozenset(
    {
        *("is_fixed_base", "is_articulated", "is_actuated"),  # no tensors
        *("soft_joint_pos_limits", "joint_pos_biased"),  # settings of a task that no model has
        "joint_torques",  # not available in any world
    }
)
"""Properties of `EntityData` that clients do not have."""
_MATRICES = frozenset({"xmat", "ximat", "geom_xmat", "site_xmat", "cam_xmat"})
_FREE = mujoco.mjtJoint.mjJNT_FREE
_BALL = mujoco.mjtJoint.mjJNT_BALL


def entity_data(elements: RobotElements, robot: str, data: mujoco.MjData) -> EntityData:
    """Return the state of a robot in a world as a batch of one; it follows the data."""
    from manyworlds.entity.data import EntityData

    model: Any = _Rows(elements.model)
    rows: Any = _Rows(data)
    places = _indexing(elements, robot)
    return EntityData(places, model, rows, _defaults(elements.model, places))


class _Rows:
    """Arrays of a model or of data as float32 tensors with a dimension of worlds.

    Args:
        source: what has the arrays.
    """

    def __init__(self, source: mujoco.MjModel | mujoco.MjData | mujoco.MjOption) -> None:
        self._source = source

    @property
    def opt(self) -> _Rows:
        """Options of the model."""
        assert isinstance(self._source, mujoco.MjModel)
        return _Rows(self._source.opt)

    def __getattr__(self, name: str) -> torch.Tensor:
        import torch

        array = np.asarray(getattr(self._source, name))
        if name in _MATRICES:
            array = array.reshape(-1, 3, 3)
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        return torch.from_numpy(array.astype(kind))[None]

    def default_rows(self, name: str) -> torch.Tensor:
        """Return a field as compiled, shape [1, ...]."""
        return getattr(self, name)


def _indexing(elements: RobotElements, robot: str) -> EntityIndexing:
    """Return what `EntityIndexing` has of a robot, read from the compiled model."""
    import torch

    from manyworlds.entity.indexing import EntityIndexing

    model = elements.model
    ids = {kind: elements.ids(robot, kind) for kind in elements.owners}
    kinds = model.jnt_type[ids["jnt"]]
    free = ids["jnt"][kinds == _FREE][:1]
    ball = ids["jnt"][kinds == _BALL]
    joints = ids["jnt"][(kinds != _FREE) & (kinds != _BALL)]
    bodies = ids["body"].tolist()
    root = 0
    if len(free):
        root = bodies.index(int(model.jnt_bodyid[free[0]]))

    def tensor(values: np.ndarray, width: int | None = None) -> torch.Tensor:
        starts = torch.from_numpy(np.asarray(values, np.int64))
        if width is None:
            return starts
        return starts[:, None] + torch.arange(width)

    none: Any = ()
    no_ids = tensor(np.empty(0))
    mocap = int(model.body_mocapid[bodies[root]])
    return EntityIndexing(
        bodies=tuple(bodies),
        joints=tuple(joints.tolist()),
        geoms=tuple(ids["geom"].tolist()),
        sites=tuple(ids["site"].tolist()),
        tendons=tuple(ids["tendon"].tolist()),
        cameras=tuple(ids["cam"].tolist()),
        actuators=tuple(ids["actuator"].tolist()),
        ball_joints=tuple(ball.tolist()),
        lights=none,
        materials=none,
        textures=none,
        pairs=none,
        body_ids=tensor(ids["body"]),
        joint_ids=tensor(joints),
        geom_ids=tensor(ids["geom"]),
        site_ids=tensor(ids["site"]),
        tendon_ids=tensor(ids["tendon"]),
        cam_ids=tensor(ids["cam"]),
        actuator_ids=tensor(ids["actuator"]),
        ball_joint_ids=tensor(ball),
        light_ids=no_ids,
        mat_ids=no_ids,
        tex_ids=no_ids,
        pair_ids=no_ids,
        ctrl_ids=no_ids,
        joint_q_adr=tensor(model.jnt_qposadr[joints]),
        joint_v_adr=tensor(model.jnt_dofadr[joints]),
        ball_joint_q_adr=tensor(model.jnt_qposadr[ball], 4),
        ball_joint_v_adr=tensor(model.jnt_dofadr[ball], 3),
        free_joint_q_adr=tensor(model.jnt_qposadr[free], 7).flatten(),
        free_joint_v_adr=tensor(model.jnt_dofadr[free], 6).flatten(),
        mocap_id=mocap if mocap >= 0 else None,
        geom_body_ids=tensor(model.geom_bodyid[ids["geom"]]),
        site_body_ids=tensor(model.site_bodyid[ids["site"]]),
        root_index=root,
        tree_root_ids=tensor(model.body_rootid),
    )


def _defaults(model: mujoco.MjModel, places: EntityIndexing) -> EntityDefaults:
    """Return the state at reset: that of the scene's initial keyframe, or the model's."""
    import torch

    from manyworlds.entity.data import EntityDefaults

    key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
    qpos = model.qpos0
    qvel = np.zeros(model.nv)
    if key >= 0:
        qpos = model.key_qpos[key]
        qvel = model.key_qvel[key]

    def row(values: np.ndarray, index: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(values[index.numpy()].astype(np.float32))[None]

    pose, speed = row(qpos, places.free_joint_q_adr), row(qvel, places.free_joint_v_adr)
    return EntityDefaults(
        root_state=torch.cat([pose, speed], dim=-1),
        joint_pos=row(qpos, places.joint_q_adr),
        joint_vel=row(qvel, places.joint_v_adr),
        ball_joint_quat=row(qpos, places.ball_joint_q_adr),
        tendon_len=torch.zeros(1, 0),
    )

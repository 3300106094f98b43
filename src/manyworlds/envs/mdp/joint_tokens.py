"""Joints as tokens: one row of numbers that says what a joint is and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sim.write_mark import WriteMark
from manyworlds.utils.math import quat_apply, quat_apply_inverse, quat_from_angle_axis, quat_mul

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers import ObservationTermCfg

JOINT_TOKEN_COLUMNS: dict[str, slice] = {
    "present": slice(0, 1),
    "hinge": slice(1, 2),
    "slide": slice(2, 3),
    "axis": slice(3, 6),
    "anchor": slice(6, 9),
    "limits": slice(9, 11),
    "default": slice(11, 12),
    "position": slice(12, 13),
    "velocity": slice(13, 14),
    "target": slice(14, 15),
}
"""Columns of a joint's token:

- `present`: 1; rows that pad the tokens of a robot with fewer joints are zero;
- `hinge`, `slide`: 1 for the joint's type, else 0;
- `axis`: unit vector in the root's frame, in the default pose;
- `anchor`: position in the root's frame, in the default pose [m];
- `limits`: lower and upper limit relative to the default position [rad or m], 0 without limits;
- `default`: default position [rad or m];
- `position`: position relative to the default [rad or m];
- `velocity`: velocity relative to the default [rad/s or m/s];
- `target`: position target relative to the default [rad or m], by the last action.
"""
JOINT_TOKEN_SIZE = 15
"""Number of columns of a joint's token."""

_ROBOT = SceneEntityCfg("robot")
_FIELDS = ("body_pos", "body_quat", "jnt_pos", "jnt_axis", "jnt_range", "qpos0")


class joint_tokens(ManagerTermBase):  # noqa: N801
    """Type, place, limits and state of each joint, for policies that do not know the robot.

    The columns are `JOINT_TOKEN_COLUMNS`. What does not move is that of each world's own model, and
    is computed again after writes to it.
    """

    selects = frozenset({"joint"})
    derived_attributes = ("_marks", "_still")

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._marks: dict[str, WriteMark] = {}
        self._still = torch.empty(0)

    def __call__(
        self, env: ManagerBasedRlEnv, biased: bool = False, asset_cfg: SceneEntityCfg = _ROBOT
    ) -> torch.Tensor:
        """Return the tokens, shape [num_envs, joints, 15].

        Args:
            env: the environment.
            biased: observe positions as measured by the encoders, bias included.
            asset_cfg: the entity and its joints.
        """
        entity = env.scene.entity(asset_cfg.name)
        data = entity.data
        default = data.default_joint_pos
        sources = {name: getattr(data.model, name) for name in _FIELDS} | {"default": default}
        moved = False
        for name, source in sources.items():
            mark = self._marks.setdefault(name, WriteMark())
            moved = mark.moved(source) or moved
        if moved:
            self._still = _describe_joints(entity, env.sim.mj_model)
        position = data.joint_pos
        if biased:
            position = data.joint_pos_biased
        state = [
            position - default,
            data.joint_vel - data.default_joint_vel,
            data.joint_pos_target - default,
        ]
        tokens = torch.cat([self._still, torch.stack(state, dim=2)], dim=2)
        return tokens[:, asset_cfg.index("joint")]


def _describe_joints(entity: Entity, mj_model: mujoco.MjModel) -> torch.Tensor:
    """Return the columns of all joints that do not move, shape [num_envs, num_joints, 12]."""
    data = entity.data
    default = data.default_joint_pos
    anchors, axes = _joints_in_root_frame(entity, mj_model)
    types = torch.as_tensor(mj_model.jnt_type, device=default.device)[entity.indexing.joint_ids]
    hinge = (types == int(mujoco.mjtJoint.mjJNT_HINGE)).float().expand_as(default)
    limits = data.joint_pos_limits
    limits = torch.where(limits.isinf(), 0.0, limits - default.unsqueeze(2))
    kind = torch.stack([torch.ones_like(hinge), hinge, 1.0 - hinge], dim=2)
    return torch.cat([kind, axes, anchors, limits, default.unsqueeze(2)], dim=2)


def _joints_in_root_frame(
    entity: Entity, mj_model: mujoco.MjModel
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return anchors [m] and axes of joints in the default pose, each [num_envs, num_joints, 3].

    This is MuJoCo's forward kinematics for the models of all worlds at once:
    https://mujoco.readthedocs.io/en/stable/computation/index.html
    """
    indexing = entity.indexing
    model = entity.data.model
    default = entity.data.default_joint_pos
    columns = {joint: i for i, joint in enumerate(indexing.joint_ids.tolist())}
    balls = {joint: i for i, joint in enumerate(indexing.ball_joint_ids.tolist())}
    num_envs = len(default)
    anchors = torch.zeros(num_envs, len(columns), 3, device=default.device)
    axes = torch.zeros_like(anchors)
    identity = torch.tensor([1.0, 0.0, 0.0, 0.0], device=default.device).expand(num_envs, 4)
    poses: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for body in indexing.body_ids.tolist():
        pos = torch.zeros(num_envs, 3, device=default.device)
        quat = identity
        parent = int(mj_model.body_parentid[body])
        if parent in poses:
            parent_pos, parent_quat = poses[parent]
            pos = parent_pos + quat_apply(parent_quat, model.body_pos[:, body])
            quat = quat_mul(parent_quat, model.body_quat[:, body])
        first = int(mj_model.body_jntadr[body])
        for joint in range(first, first + int(mj_model.body_jntnum[body])):
            anchor = pos + quat_apply(quat, model.jnt_pos[:, joint])
            if joint in balls:
                quat = quat_mul(quat, entity.data.default_ball_joint_quat[:, balls[joint]])
            elif joint in columns:
                column = columns[joint]
                axis = quat_apply(quat, model.jnt_axis[:, joint])
                anchors[:, column] = anchor
                axes[:, column] = axis
                displacement = default[:, column] - model.qpos0[:, mj_model.jnt_qposadr[joint]]
                if mj_model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
                    pos = pos + axis * displacement.unsqueeze(1)
                    continue
                quat = quat_mul(quat_from_angle_axis(displacement, axis), quat)
            else:  # the root's free joint
                continue
            pos = anchor - quat_apply(quat, model.jnt_pos[:, joint])
        poses[body] = pos, quat
    root_pos, root_quat = poses[indexing.root_body_id]
    root_quat = root_quat.unsqueeze(1).expand(num_envs, len(columns), 4)
    return (
        quat_apply_inverse(root_quat, anchors - root_pos.unsqueeze(1)),
        quat_apply_inverse(root_quat, axes),
    )

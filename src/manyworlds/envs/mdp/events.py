"""Event terms: `func(env, env_ids, **params)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.indices import as_index

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def resolve_env_ids(env: ManagerBasedRlEnv, env_ids: torch.Tensor | None) -> torch.Tensor:
    """Return the world ids, all of them for None."""
    return torch.arange(env.num_envs, device=env.device) if env_ids is None else env_ids


def reset_scene_to_default(env: ManagerBasedRlEnv, env_ids: torch.Tensor | None) -> None:
    """Put every entity into its initial state, at its world's origin."""
    ids = resolve_env_ids(env, env_ids)
    for entity in env.scene.entities.values():
        data = entity.data
        if entity.is_mocap or not entity.is_fixed_base:
            root = data.default_root_state[ids]
            root[:, :3] += env.scene.env_origins[ids]
            if entity.is_mocap:
                entity.write_mocap_pose_to_sim(root, ids)
            else:
                entity.write_root_state_to_sim(root, ids)
        if entity.num_joints:
            entity.write_joint_state_to_sim(
                data.default_joint_pos[ids], data.default_joint_vel[ids], env_ids=ids
            )
        if entity.num_ball_joints:
            quat = data.default_ball_joint_quat[ids]
            entity.write_ball_joint_state_to_sim(quat, torch.zeros_like(quat[..., 1:]), None, ids)


def reset_joints_by_offset(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    position_range: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Set joints to their defaults plus uniform offsets, positions within soft limits.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        position_range: bounds of the position offset [rad or m].
        velocity_range: bounds of the velocity offset [rad/s or m/s].
        asset_cfg: the entity and its joints.
    """
    ids = resolve_env_ids(env, env_ids)
    entity, joints = env.scene[asset_cfg.name], as_index(asset_cfg.joint_ids)
    position = entity.data.default_joint_pos[ids][:, joints]
    velocity = entity.data.default_joint_vel[ids][:, joints]
    position = position + torch.empty_like(position).uniform_(*position_range)
    velocity = velocity + torch.empty_like(velocity).uniform_(*velocity_range)
    limits = entity.data.soft_joint_pos_limits[ids][:, joints]
    position = position.clamp(limits[..., 0], limits[..., 1])
    entity.write_joint_state_to_sim(position, velocity, joints, ids)

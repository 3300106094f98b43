"""Observations of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from mjlab.managers.manager_base import ManagerTermBase
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.utils.lab_api.math import quat_apply_inverse

from .commands import PacedMotionCommand

if TYPE_CHECKING:
    from mjlab.entity import Entity
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.observation_manager import ObservationTermCfg

__all__ = ["body_pos_in_root", "joint_acc_estimate", "motion_phase"]

_DEFAULT_ASSET_CFG = SceneEntityCfg("robot")


def motion_phase(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Compute the part of the motion that is over, as a point on a circle."""
    command = cast(PacedMotionCommand, env.command_manager.get_term(command_name))
    phase = 2 * torch.pi * command.time_steps / command.motion.time_step_total
    return torch.stack([torch.cos(phase), torch.sin(phase)], dim=-1)


def body_pos_in_root(
    env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _DEFAULT_ASSET_CFG
) -> torch.Tensor:
    """Compute positions of bodies in the frame of the root."""
    asset: Entity = env.scene[asset_cfg.name]
    offset = asset.data.body_link_pos_w[:, asset_cfg.body_ids]
    offset = offset - asset.data.root_link_pos_w[:, None]
    quat = asset.data.root_link_quat_w[:, None].expand(-1, offset.shape[1], -1)
    return quat_apply_inverse(quat, offset).flatten(1)


class joint_acc_estimate(ManagerTermBase):  # noqa: N801
    """Estimate joint accelerations from the last two velocities."""

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv):
        super().__init__(env)
        asset: Entity = env.scene[cfg.params["asset_cfg"].name]
        self._last = torch.zeros(self.num_envs, asset.num_joints, device=self.device)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Forget the velocities of the episodes that ended."""
        self._last[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
        """Compute the estimate."""
        velocity = env.scene[asset_cfg.name].data.joint_vel
        estimate = (velocity - self._last) / env.step_dt
        self._last[:] = velocity
        return estimate[:, asset_cfg.joint_ids].clamp(-100.0, 100.0)

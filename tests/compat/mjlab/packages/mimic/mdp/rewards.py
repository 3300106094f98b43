"""Rewards of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.sensor import ContactSensor
from mjlab.utils.lab_api.string import resolve_matching_names_values

from .commands import WaveCommand

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.reward_manager import RewardTermCfg
    from mjlab.viewer.debug_visualizer import DebugVisualizer

__all__ = ["ankle_power", "feet_stumble", "hold_hands"]


def hold_hands(env: ManagerBasedRlEnv, command_name: str, std: float) -> torch.Tensor:
    """Reward hands at the commanded height."""
    command = cast(WaveCommand, env.command_manager.get_term(command_name))
    error = torch.square(command.hand_height() - env.command_manager.get_command(command_name))
    return torch.exp(-error.sum(dim=-1) / std**2)


def feet_stumble(env: ManagerBasedRlEnv, sensor_name: str, ratio: float = 3.0) -> torch.Tensor:
    """Penalize horizontal forces that exceed the vertical one."""
    sensor: ContactSensor = env.scene[sensor_name]
    force = sensor.data.force
    assert force is not None
    horizontal = torch.norm(force[..., :2], dim=-1)
    return (horizontal > ratio * force[..., 2].abs()).float().sum(dim=-1)


class ankle_power:  # noqa: N801
    """Penalize mechanical power, with one weight per joint, averaged over the episode."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv):
        asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        asset = env.scene[asset_cfg.name]
        joint_ids, joint_names = asset.find_joints(asset_cfg.joint_names)
        _, _, weights = resolve_matching_names_values(cfg.params["weights"], joint_names)
        self.joint_ids = joint_ids
        self.weights = torch.tensor(weights, device=env.device)
        self.mean = torch.zeros(env.num_envs, device=env.device)
        self.count = torch.zeros(env.num_envs, device=env.device)

    def __call__(
        self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, weights: dict[str, float]
    ) -> torch.Tensor:
        """Compute the running mean of the power."""
        del weights
        data = env.scene[asset_cfg.name].data
        power = data.qfrc_actuator[:, self.joint_ids] * data.joint_vel[:, self.joint_ids]
        self.count += 1
        self.mean += ((power.abs() * self.weights).sum(dim=-1) - self.mean) / self.count
        return self.mean

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Begin again for the episodes that ended."""
        rows = slice(None) if env_ids is None else env_ids
        self.mean[rows] = 0.0
        self.count[rows] = 0.0

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw a sphere as large as the mean power."""
        radius = 0.02 + 1e-4 * float(self.mean[visualizer.env_idx])
        visualizer.add_sphere((0.0, 0.0, 1.0), radius=radius, color=(0.2, 0.2, 0.9, 0.5))

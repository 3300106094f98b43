"""Commands of our own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from mjlab.managers.command_manager import CommandTerm, CommandTermCfg
from mjlab.tasks.tracking.mdp import MotionCommand, MotionCommandCfg
from mjlab.utils.lab_api.math import quat_apply, quat_error_magnitude, sample_uniform, yaw_quat

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.viewer.debug_visualizer import DebugVisualizer

__all__ = [
    "PacedMotionCommand",
    "PacedMotionCommandCfg",
    "WaveCommand",
    "WaveCommandCfg",
]


class PacedMotionCommand(MotionCommand):
    """The recorded motion, of which some worlds repeat a frame now and then."""

    cfg: PacedMotionCommandCfg

    def __init__(self, cfg: PacedMotionCommandCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)
        self.held = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self.metrics["error_heading"] = torch.zeros(self.num_envs, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Reference posture, and the mark of a held frame."""
        return torch.cat([super().command, self.held[:, None].float()], dim=-1)

    def _update_metrics(self) -> None:
        super()._update_metrics()
        self.metrics["error_heading"] = quat_error_magnitude(
            yaw_quat(self.anchor_quat_w), yaw_quat(self.robot_anchor_quat_w)
        )

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        super()._resample_command(env_ids)
        self.held[env_ids] = False

    def _update_command(self, env_ids: torch.Tensor | None = None) -> None:
        if env_ids is None:
            self.held = torch.rand(self.num_envs, device=self.device) < self.cfg.hold_prob
            self.time_steps[self.held] -= 1
            self.time_steps.clamp_(min=0, max=self.motion.time_step_total - 1)
        super()._update_command(env_ids)


@dataclass(kw_only=True)
class PacedMotionCommandCfg(MotionCommandCfg):
    """Settings of a paced motion."""

    hold_prob: float = 0.1

    def build(self, env: ManagerBasedRlEnv) -> PacedMotionCommand:
        """Build the command."""
        return PacedMotionCommand(self, env)


class WaveCommand(CommandTerm):
    """A height at which to hold each hand."""

    cfg: WaveCommandCfg

    def __init__(self, cfg: WaveCommandCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)
        self.robot = env.scene[cfg.entity_name]
        self.hand_ids, _ = self.robot.find_bodies(cfg.hand_names, preserve_order=True)
        self.goal = torch.zeros(self.num_envs, len(self.hand_ids), device=self.device)
        self.age = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.metrics["hand_error"] = torch.zeros(self.num_envs, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Heights above the pelvis."""
        return self.goal

    def hand_height(self) -> torch.Tensor:
        """Measure the heights of the tips of the hands above the pelvis."""
        quat = self.robot.data.body_link_quat_w[:, self.hand_ids]
        tip = torch.tensor(self.cfg.tip, device=self.device).expand(*quat.shape[:2], 3)
        tip_w = self.robot.data.body_link_pos_w[:, self.hand_ids] + quat_apply(quat, tip)
        return tip_w[..., 2] - self.robot.data.root_link_pos_w[:, None, 2]

    def _update_metrics(self) -> None:
        self.metrics["hand_error"] += (self.hand_height() - self.goal).abs().mean(dim=-1)

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        low, high = self.cfg.ranges.height
        shape = (len(env_ids), len(self.hand_ids))
        self.goal[env_ids] = sample_uniform(low, high, shape, device=self.device)
        self.age[env_ids] = 0

    def _update_command(self) -> None:
        self.age = self.age + 1

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        positions = self.robot.data.body_link_pos_w[visualizer.env_idx, self.hand_ids]
        for position in positions.cpu().numpy():
            visualizer.add_sphere(position, radius=0.03, color=(0.9, 0.2, 0.2, 0.6))


@dataclass(kw_only=True)
class WaveCommandCfg(CommandTermCfg):
    """Settings of the heights of hands."""

    @dataclass
    class Ranges:
        """Ranges to draw from."""

        height: tuple[float, float] = (-0.1, 0.3)

    entity_name: str
    hand_names: tuple[str, ...]
    tip: tuple[float, float, float] = (0.0, 0.0, -0.25)
    ranges: Ranges = field(default_factory=Ranges)

    def build(self, env: ManagerBasedRlEnv) -> WaveCommand:
        """Build the command."""
        return WaveCommand(self, env)

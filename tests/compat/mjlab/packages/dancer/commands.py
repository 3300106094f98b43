"""A motion command of our own, on poses of joints and of the root alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np
import torch
from mjlab.entity import Entity
from mjlab.managers.command_manager import CommandTerm, CommandTermCfg
from mjlab.utils.lab_api.math import (
    matrix_from_quat,
    quat_apply,
    quat_apply_inverse,
    quat_error_magnitude,
    quat_from_euler_xyz,
    quat_inv,
    quat_mul,
    sample_uniform,
    subtract_frame_transforms,
    yaw_quat,
)
from mjlab.viewer.debug_visualizer import DebugVisualizer

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv


class Clip:
    """Frames of a dance: a file, or steps from one foot to the other."""

    def __init__(self, file: str, joint_ids: list[int], home: torch.Tensor, dt: float, device: str):
        if file:
            data = np.load(file)
            self.joint_pos = torch.tensor(data["joint_pos"], dtype=torch.float32, device=device)
            self.joint_vel = torch.tensor(data["joint_vel"], dtype=torch.float32, device=device)
        else:
            t = torch.arange(100, device=device) * dt
            phase = 2 * math.pi * t / t[-1]
            self.joint_pos = home.repeat(100, 1)
            self.joint_pos[:, joint_ids[0]] += 0.2 * phase.sin()
            self.joint_pos[:, joint_ids[1]] -= 0.2 * phase.sin()
            self.joint_vel = torch.gradient(self.joint_pos, spacing=dt, dim=0)[0]
        self.time_step_total = self.joint_pos.shape[0]


class DanceCommand(CommandTerm):
    """Samples where in the dance an episode begins: where it failed, more often."""

    cfg: DanceCommandCfg
    _env: ManagerBasedRlEnv

    def __init__(self, cfg: DanceCommandCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)

        self.robot: Entity = env.scene[cfg.entity_name]
        self.robot_anchor_body_index = self.robot.body_names.index(cfg.anchor_body_name)
        self.motion_joint_ids = self.robot.find_joints(cfg.joint_names, preserve_order=True)[0]
        self.motion = Clip(
            cfg.motion_file,
            self.motion_joint_ids,
            self.robot.data.default_joint_pos[0].clone(),
            env.step_dt,
            self.device,
        )
        self.time_steps = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.anchor_offset = torch.zeros(self.num_envs, 3, device=self.device)
        self.bin_count = self.motion.time_step_total // 10 + 1
        self.bin_failed_count = torch.zeros(self.bin_count, dtype=torch.float, device=self.device)
        self._current_bin_failed = torch.zeros_like(self.bin_failed_count)
        self.kernel = torch.tensor([0.8**i for i in range(3)], device=self.device)
        self.kernel = self.kernel / self.kernel.sum()

        self.metrics["error_joint_pos"] = torch.zeros(self.num_envs, device=self.device)
        self.metrics["error_anchor_rot"] = torch.zeros(self.num_envs, device=self.device)
        self.metrics["sampling_entropy"] = torch.zeros(self.num_envs, device=self.device)

        self._ghost_model: mujoco.MjModel | None = None
        self._ghost_color = np.array(cfg.viz.ghost_color, dtype=np.float32)

    @property
    def command(self) -> torch.Tensor:
        return torch.cat([self.joint_pos, self.joint_vel], dim=1)

    @property
    def joint_pos(self) -> torch.Tensor:
        return self.motion.joint_pos[self.time_steps]

    @property
    def joint_vel(self) -> torch.Tensor:
        return self.motion.joint_vel[self.time_steps]

    @property
    def anchor_pos_w(self) -> torch.Tensor:
        return self._env.scene.env_origins + self.anchor_offset

    @property
    def anchor_quat_w(self) -> torch.Tensor:
        return yaw_quat(self.robot.data.default_root_state[:, 3:7])

    @property
    def robot_anchor_pos_w(self) -> torch.Tensor:
        return self.robot.data.body_link_pos_w[:, self.robot_anchor_body_index]

    @property
    def robot_anchor_quat_w(self) -> torch.Tensor:
        return self.robot.data.body_link_quat_w[:, self.robot_anchor_body_index]

    def _update_metrics(self):
        error = self.joint_pos - self.robot.data.joint_pos
        self.metrics["error_joint_pos"] = torch.norm(error, dim=-1)
        self.metrics["error_anchor_rot"] = quat_error_magnitude(
            self.anchor_quat_w, self.robot_anchor_quat_w
        )

    def _adaptive_sampling(self, env_ids: torch.Tensor):
        episode_failed = self._env.termination_manager.terminated[env_ids]
        if torch.any(episode_failed):
            current_bin_index = torch.clamp(
                (self.time_steps * self.bin_count) // max(self.motion.time_step_total, 1),
                0,
                self.bin_count - 1,
            )
            fail_bins = current_bin_index[env_ids][episode_failed]
            self._current_bin_failed[:] = torch.bincount(fail_bins, minlength=self.bin_count)
        probabilities = self.bin_failed_count + 0.1 / float(self.bin_count)
        probabilities = torch.nn.functional.pad(
            probabilities.unsqueeze(0).unsqueeze(0), (0, 2), mode="replicate"
        )
        probabilities = torch.nn.functional.conv1d(probabilities, self.kernel.view(1, 1, -1))
        probabilities = probabilities.view(-1)
        probabilities = probabilities / probabilities.sum()
        sampled_bins = torch.multinomial(probabilities, len(env_ids), replacement=True)
        self.time_steps[env_ids] = (
            (sampled_bins + sample_uniform(0.0, 1.0, (len(env_ids),), device=self.device))
            / self.bin_count
            * (self.motion.time_step_total - 1)
        ).long()
        entropy = -(probabilities * (probabilities + 1e-12).log()).sum()
        self.metrics["sampling_entropy"][:] = entropy / math.log(self.bin_count)

    def _resample_command(self, env_ids: torch.Tensor):
        if self.cfg.sampling_mode == "start":
            self.time_steps[env_ids] = 0
        elif self.cfg.sampling_mode == "uniform":
            self.time_steps[env_ids] = torch.randint(
                0, self.motion.time_step_total, (len(env_ids),), device=self.device
            )
        else:
            self._adaptive_sampling(env_ids)

        range_list = [self.cfg.pose_range.get(key, (0.0, 0.0)) for key in ["x", "y", "yaw"]]
        ranges = torch.tensor(range_list, device=self.device)
        rand = sample_uniform(ranges[:, 0], ranges[:, 1], (len(env_ids), 3), device=self.device)
        root_state = self.robot.data.default_root_state[env_ids].clone()
        root_state[:, :3] += self._env.scene.env_origins[env_ids]
        root_state[:, :2] += rand[:, :2]
        zeros = torch.zeros_like(rand[:, 2])
        turn = quat_from_euler_xyz(zeros, zeros, rand[:, 2])
        root_state[:, 3:7] = quat_mul(turn, root_state[:, 3:7])
        self.anchor_offset[env_ids] = root_state[:, :3] - self._env.scene.env_origins[env_ids]

        joint_pos = self.joint_pos[env_ids].clone()
        joint_pos += sample_uniform(
            *self.cfg.joint_position_range, joint_pos.shape, joint_pos.device
        )
        soft_joint_pos_limits = self.robot.data.soft_joint_pos_limits[env_ids]
        joint_pos = torch.clip(
            joint_pos, soft_joint_pos_limits[:, :, 0], soft_joint_pos_limits[:, :, 1]
        )
        self.robot.write_joint_state_to_sim(joint_pos, self.joint_vel[env_ids], env_ids=env_ids)
        self.robot.write_root_state_to_sim(root_state, env_ids=env_ids)
        self.robot.clear_state(env_ids=env_ids)

    def _update_command(self):
        self.time_steps += 1
        env_ids = torch.where(self.time_steps >= self.motion.time_step_total)[0]
        if env_ids.numel() > 0:
            self._resample_command(env_ids)

        if self.cfg.sampling_mode == "adaptive":
            self.bin_failed_count = 0.1 * self._current_bin_failed + 0.9 * self.bin_failed_count
            self._current_bin_failed.zero_()

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        env_indices = visualizer.get_env_indices(self.num_envs)
        if not env_indices:
            return
        if self._ghost_model is None:
            self._ghost_model = self._env.sim.mj_model
        free_joint_q_adr = self.robot.indexing.free_joint_q_adr.cpu().numpy()
        joint_q_adr = self.robot.indexing.joint_q_adr.cpu().numpy()
        for batch in env_indices:
            qpos = np.zeros(self._env.sim.mj_model.nq)
            qpos[free_joint_q_adr[0:3]] = self.anchor_pos_w[batch].cpu().numpy()
            qpos[free_joint_q_adr[3:7]] = self.anchor_quat_w[batch].cpu().numpy()
            qpos[joint_q_adr] = self.joint_pos[batch].cpu().numpy()
            visualizer.add_ghost_mesh(qpos, model=self._ghost_model, label=f"ghost_{batch}")
            rotation = matrix_from_quat(self.robot_anchor_quat_w[batch]).cpu().numpy()
            visualizer.add_frame(
                position=self.robot_anchor_pos_w[batch].cpu().numpy(),
                rotation_matrix=rotation,
                scale=0.15,
                label="anchor",
            )
            ahead = quat_apply(
                self.robot_anchor_quat_w[batch], torch.tensor([0.3, 0.0, 0.0], device=self.device)
            )
            start = self.robot_anchor_pos_w[batch]
            visualizer.add_arrow(start, start + ahead, color=(0.2, 0.8, 0.2, 0.7), width=0.015)


@dataclass(kw_only=True)
class DanceCommandCfg(CommandTermCfg):
    """Settings."""

    motion_file: str
    anchor_body_name: str
    joint_names: tuple[str, ...]
    entity_name: str
    pose_range: dict[str, tuple[float, float]] = field(default_factory=dict)
    joint_position_range: tuple[float, float] = (-0.05, 0.05)
    sampling_mode: Literal["adaptive", "uniform", "start"] = "adaptive"

    @dataclass
    class VizCfg:
        """How it is drawn."""

        mode: Literal["ghost", "frames"] = "ghost"
        ghost_color: tuple[float, float, float, float] = (0.5, 0.7, 0.5, 0.5)

    viz: VizCfg = field(default_factory=VizCfg)

    def build(self, env: ManagerBasedRlEnv) -> DanceCommand:
        return DanceCommand(self, env)


def anchor_in_root(command: DanceCommand) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the anchor of the dance as the robot sees it."""
    pos, quat = subtract_frame_transforms(
        command.robot_anchor_pos_w,
        command.robot_anchor_quat_w,
        command.anchor_pos_w,
        command.anchor_quat_w,
    )
    check = quat_apply_inverse(
        command.robot_anchor_quat_w, command.anchor_pos_w - command.robot_anchor_pos_w
    )
    torch.testing.assert_close(pos, check, rtol=1e-3, atol=1e-4)
    other = quat_mul(quat_inv(command.robot_anchor_quat_w), command.anchor_quat_w)
    torch.testing.assert_close(quat.abs(), other.abs(), rtol=1e-3, atol=1e-4)
    return pos, quat

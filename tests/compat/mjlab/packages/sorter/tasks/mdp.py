"""Terms of the sorting task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from mjlab.entity import Entity
from mjlab.envs import mdp as envs_mdp
from mjlab.envs.mdp import dr
from mjlab.envs.mdp.actions import JointVelocityActionCfg
from mjlab.managers import RecorderTerm
from mjlab.managers.action_manager import ActionTerm, ActionTermCfg
from mjlab.managers.command_manager import CommandTerm, CommandTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.sensor import ContactSensor, RayCastSensor
from mjlab.utils.lab_api.math import (
    quat_apply_inverse,
    quat_from_angle_axis,
    sample_uniform,
    wrap_to_pi,
)

from ..sensors import ProximitySensor

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.viewer.debug_visualizer import DebugVisualizer

__all__ = ["JointVelocityActionCfg", "dr", "envs_mdp"]


class SortCommand(CommandTerm):
    """Which block to bring; one of several entities, as one-hot."""

    def __init__(self, cfg: SortCommandCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)
        self.objects: list[Entity] = [env.scene[name] for name in cfg.object_names]
        self.bin: Entity = env.scene[cfg.bin_name]
        self.choice = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self.success = torch.zeros(self.num_envs, device=self.device)
        self.metrics["distance"] = torch.zeros(self.num_envs, device=self.device)
        self.metrics["success"] = torch.zeros(self.num_envs, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        return torch.nn.functional.one_hot(self.choice, len(self.objects)).float()

    @property
    def target_pos_w(self) -> torch.Tensor:
        positions = torch.stack([each.data.root_link_pos_w for each in self.objects], dim=1)
        rows = torch.arange(self.num_envs, device=self.device)
        return positions[rows, self.choice]

    def _update_metrics(self) -> None:
        distance = torch.norm(self.target_pos_w - self.bin.data.root_link_pos_w, dim=-1)
        self.success = (distance < self.cfg.success_distance).float()
        self.metrics["distance"] = distance
        self.metrics["success"] = self.success

    def compute_success(self) -> torch.Tensor:
        return self.success.bool()

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        n = len(env_ids)
        self.choice[env_ids] = torch.randint(0, len(self.objects), (n,), device=self.device)
        r = self.cfg.ranges
        for i, entity in enumerate(self.objects):
            lower = torch.tensor([r.radius[0], r.angle[0]], device=self.device)
            upper = torch.tensor([r.radius[1], r.angle[1]], device=self.device)
            polar = sample_uniform(lower, upper, (n, 2), device=self.device)
            polar[:, 1] += i * self.cfg.separation
            pose = entity.data.default_root_state[env_ids, :7].clone()
            pose[:, 0] = polar[:, 0] * polar[:, 1].cos()
            pose[:, 1] = polar[:, 0] * polar[:, 1].sin()
            pose[:, :3] += self._env.scene.env_origins[env_ids]
            yaw = wrap_to_pi(7.0 * polar[:, 1])
            pose[:, 3:7] = quat_from_angle_axis(
                yaw, torch.tensor([0.0, 0.0, 1.0], device=self.device)
            )
            entity.write_root_link_pose_to_sim(pose, env_ids=env_ids)
            entity.write_root_link_velocity_to_sim(
                torch.zeros(n, 6, device=self.device), env_ids=env_ids
            )

    def _update_command(self, env_ids: torch.Tensor | None = None) -> None:
        pass

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        for batch in visualizer.get_env_indices(self.num_envs):
            target = self.target_pos_w[batch].cpu().numpy()
            visualizer.add_cylinder(
                target, target + np.array([0, 0, 0.1]), radius=0.005, color=(1, 1, 0, 0.5)
            )
            visualizer.add_box(
                center=target, size=np.array([0.03] * 3), mat=np.eye(3), color=(1, 1, 0, 0.2)
            )

    def create_gui(self, name, server, get_env_idx, on_change=None, request_action=None) -> None:
        with server.gui.add_folder(name):
            server.gui.add_button("Next block")


@dataclass(kw_only=True)
class SortCommandCfg(CommandTermCfg):
    """Settings."""

    object_names: tuple[str, ...]
    bin_name: str
    success_distance: float = 0.15
    separation: float = 0.6

    @dataclass
    class Ranges:
        """Where blocks begin."""

        radius: tuple[float, float] = (0.4, 0.6)
        angle: tuple[float, float] = (-0.3, 0.3)

    ranges: Ranges = field(default_factory=Ranges)

    def build(self, env: ManagerBasedRlEnv) -> SortCommand:
        return SortCommand(self, env)


class DriveAction(ActionTerm):
    """Forward speed and turn rate, for two wheels."""

    def __init__(self, cfg: DriveActionCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg=cfg, env=env)
        ids, _ = self._entity.find_joints(cfg.wheel_names, preserve_order=True)
        self._wheels = torch.tensor(ids, device=self.device, dtype=torch.long)
        self._raw = torch.zeros(self.num_envs, self.action_dim, device=self.device)
        self._mix = torch.tensor([[1.0, 1.0], [-0.4, 0.4]], device=self.device)
        self._speeds = torch.zeros(self.num_envs, 2, device=self.device)

    @property
    def action_dim(self) -> int:
        return 2

    @property
    def raw_action(self) -> torch.Tensor:
        return self._raw

    def process_actions(self, actions: torch.Tensor) -> None:
        self._raw[:] = actions
        self._speeds = self._raw.clamp(-1, 1) @ self._mix * self.cfg.max_speed

    def apply_actions(self) -> None:
        self._entity.set_joint_velocity_target(self._speeds, joint_ids=self._wheels)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        self._raw[env_ids] = 0.0
        self._speeds[env_ids] = 0.0


@dataclass(kw_only=True)
class DriveActionCfg(ActionTermCfg):
    """Settings."""

    wheel_names: tuple[str, ...]
    max_speed: float = 8.0

    def build(self, env: ManagerBasedRlEnv) -> DriveAction:
        return DriveAction(self, env)


def target_in_rover(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    command = env.command_manager.get_term(command_name)
    assert isinstance(command, SortCommand)
    robot: Entity = env.scene["robot"]
    delta = command.target_pos_w - robot.data.root_link_pos_w
    return quat_apply_inverse(robot.data.root_link_quat_w, delta)


def bin_in_rover(env: ManagerBasedRlEnv) -> torch.Tensor:
    robot: Entity = env.scene["robot"]
    bin_pos = env.scene["bin"].data.root_link_pos_w
    return quat_apply_inverse(robot.data.root_link_quat_w, bin_pos - robot.data.root_link_pos_w)


def ranges_ahead(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    sensor: RayCastSensor = env.scene[sensor_name]
    distances = sensor.data.distances
    return torch.where(distances < 0, 2.0, distances).clamp(max=2.0)


def proximity(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    sensor = env.scene[sensor_name]
    assert isinstance(sensor, ProximitySensor)
    return torch.cat([sensor.data.distance, sensor.closest[:, None]], dim=-1)


def touch(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    sensor: ContactSensor = env.scene[sensor_name]
    assert sensor.data.force is not None
    return torch.log1p(sensor.data.force.flatten(1).abs())


def image_mean(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    rgb = env.scene[sensor_name].data.rgb
    assert rgb is not None and rgb.dtype == torch.uint8
    return rgb.float().mean(dim=(1, 2)) / 255.0


def reach(env: ManagerBasedRlEnv, sensor_name: str, command_name: str, std: float) -> torch.Tensor:
    command = env.command_manager.get_term(command_name)
    distance = env.scene[sensor_name].data.distance.gather(1, command.choice[:, None]).squeeze(1)
    return torch.exp(-((distance / std) ** 2))


def spin(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")):  # noqa: B008
    asset: Entity = env.scene[asset_cfg.name]
    return torch.square(asset.data.root_link_ang_vel_b[:, 2])


def flipped(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    return env.scene[asset_cfg.name].data.projected_gravity_b[:, 2] > 0.0


def sorted_success(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    return env.command_manager.get_term(command_name).compute_success()


def scatter(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    names: Sequence[str],
    speed: float,
) -> None:
    """Throw blocks about, sometimes."""
    if env_ids is None:
        env_ids = torch.arange(env.num_envs, device=env.device)
    for name in names:
        entity: Entity = env.scene[name]
        velocity = entity.data.root_link_vel_w[env_ids].clone()
        velocity[:, :2] += speed * torch.randn_like(velocity[:, :2])
        entity.write_root_link_velocity_to_sim(velocity, env_ids=env_ids)


def terrain_levels(env: ManagerBasedRlEnv, env_ids: torch.Tensor, command_name: str):
    terrain = env.scene.terrain
    assert terrain is not None
    success = env.command_manager.get_term(command_name).compute_success()[env_ids]
    terrain.update_env_origins(env_ids, success, ~success)
    return {"mean": terrain.terrain_levels.float().mean()}


class Trajectory(RecorderTerm):
    """Positions of the rover, by episode."""

    def __init__(self, cfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)
        self.rows: list[torch.Tensor] = []
        self.episodes = 0

    def record_post_step(self) -> None:
        self.rows.append(self._env.scene["robot"].data.root_link_pos_w.clone())

    def record_pre_reset(self, env_ids: torch.Tensor) -> None:
        self.episodes += len(env_ids)

    def close(self) -> None:
        self.rows.clear()

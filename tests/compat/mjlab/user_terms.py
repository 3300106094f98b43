"""Subclasses as a project for mjlab has them; the alias must be installed to import this module."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from mjlab.actuator.actuator import Actuator, ActuatorCfg, ActuatorCmd
from mjlab.actuator.builtin_actuator import BuiltinPositionActuator, BuiltinPositionActuatorCfg
from mjlab.actuator.pd_actuator import IdealPdActuator, IdealPdActuatorCfg
from mjlab.entity import Entity, EntityCfg
from mjlab.envs import ManagerBasedRlEnv
from mjlab.envs.mdp.actions.actions import (
    BaseAction,
    BaseActionCfg,
    JointPositionAction,
    JointPositionActionCfg,
)
from mjlab.managers import CommandTerm, CommandTermCfg, ManagerBase, ManagerTermBase, RecorderTerm
from mjlab.sensor import Sensor, SensorCfg
from mjlab.sensor.raycast_sensor import RayCastData
from mjlab.tasks.velocity.mdp import UniformVelocityCommand, UniformVelocityCommandCfg
from mjlab.utils.spec import create_motor_actuator

# Actions.


class SmoothedAction(JointPositionAction):
    """Filters actions; worlds may have their own scales."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self._smoothed = torch.zeros(self.num_envs, self._action_dim, device=self.device)
        self._scale[1] = 0.25
        self._offset[:, 0] += 0.1

    def process_actions(self, actions: torch.Tensor) -> None:
        """Average with the last actions, scale, offset and clip."""
        self._raw_actions[:] = actions
        self._smoothed = 0.5 * (self._smoothed + actions)
        self._processed_actions = self._smoothed * self._scale + self._offset
        if self._clip is not None:
            self._processed_actions = torch.clamp(
                self._processed_actions, min=self._clip[:, :, 0], max=self._clip[:, :, 1]
            )

    def reset(self, env_ids: Any = None) -> None:
        """Forget the last actions."""
        super().reset(env_ids)
        self._smoothed[slice(None) if env_ids is None else env_ids] = 0.0


@dataclass(kw_only=True)
class SmoothedActionCfg(JointPositionActionCfg):
    """Makes one."""

    def build(self, env: Any) -> SmoothedAction:
        """Build the term."""
        return SmoothedAction(self, env)


class SpringAction(BaseAction):
    """Pulls joints to the action by efforts, which depend on the state in each physics step."""

    applied: list[torch.Tensor]

    def apply_actions(self) -> None:
        """Set efforts."""
        position = self._entity.data.joint_pos[:, self._target_ids]
        effort = 3.0 * (self._processed_actions - position)
        self.__dict__.setdefault("applied", []).append(effort)
        self._entity.set_joint_effort_target(effort, joint_ids=self._target_ids)


@dataclass(kw_only=True)
class SpringActionCfg(BaseActionCfg):
    """Makes one."""

    def build(self, env: Any) -> SpringAction:
        """Build the term."""
        return SpringAction(self, env)


# Commands.


class TrotCommand(UniformVelocityCommand):
    """Walks forward at set speeds; logs the largest speed."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.metrics["peak"] = torch.zeros(self.num_envs, device=self.device)
        self.resampled: list[list[int]] = []

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        super()._resample_command(env_ids)
        self.resampled.append(env_ids.tolist())
        self.vel_command_b[env_ids, 0] = 0.7
        self.vel_command_b[env_ids, 1] = 0.0
        self.heading_target[env_ids] = 0.5
        self.is_heading_env[env_ids] = True
        self.is_standing_env[env_ids] = env_ids == 2

    def _update_metrics(self) -> None:
        super()._update_metrics()
        speed = self.robot.data.root_link_lin_vel_b[:, :2].norm(dim=-1)
        self.metrics["peak"] = torch.maximum(self.metrics["peak"], speed)


@dataclass(kw_only=True)
class TrotCommandCfg(UniformVelocityCommandCfg):
    """Makes one."""

    def build(self, env: Any) -> TrotCommand:
        """Build the term."""
        return TrotCommand(self, env)


class GaitCommand(CommandTerm):
    """Phase of a gait, of which the frequency is sampled."""

    def __init__(self, cfg: GaitCommandCfg, env: Any) -> None:
        super().__init__(cfg, env)
        self.frequency = torch.zeros(self.num_envs, device=self.device)
        self.phase = torch.zeros(self.num_envs, device=self.device)
        self.metrics["cycles"] = torch.zeros(self.num_envs, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Sine and cosine of the phase."""
        angle = 2.0 * torch.pi * self.phase
        return torch.stack([angle.sin(), angle.cos()], dim=-1)

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        low, high = self.cfg.frequency_range
        self.frequency[env_ids] = torch.empty(len(env_ids), device=self.device).uniform_(low, high)
        self.phase[env_ids] = 0.0

    def _update_command(self, env_ids: torch.Tensor | None = None) -> None:
        if env_ids is None:
            self.phase = (self.phase + self.frequency * self._env.step_dt) % 1.0

    def _update_metrics(self) -> None:
        self.metrics["cycles"] += self.frequency * self._env.step_dt

    def _debug_vis_impl(self, visualizer: Any) -> None:
        for i in visualizer.get_env_indices(self.num_envs):
            visualizer.add_sphere(torch.zeros(3).numpy(), float(self.phase[i]), (1, 0, 0, 1))


@dataclass(kw_only=True)
class GaitCommandCfg(CommandTermCfg):
    """Makes one."""

    frequency_range: tuple[float, float] = (1.0, 2.0)

    def build(self, env: Any) -> GaitCommand:
        """Build the term."""
        return GaitCommand(self, env)


# Sensors.


class PeakSensor(Sensor[torch.Tensor]):
    """Largest joint speeds since the last reset, seen in every physics step."""

    def __init__(self, cfg: PeakSensorCfg) -> None:
        super().__init__()
        self.cfg, self.computed, self.invalidated = cfg, 0, 0
        self.steps: list[float] = []

    def edit_spec(self, scene_spec: Any, entities: dict[str, Any]) -> None:
        """Find the entity."""
        self.entity = entities[self.cfg.entity_name]

    def initialize(self, mj_model: Any, model: Any, data: Any, device: Any) -> None:
        """Allocate the peaks."""
        self.peak = torch.zeros(data.qpos.shape[0], self.entity.num_joints, device=device)

    def update(self, dt: float) -> None:
        """Compare with the present speeds."""
        super().update(dt)
        self.steps.append(dt)
        self.peak = torch.maximum(self.peak, self.entity.data.joint_vel.abs())

    def reset(self, env_ids: Any = None) -> None:
        """Forget the peaks."""
        super().reset(env_ids)
        self.peak[slice(None) if env_ids is None else env_ids] = 0.0

    def _compute_data(self) -> torch.Tensor:
        self.computed += 1
        return self.peak.clone()

    def _invalidate_cache(self) -> None:
        super()._invalidate_cache()
        self.invalidated += 1


@dataclass(kw_only=True)
class PeakSensorCfg(SensorCfg):
    """Makes one."""

    entity_name: str

    def build(self) -> PeakSensor:
        """Build the sensor."""
        return PeakSensor(self)


class FakeScan(PeakSensor):
    """Rays that hit the ground below the root."""

    def _compute_data(self) -> RayCastData:
        data = self.entity.data
        pos, quat = data.root_link_pos_w, data.root_link_quat_w
        hit = torch.cat([pos[:, :2], torch.zeros_like(pos[:, 2:])], dim=1)
        up = torch.tensor([0.0, 0.0, 1.0]).expand_as(pos)
        return RayCastData(
            distances=pos[:, 2:],
            normals_w=up[:, None],
            hit_pos_w=hit[:, None],
            pos_w=pos,
            quat_w=quat,
            frame_pos_w=pos[:, None],
            frame_quat_w=quat[:, None],
        )


@dataclass(kw_only=True)
class FakeScanCfg(PeakSensorCfg):
    """Makes one."""

    def build(self) -> FakeScan:
        """Build the sensor."""
        return FakeScan(self)


# Terms and managers.


class Distance(ManagerTermBase):
    """Rewards the distance since the last step."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(env)
        self.cfg = cfg
        self.last = torch.zeros(self.num_envs, device=self.device)
        self.resets: list[Any] = []

    def __call__(self, env: Any, joint: int) -> torch.Tensor:
        """Return the distance."""
        now = self._env.scene["robot"].data.joint_pos[:, joint]
        distance, self.last = now - self.last, now.clone()
        return distance

    def reset(self, env_ids: Any = None) -> None:
        """Begin at the present position."""
        self.resets.append(env_ids)
        ids = slice(None) if env_ids is None else env_ids
        self.last[ids] = self._env.scene["robot"].data.joint_pos[ids, self.cfg.params["joint"]]


class Returns(RecorderTerm):
    """Records rewards of each step, and lengths of finished episodes."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.calls: list[str] = []
        self.rewards: list[torch.Tensor] = []
        self.lengths: list[int] = []

    def record_pre_reset(self, env_ids: torch.Tensor) -> None:
        """Take the lengths."""
        self.calls.append("pre_reset")
        self.lengths += self._env.episode_length_buf[env_ids].tolist()

    def record_post_reset(self, env_ids: torch.Tensor) -> None:
        """Note the call."""
        self.calls.append("post_reset")

    def record_post_step(self) -> None:
        """Take the rewards."""
        self.calls.append("post_step")
        self.rewards.append(self._env.reward_buf.clone())

    def close(self) -> None:
        """Note the call."""
        self.calls.append("close")


class ConstraintManager(ManagerBase):
    """Manager of a kind that mjlab does not have: the largest of its terms."""

    def __init__(self, cfg: dict[str, Any], env: Any) -> None:
        self.cfg = cfg
        self._term_names: list[str] = []
        self._term_cfgs: list[Any] = []
        super().__init__(env=env)

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms."""
        return self._term_names

    def _prepare_terms(self) -> None:
        for name, term_cfg in self.cfg.items():
            self._resolve_common_term_cfg(name, term_cfg)
            self._term_names.append(name)
            self._term_cfgs.append(term_cfg)

    def compute(self) -> torch.Tensor:
        """Return the largest value, shape [num_envs]."""
        values = [term.func(self._env, **term.params) for term in self._term_cfgs]
        return torch.stack(values).amax(dim=0)


class ConstrainedEnv(ManagerBasedRlEnv):
    """Environment with such a manager."""

    constraints: dict[str, Any]

    def load_managers(self) -> None:
        """Load it after the others."""
        super().load_managers()
        self.constraint_manager = ConstraintManager(self.constraints, self)


# Actuators and entities.


class LagActuator(Actuator):
    """A PD law with a first-order lag, written from the base class."""

    def __init__(self, cfg: Any, entity: Any, target_ids: Any, target_names: Any) -> None:
        super().__init__(cfg, entity, target_ids, target_names)
        self.seen: list[torch.Tensor] = []

    def edit_spec(self, spec: Any, target_names: list[str]) -> None:
        """Add a motor for each target."""
        for name in target_names:
            motor = create_motor_actuator(spec, name, effort_limit=100.0)
            self._mjs_actuators.append(motor)

    def initialize(self, mj_model: Any, model: Any, data: Any, device: Any) -> None:
        """Allocate the effort."""
        super().initialize(mj_model, model, data, device)
        self.effort = torch.zeros(data.qpos.shape[0], len(self.target_names), device=device)

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the effort."""
        self.seen.append(cmd.pos.clone())
        wanted = 5.0 * (cmd.position_target - cmd.pos) - 0.1 * cmd.vel
        self.effort = 0.5 * (self.effort + wanted)
        return self.effort

    def reset(self, env_ids: Any = None) -> None:
        """Forget the effort."""
        super().reset(env_ids)
        self.effort[slice(None) if env_ids is None else env_ids] = 0.0


@dataclass(kw_only=True)
class LagActuatorCfg(ActuatorCfg):
    """Makes one."""

    def build(self, entity: Any, target_ids: list[int], target_names: list[str]) -> LagActuator:
        """Build the actuator."""
        return LagActuator(self, entity, target_ids, target_names)


class CubicActuator(IdealPdActuator):
    """A law of the position error's third power."""

    @staticmethod
    def control_law(params: Any, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the effort."""
        return params["stiffness"] * (cmd.position_target - cmd.pos) ** 3


@dataclass(kw_only=True)
class CubicActuatorCfg(IdealPdActuatorCfg):
    """Makes one."""

    def build(self, entity: Any, target_ids: list[int], target_names: list[str]) -> CubicActuator:
        """Build the actuator."""
        return CubicActuator(self, entity, target_ids, target_names)


class SluggishActuator(BuiltinPositionActuator):
    """Approaches its target step by step, from the position that it has."""

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the next position."""
        return cmd.pos + (cmd.position_target - cmd.pos).clamp(-0.01, 0.01)


@dataclass(kw_only=True)
class SluggishActuatorCfg(BuiltinPositionActuatorCfg):
    """Makes one."""

    def build(
        self, entity: Any, target_ids: list[int], target_names: list[str]
    ) -> SluggishActuator:
        """Build the actuator."""
        return SluggishActuator(self, entity, target_ids, target_names)


class DragEntity(Entity):
    """Feels a drag, which depends on its velocity in each physics step."""

    def write_data_to_sim(self) -> None:
        """Write the drag."""
        super().write_data_to_sim()
        force = -0.5 * self.data.body_link_lin_vel_w
        self.write_external_wrench_to_sim(force, torch.zeros_like(force))


@dataclass(kw_only=True)
class DragEntityCfg(EntityCfg):
    """Makes one."""

    spec_fn: Any = field(default=None)

    def build(self) -> DragEntity:
        """Build the entity."""
        return DragEntity(self)

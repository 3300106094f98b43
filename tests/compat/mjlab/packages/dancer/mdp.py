"""Terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import torch
from mjlab.entity import Entity
from mjlab.envs.mdp import *  # noqa: F403
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg, RecomputeLevel, requires_model_fields
from mjlab.managers.manager_base import ManagerTermBase
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.sensor import BuiltinSensor, ContactSensor
from mjlab.utils.lab_api.string import resolve_matching_names_values

from .commands import DanceCommand, anchor_in_root

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv

_DEFAULT_ASSET_CFG = SceneEntityCfg("robot")


# Observations.


def dance_anchor_pos_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Return the anchor as the robot sees it."""
    command = cast(DanceCommand, env.command_manager.get_term(command_name))
    return anchor_in_root(command)[0].view(env.num_envs, -1)


def feet_contact(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Return which feet touch the ground."""
    sensor: ContactSensor = env.scene[sensor_name]
    sensor_data = sensor.data
    assert sensor_data.found is not None
    return (sensor_data.found > 0).float()


def imu(env: ManagerBasedRlEnv, sensor_names: list[str]) -> torch.Tensor:
    """Return several sensors of the model."""
    values = []
    for name in sensor_names:
        sensor = env.scene[name]
        assert isinstance(sensor, BuiltinSensor)
        values.append(sensor.data)
    return torch.cat(values, dim=-1)


def friction_of_feet(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return the friction of geoms."""
    asset: Entity = env.scene[asset_cfg.name]
    geom_ids = asset.indexing.geom_ids[asset_cfg.geom_ids]
    return env.sim.model.geom_friction[:, geom_ids, 0].view(env.num_envs, -1)


# Rewards.


class joint_pos_tracking(ManagerTermBase):  # noqa: N801
    """Each joint has a width of its own."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv):
        super().__init__(env)
        asset: Entity = env.scene[cfg.params["asset_cfg"].name]
        default_joint_pos = asset.data.default_joint_pos
        assert default_joint_pos is not None
        _, joint_names = asset.find_joints(cfg.params["asset_cfg"].joint_names)
        _, _, std = resolve_matching_names_values(
            data=cfg.params["std"], list_of_strings=joint_names
        )
        self.std = torch.tensor(std, device=env.device, dtype=torch.float32)
        self.calls = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)

    def __call__(
        self, env: ManagerBasedRlEnv, command_name: str, std, asset_cfg: SceneEntityCfg
    ) -> torch.Tensor:
        del std
        command = cast(DanceCommand, env.command_manager.get_term(command_name))
        asset: Entity = env.scene[asset_cfg.name]
        error = (command.joint_pos - asset.data.joint_pos)[:, asset_cfg.joint_ids]
        self.calls += 1
        env.extras["log"]["Metrics/mean_dance_error"] = error.abs().mean()
        return torch.exp(-torch.mean(torch.square(error) / self.std**2, dim=1))

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        self.calls[env_ids] = 0


def soft_landing(
    env: ManagerBasedRlEnv, sensor_name: str, command_name: str | None = None
) -> torch.Tensor:
    """Punish forces of landing feet."""
    contact_sensor: ContactSensor = env.scene[sensor_name]
    forces = contact_sensor.data.force
    assert forces is not None
    force_magnitude = torch.norm(forces, dim=-1)
    first_contact = contact_sensor.compute_first_contact(dt=env.step_dt)
    landing_impact = force_magnitude * first_contact.float()
    cost = torch.sum(landing_impact, dim=1)
    num_landings = torch.sum(first_contact.float())
    env.extras["log"]["Metrics/landing_force_mean"] = torch.sum(landing_impact) / torch.clamp(
        num_landings, min=1
    )
    return cost


def action_smoothness(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Punish second differences of actions."""
    manager = env.action_manager
    diff = manager.action - 2 * manager.prev_action + manager.prev_prev_action
    return torch.sum(torch.square(diff), dim=1)


# Terminations.


def lost_the_dance(env: ManagerBasedRlEnv, command_name: str, threshold: float) -> torch.Tensor:
    """Return which robots are too low or too high."""
    command = cast(DanceCommand, env.command_manager.get_term(command_name))
    delta = command.anchor_pos_w[:, -1] - command.robot_anchor_pos_w[:, -1]
    return torch.abs(delta) > threshold


# Curricula.


class DanceStage(TypedDict, total=False):
    step: int
    joint_position_range: tuple[float, float]
    threshold: float
    weight: float


class dance_curriculum(ManagerTermBase):  # noqa: N801
    """Tightens the termination, widens the beginning, and weighs smoothness."""

    def __init__(self, cfg: CurriculumTermCfg, env: ManagerBasedRlEnv):
        super().__init__(env)
        self.stages: list[DanceStage] = cfg.params["stages"]
        self.stage = -1

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor,
        command_name: str,
        stages: list[DanceStage],
    ) -> dict[str, torch.Tensor]:
        del env_ids
        command_term = env.command_manager.get_term(command_name)
        assert command_term is not None
        cfg = command_term.cfg
        for i, stage in enumerate(stages):
            if env.common_step_counter > stage["step"]:
                self.stage = i
                if "joint_position_range" in stage:
                    cfg.joint_position_range = stage["joint_position_range"]
                if "threshold" in stage:
                    term_cfg = env.termination_manager.get_term_cfg("lost")
                    term_cfg.params["threshold"] = stage["threshold"]
                if "weight" in stage:
                    env.reward_manager.get_term_cfg("smooth").weight = stage["weight"]
        return {
            "stage": torch.tensor(self.stage),
            "threshold": torch.tensor(
                env.termination_manager.get_term_cfg("lost").params["threshold"]
            ),
        }


# Events.


@requires_model_fields("body_mass", "body_ipos", recompute=RecomputeLevel.set_const)
def carry_load(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    mass_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = _DEFAULT_ASSET_CFG,
) -> None:
    """Put a load onto the trunk."""
    asset: Entity = env.scene[asset_cfg.name]
    if env_ids is None:
        env_ids = torch.arange(env.num_envs, device=env.device, dtype=torch.int)
    else:
        env_ids = env_ids.to(env.device, dtype=torch.int)
    body_ids = asset.indexing.body_ids[asset_cfg.body_ids]
    default = env.sim.get_default_field("body_mass")[body_ids]
    extra = torch.rand(len(env_ids), len(body_ids), device=env.device)
    extra = mass_range[0] + extra * (mass_range[1] - mass_range[0])
    env.sim.model.body_mass[env_ids.long()[:, None], body_ids] = default + extra
    env.sim.model.body_ipos[env_ids.long()[:, None], body_ids, 2] += 0.001


class gusts:  # noqa: N801
    """Wind in episodes of its own, as an external force."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv):
        self._asset: Entity = env.scene[cfg.params["asset_cfg"].name]
        self._body_ids = cfg.params["asset_cfg"].body_ids
        self._force = torch.zeros(env.num_envs, 1, 3, device=env.device)

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor,
        strength: float,
        asset_cfg: SceneEntityCfg,
    ) -> None:
        self._force[env_ids] = strength * torch.randn(len(env_ids), 1, 3, device=env.device)
        self._asset.write_external_wrench_to_sim(
            self._force[env_ids],
            torch.zeros_like(self._force[env_ids]),
            env_ids=env_ids,
            body_ids=self._body_ids,
        )

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        self._force[env_ids] = 0.0

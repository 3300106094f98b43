"""Reward terms, each of shape [num_envs]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from manyworlds.entity import Entity
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.managers.reward_manager import RewardTermCfg
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sensor import ContactData
from manyworlds.utils.math import dot
from manyworlds.validation.names import resolve_field
from manyworlds.validation.worlds import as_index

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def is_alive(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One while the episode has not failed, shape [num_envs]."""
    return (~env.termination_manager.terminated).float()


def is_terminated(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One when the episode ends for a reason other than time, shape [num_envs]."""
    return env.termination_manager.terminated.float()


def joint_torques_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared actuator efforts of `asset_cfg` [(N m)^2 or N^2], shape [num_envs]."""
    data = env.scene[asset_cfg.name].data
    return data.actuator_force[:, asset_cfg.index("actuator")].square().sum(dim=1)


def joint_vel_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared joint velocities [rad^2/s^2 or m^2/s^2], shape [num_envs]."""
    data = env.scene[asset_cfg.name].data
    return data.joint_vel[:, asset_cfg.index("joint")].square().sum(dim=1)


def joint_acc_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared joint accelerations [rad^2/s^4 or m^2/s^4], shape [num_envs]."""
    data = env.scene[asset_cfg.name].data
    return data.joint_acc[:, asset_cfg.index("joint")].square().sum(dim=1)


def action_rate_l2(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Sum of squared changes of the action since the previous step, shape [num_envs]."""
    manager = env.action_manager
    return (manager.action - manager.prev_action).square().sum(dim=1)


def action_acc_l2(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Sum of squared second differences of the action over three steps, shape [num_envs]."""
    return action_acc(env).square().sum(dim=1)


def action_acc(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Second difference of the action over the last three steps, shape [num_envs, actions]."""
    manager = env.action_manager
    return manager.action - 2.0 * manager.prev_action + manager.prev_prev_action


def joint_pos_limits(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of the distances of joints beyond their soft limits [rad or m], shape [num_envs]."""
    data = env.scene[asset_cfg.name].data
    ids = asset_cfg.index("joint")
    low, high = data.soft_joint_pos_limits[:, ids].unbind(-1)
    position = data.joint_pos[:, ids]
    return ((low - position).relu() + (position - high).relu()).sum(dim=1)


def flat_orientation_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Squared sine of the angle between the root's z axis and the vertical, shape [num_envs]."""
    return env.scene[asset_cfg.name].data.projected_gravity_b[:, :2].square().sum(dim=1)


def self_collision_cost(
    env: ManagerBasedRlEnv, sensor_name: str, force_threshold: float = 10.0
) -> torch.Tensor:
    """Number of undesired contacts that a contact sensor detects, shape [num_envs].

    With a history of forces: number of physics steps in which any force is larger than
    `force_threshold` [N]. Otherwise: number of slots that hold a contact.
    """
    data: ContactData = env.scene[sensor_name].data
    if data.force_history is None:
        assert data.found is not None
        return (data.found > 0).sum(dim=1).float()
    return exceeds(data.force_history, force_threshold).any(dim=1).sum(dim=1).float()


def exceeds(vectors: torch.Tensor, threshold: float) -> torch.Tensor:
    """Return a mask of vectors [..., 3] that are longer than a threshold, shape [...]."""
    return dot(vectors, vectors) > threshold**2


class posture(ManagerTermBase):  # noqa: N801
    """Proximity to the default joint positions: `exp(-mean(((q - q_default) / std)^2))`.

    Raises:
        ValueError: a joint has no `std`, or one that is not positive.
    """

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._set_std(cfg.params["std"], cfg.params["asset_cfg"])

    def __call__(
        self, env: ManagerBasedRlEnv, std: float | Mapping[str, float], asset_cfg: SceneEntityCfg
    ) -> torch.Tensor:
        """Compute the term, shape [num_envs].

        Args:
            env: the environment.
            std: standard deviation [rad or m], one for all joints or by regular expression; the
                first pattern that matches a joint's name applies.
            asset_cfg: the entity and its joints.
        """
        if std is not self._std:  # changed by a curriculum
            self._set_std(std, asset_cfg)
        data = env.scene[asset_cfg.name].data
        ids = asset_cfg.index("joint")
        error = data.joint_pos[:, ids] - data.default_joint_pos[:, ids]
        return torch.exp(-(error * self._inverse_std).square().mean(dim=1))

    def _set_std(self, std: float | Mapping[str, float], asset_cfg: SceneEntityCfg) -> None:
        self._std = std
        self._inverse_std = inverse_deviations(self._env.scene[asset_cfg.name], asset_cfg, std)


class electrical_power_cost(ManagerTermBase):  # noqa: N801
    """Electrical power of motors [W]: sum of `max(0, effort * velocity)` over actuated joints.

    Regenerative power of braking joints is not counted.
    """

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        entity = env.scene[asset_cfg.name]
        actuated, _ = entity.find_joints_by_actuator_names(".*")
        ids = [i for i in _joint_ids(entity, asset_cfg) if i in actuated]
        self._joints = as_index(torch.tensor(ids, device=self.device))

    def __call__(self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
        """Compute the term for the actuated joints of `asset_cfg`, shape [num_envs]."""
        data = env.scene[asset_cfg.name].data
        power = data.qfrc_actuator[:, self._joints] * data.joint_vel[:, self._joints]
        return power.relu().sum(dim=1)


def inverse_deviations(
    entity: Entity, asset_cfg: SceneEntityCfg, std: float | Mapping[str, float]
) -> torch.Tensor:
    """Return one over the standard deviation of each joint [1/rad or 1/m], shape [joints].

    Raises:
        ValueError: a joint has no standard deviation, or one that is not positive.
    """
    names = [entity.joint_names[i] for i in _joint_ids(entity, asset_cfg)]
    values = resolve_field(std, names)
    for name, value in zip(names, values, strict=True):
        if value is None or not value > 0.0:
            raise ValueError(
                f"posture needs a positive std for joint '{name}', got {value}: add a pattern "
                "that matches it, or leave the joint out of asset_cfg."
            )
    device = entity.data.default_joint_pos.device
    return 1.0 / torch.tensor(values, dtype=torch.float32, device=device)


def _joint_ids(entity: Entity, asset_cfg: SceneEntityCfg) -> Sequence[int]:
    ids = asset_cfg.joint_ids
    return range(entity.num_joints)[ids] if isinstance(ids, slice) else ids

"""Reward terms, each of shape [num_envs]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

from manyworlds.entity import Entity
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.managers.reward_manager import RewardTermCfg
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sensor import ContactSensor
from manyworlds.spec.elements import TRANSMISSIONS
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.math import dot
from manyworlds.validation.names import resolve_field

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
    data = env.scene.entity(asset_cfg.name).data
    return data.actuator_force[:, asset_cfg.index("actuator")].square().sum(dim=1)


def joint_vel_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared joint velocities [rad^2/s^2 or m^2/s^2], shape [num_envs]."""
    data = env.scene.entity(asset_cfg.name).data
    return data.joint_vel[:, asset_cfg.index("joint")].square().sum(dim=1)


def joint_acc_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared joint accelerations [rad^2/s^4 or m^2/s^4], shape [num_envs]."""
    data = env.scene.entity(asset_cfg.name).data
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
    data = env.scene.entity(asset_cfg.name).data
    ids = asset_cfg.index("joint")
    low, high = data.soft_joint_pos_limits[:, ids].unbind(-1)
    position = data.joint_pos[:, ids]
    return ((low - position).relu() + (position - high).relu()).sum(dim=1)


def flat_orientation_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Squared sine of the angle between the root's z axis and the vertical, shape [num_envs]."""
    return env.scene.entity(asset_cfg.name).data.projected_gravity_b[:, :2].square().sum(dim=1)


def self_collision_cost(
    env: ManagerBasedRlEnv, sensor_name: str, force_threshold: float = 10.0
) -> torch.Tensor:
    """Number of undesired contacts that a contact sensor detects, shape [num_envs].

    With a history of forces: number of physics steps in which any force is larger than
    `force_threshold` [N]. Otherwise: number of slots that hold a contact.
    """
    data = env.scene.sensor(sensor_name, ContactSensor).data
    if data.force_history is None:
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

    selects = frozenset({"joint"})

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
        if std != self._std:  # changed by a curriculum, maybe in place
            self._set_std(std, asset_cfg)
        data = env.scene.entity(asset_cfg.name).data
        ids = asset_cfg.index("joint")
        error = data.joint_pos[:, ids] - data.default_joint_pos[:, ids]
        return torch.exp(-(error * self._inverse_std).square().mean(dim=1))

    def _set_std(self, std: float | Mapping[str, float], asset_cfg: SceneEntityCfg) -> None:
        self._std = std
        if isinstance(std, Mapping):
            self._std = dict(std)
        entity = self._env.scene.entity(asset_cfg.name)
        self._inverse_std = inverse_deviations(entity, asset_cfg, std)


class electrical_power_cost(ManagerTermBase):  # noqa: N801
    """Electrical power of motors [W]: sum of `max(0, effort * velocity)` over joints and tendons.

    The actuators of a joint or tendon count as one motor, within the joint's `actfrcrange`; a
    tendon counts if it moves a joint of `asset_cfg`. Regenerative power of braking motors is not
    counted, nor is that of actuators at sites, such as propellers.
    """

    selects = frozenset({"joint", "tendon"})

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        entity = env.scene.entity(asset_cfg.name)
        model = env.sim.mj_model
        indexing = entity.indexing
        joints = {int(indexing.joint_ids[i]): i for i in _joint_ids(entity, asset_cfg)}
        tendons = indexing.tendon_ids[asset_cfg.index("tendon")].tolist()
        dofs = [int(model.jnt_dofadr[joint]) for joint in joints]
        moves: np.ndarray = np.any(_moved_dofs(model)[:, dofs], axis=1, keepdims=True)
        actuators = indexing.actuator_ids.cpu().numpy()
        outputs = model.actuator_outadr[actuators]
        # Which actuators (rows) drive which joint or tendon (columns).
        of_joint = np.zeros((len(actuators), model.njnt), dtype=np.float32)
        of_tendon = np.zeros((len(actuators), model.ntendon), dtype=np.float32)
        for row, (actuator, output) in enumerate(zip(actuators, outputs, strict=True)):
            kind = mujoco.mjtTrn(model.actuator_trntype[actuator])
            target = int(model.actuator_trnid[actuator, 0])
            if kind in TRANSMISSIONS[TransmissionType.JOINT] and target in joints:
                of_joint[row, target] = 1.0
            elif kind == mujoco.mjtTrn.mjTRN_TENDON and target in tendons and moves[output, 0]:
                of_tendon[row, target] = 1.0
        driven = np.flatnonzero(of_joint.any(axis=0))

        def tensor(values: np.ndarray | Sequence[int]) -> torch.Tensor:
            return torch.as_tensor(values, device=self.device)

        self._of_joint = tensor(of_joint[:, driven])
        self._of_tendon = tensor(of_tendon[:, of_tendon.any(axis=0)])
        self._outputs = tensor(outputs)
        self._joints = tensor([joints[int(joint)] for joint in driven]).long()
        self._joint_ids = tensor(driven)
        self._dofs = tensor(model.jnt_dofadr[driven])
        # Flags have a row for each world where variants differ in them.
        self._lifts = bool(env.sim.model.jnt_actgravcomp[..., self._joint_ids].any())

    def __call__(self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
        """Compute the term for the motors of `asset_cfg`, shape [num_envs]."""
        data = env.scene.entity(asset_cfg.name).data
        sim = env.sim
        force = data.actuator_force
        torque = (force * sim.model.actuator_gear[:, self._outputs, 0]) @ self._of_joint
        if self._lifts:  # these actuators also carry the weight that MuJoCo compensates
            compensated = sim.model.jnt_actgravcomp[..., self._joint_ids] != 0
            torque += sim.data.qfrc_gravcomp[:, self._dofs] * compensated
        low, high = sim.model.jnt_actfrcrange[:, self._joint_ids].unbind(-1)
        limited = sim.model.jnt_actfrclimited[..., self._joint_ids] != 0
        torque = torch.where(limited, torque.clamp(low, high), torque)
        power = (torque * data.joint_vel[:, self._joints]).relu().sum(dim=1)
        if self._of_tendon.shape[1]:
            pull = force * sim.data.actuator_velocity[:, self._outputs]
            power += (pull @ self._of_tendon).relu().sum(dim=1)
        return power


def _moved_dofs(model: mujoco.MjModel) -> np.ndarray:
    """Return which degrees of freedom each actuator moves, a mask [outputs of actuators, nv]."""
    data = mujoco.MjData(model)
    data.qpos[:] += 0.01  # not where a tendon or crank has no lever
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_tendon(model, data)
    mujoco.mj_transmission(model, data)
    moments = np.zeros((len(data.actuator_length), model.nv))
    mujoco.mju_sparse2dense(
        moments,
        data.actuator_moment,
        data.moment_rownnz,
        data.moment_rowadr,
        data.moment_colind,
    )
    return moments != 0.0


def inverse_deviations(
    entity: Entity, asset_cfg: SceneEntityCfg, std: float | Mapping[str, float]
) -> torch.Tensor:
    """Return one over the standard deviation of each joint [1/rad or 1/m], shape [joints].

    Raises:
        ValueError: a joint has no standard deviation, or one that is not positive.
    """
    ids = asset_cfg.joint_ids
    if isinstance(ids, slice):
        ids = range(entity.num_joints)[ids]
    names = [entity.joint_names[i] for i in ids]
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

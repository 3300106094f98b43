"""An entity's state as tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

from manyworlds.actuator import DriveState, DriveTargets
from manyworlds.entity.frames import FrameData, compute_velocity_from_cvel
from manyworlds.entity.indexing import EntityIndexing
from manyworlds.sim.views import DataView, ModelView
from manyworlds.sim.write_mark import WriteMark
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, Worlds, assign

__all__ = ["EntityData", "EntityDefaults", "compute_velocity_from_cvel"]


@dataclass(frozen=True, kw_only=True)
class EntityDefaults:
    """State of an entity at reset, each [num_envs, ...]; see the attributes of `EntityData`."""

    root_state: torch.Tensor
    joint_pos: torch.Tensor
    joint_vel: torch.Tensor
    ball_joint_quat: torch.Tensor
    tendon_len: torch.Tensor


class EntityData(FrameData, Stateful):
    """State, limits, targets and forces of an entity in the simulation, as tensors [num_envs, ...].

    Poses and velocities of frames are described at `FrameData`. Accelerations and forces are those
    of the last physics step. Quantities of the simulation are copies, which may be kept: methods of
    the entity change the simulation.

    Args:
        indexing: ids and addresses of the entity's elements.
        model: the simulation's model.
        data: the simulation's data.
        defaults: state at reset.
        soft_joint_pos_limit_factor: share of a joint's range within its soft limits.
        driven: the kinds of elements that actuators drive. Targets of sites have no columns unless
            actuators drive them; nor have those of tendons, for which `defaults` has none then.
    """

    state_attributes = (
        "joint_pos_target",
        "joint_vel_target",
        "joint_effort_target",
        "tendon_len_target",
        "tendon_vel_target",
        "tendon_effort_target",
        "site_effort_target",
        "default_root_state",
        "_default_joint_pos",
        "default_joint_vel",
        "encoder_bias",
        "default_ball_joint_quat",
        "_qpos0",
        "has_wrench",
    )
    derived_attributes = (
        "_gravity_mark",
        "_qpos0_mark",
        "_range_mark",
        "_gravity",
        "_hard",
        "_soft",
    )

    POS_DIM = 3
    QUAT_DIM = 4
    LIN_VEL_DIM = 3
    ANG_VEL_DIM = 3
    ROOT_POSE_DIM = POS_DIM + QUAT_DIM
    ROOT_VEL_DIM = LIN_VEL_DIM + ANG_VEL_DIM
    ROOT_STATE_DIM = ROOT_POSE_DIM + ROOT_VEL_DIM

    def __init__(
        self,
        indexing: EntityIndexing,
        model: ModelView,
        data: DataView,
        defaults: EntityDefaults,
        soft_joint_pos_limit_factor: float = 1.0,
        driven: Collection[TransmissionType] = (),
    ) -> None:
        super().__init__(indexing, model, data)
        self.has_wrench = False
        """True once an external wrench was applied."""
        self.default_root_state = defaults.root_state
        """Pose [m, wxyz] relative to the world's origin and velocity [m/s, rad/s] of the root at
        reset, shape [num_envs, 13]; only the pose for a fixed base, shape [num_envs, 7]."""
        self._default_joint_pos = defaults.joint_pos
        self.default_joint_vel = defaults.joint_vel
        """Joint velocities at reset [rad/s or m/s], shape [num_envs, num_joints]."""
        self.default_ball_joint_quat = defaults.ball_joint_quat
        """Ball joint orientations at reset (wxyz), shape [num_envs, num_ball_joints, 4]."""
        self.default_tendon_len = defaults.tendon_len
        """Tendon lengths in the default pose [m], [num_envs, num_tendons], or 0 columns."""
        num_envs, num_joints = defaults.joint_pos.shape
        device = self.device
        self.encoder_bias = torch.zeros(num_envs, num_joints, device=device)
        """Errors that encoders add to joint positions [rad or m], [num_envs, num_joints]."""
        num_tendons = defaults.tendon_len.shape[1]
        num_sites = 0
        if TransmissionType.SITE in driven:
            num_sites = len(indexing.sites)
        self.joint_pos_target = defaults.joint_pos.clone()
        """Desired joint positions [rad or m], shape [num_envs, num_joints]."""
        self.joint_vel_target = torch.zeros(num_envs, num_joints, device=device)
        """Desired joint velocities [rad/s or m/s], shape [num_envs, num_joints]."""
        self.joint_effort_target = torch.zeros(num_envs, num_joints, device=device)
        """Desired joint efforts before gears [N m or N], shape [num_envs, num_joints]."""
        self.tendon_len_target = defaults.tendon_len.clone()
        """Desired tendon lengths [m], shape [num_envs, num_tendons], or 0 columns."""
        self.tendon_vel_target = torch.zeros(num_envs, num_tendons, device=device)
        """Desired tendon velocities [m/s], shape [num_envs, num_tendons], or 0 columns."""
        self.tendon_effort_target = torch.zeros(num_envs, num_tendons, device=device)
        """Desired tendon forces before gears [N], [num_envs, num_tendons], or 0 columns."""
        self.site_effort_target = torch.zeros(num_envs, num_sites, device=device)
        """Desired efforts at sites before gears, shape [num_envs, num_sites], or 0 columns."""
        self._site_zeros = torch.zeros(1, device=device).expand(num_envs, num_sites)
        self._soft_factor = soft_joint_pos_limit_factor
        self._hard = torch.empty(0)
        self._soft = torch.empty(0)
        self._range_mark = WriteMark()
        self._qpos0_mark = WriteMark()
        self._qpos0 = model.qpos0[:, indexing.joint_q_index].clone()
        self._compiled_qpos0 = model.default_rows("qpos0")[:, indexing.joint_q_index]
        self.default_joint_pos_limits = self.joint_pos_limits.clone()
        """Joint limits at the start [rad or m], shape [num_envs, num_joints, 2]."""

    # Properties of the entity.

    @property
    def is_fixed_base(self) -> bool:
        """True if the root has no free joint."""
        return self.indexing.is_fixed_base

    @property
    def is_articulated(self) -> bool:
        """True if the entity has joints other than a free joint."""
        return len(self.indexing.joints) + len(self.indexing.ball_joints) > 0

    @property
    def is_actuated(self) -> bool:
        """True if the entity has actuators."""
        return len(self.indexing.actuators) > 0

    def saved_values(self) -> dict[str, object]:
        """Return targets, defaults and biases, with the defaults as they are now."""
        _ = self.default_joint_pos  # updates the defaults from qpos0
        return super().saved_values()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned, after that of the simulation."""
        super().load_state_dict(state)
        self._compiled_qpos0 = self.model.default_rows("qpos0")[:, self.indexing.joint_q_index]

    def clear_state(self, env_ids: EnvIds = None) -> None:
        """Set targets to the default pose, and clear external wrenches; None for all worlds.

        Velocity and effort targets are zero.
        """
        worlds = Worlds.of(env_ids, self.num_envs, self.device)
        worlds.put(self.joint_pos_target, worlds.take(self.default_joint_pos))
        worlds.put(self.joint_vel_target, 0.0)
        worlds.put(self.joint_effort_target, 0.0)
        if self.tendon_len_target.numel():
            worlds.put(self.tendon_len_target, worlds.take(self.default_tendon_len))
            worlds.put(self.tendon_vel_target, 0.0)
            worlds.put(self.tendon_effort_target, 0.0)
        if self.site_effort_target.numel():
            worlds.put(self.site_effort_target, 0.0)
        if self.has_wrench:
            assign(self.data.xfrc_applied, 0.0, worlds, self.indexing.body_index)

    def drive_targets(self, transmission: TransmissionType) -> DriveTargets:
        """Return the targets of all joints, tendons or sites, each [num_envs, num_elements]."""
        if transmission == TransmissionType.JOINT:
            return DriveTargets(
                self.joint_pos_target, self.joint_vel_target, self.joint_effort_target
            )
        if transmission == TransmissionType.TENDON:
            return DriveTargets(
                self.tendon_len_target, self.tendon_vel_target, self.tendon_effort_target
            )
        return DriveTargets(self._site_zeros, self._site_zeros, self.site_effort_target)

    def drive_state(self, transmission: TransmissionType) -> DriveState:
        """Return the state of all joints, tendons or sites, each [num_envs, num_elements]."""
        # Actuators read these in each physics step and keep none of them, so views will do.
        if transmission == TransmissionType.JOINT:
            return DriveState(
                self.data.qpos[:, self.indexing.joint_q_index],
                self.data.qvel[:, self.indexing.joint_v_index],
            )
        if transmission == TransmissionType.TENDON:
            return DriveState(
                self.data.ten_length[:, self.indexing.tendon_index],
                self.data.ten_velocity[:, self.indexing.tendon_index],
            )
        return DriveState(self._site_zeros, self._site_zeros)

    # Joints, tendons and actuators.

    @property
    def joint_pos(self) -> torch.Tensor:
        """Joint positions [rad or m], shape [num_envs, num_joints]."""
        return self.data.qpos[:, self.indexing.joint_q_index].clone()

    @property
    def joint_vel(self) -> torch.Tensor:
        """Joint velocities [rad/s or m/s], shape [num_envs, num_joints]."""
        return self.data.qvel[:, self.indexing.joint_v_index].clone()

    @property
    def joint_acc(self) -> torch.Tensor:
        """Joint accelerations [rad/s^2 or m/s^2], shape [num_envs, num_joints]."""
        return self.data.qacc[:, self.indexing.joint_v_index].clone()

    @property
    def tendon_len(self) -> torch.Tensor:
        """Tendon lengths [m], shape [num_envs, num_tendons]."""
        return self.data.ten_length[:, self.indexing.tendon_index].clone()

    @property
    def tendon_vel(self) -> torch.Tensor:
        """Tendon velocities [m/s], shape [num_envs, num_tendons]."""
        return self.data.ten_velocity[:, self.indexing.tendon_index].clone()

    @property
    def actuator_force(self) -> torch.Tensor:
        """Actuator efforts before gears [N m or N], shape [num_envs, num_actuators]."""
        return self.data.actuator_force[:, self.indexing.actuator_index].clone()

    @property
    def qfrc_actuator(self) -> torch.Tensor:
        """Actuator efforts at the joints [N m or N], shape [num_envs, num_joints]."""
        return self.data.qfrc_actuator[:, self.indexing.joint_v_index].clone()

    @property
    def joint_pos_biased(self) -> torch.Tensor:
        """Joint positions as encoders measure them [rad or m], shape [num_envs, num_joints]."""
        return self.joint_pos + self.encoder_bias

    @property
    def joint_torques(self) -> torch.Tensor:
        """Not available, because the name is ambiguous; it has no shape.

        Raises:
            NotImplementedError: always; the message names the alternatives.
        """
        raise NotImplementedError(
            "joint_torques is ambiguous: use qfrc_actuator for actuator efforts at the joints, "
            "or actuator_force for the outputs of the actuators."
        )

    @property
    def ball_joint_quat(self) -> torch.Tensor:
        """Orientations of ball joints (wxyz), shape [num_envs, num_ball_joints, 4]."""
        return self.data.qpos[:, self.indexing.ball_joint_q_adr]

    @property
    def ball_joint_ang_vel(self) -> torch.Tensor:
        """Ball joint velocities in the child's frame [rad/s], [num_envs, num_ball_joints, 3]."""
        return self.data.qvel[:, self.indexing.ball_joint_v_adr]

    @property
    def default_joint_pos(self) -> torch.Tensor:
        """Joint positions at reset [rad or m], shape [num_envs, num_joints].

        A change of a world's `qpos0` changes its defaults by the same amount; a switch to a variant
        with another `qpos0` changes nothing.
        """
        source = self.model.qpos0
        if self._qpos0_mark.moved(source):
            qpos0 = source[:, self.indexing.joint_q_index]
            compiled = self.model.default_rows("qpos0")[:, self.indexing.joint_q_index]
            self._default_joint_pos += qpos0 - self._qpos0 - (compiled - self._compiled_qpos0)
            self._qpos0.copy_(qpos0)
            self._compiled_qpos0 = compiled
        return self._default_joint_pos

    @property
    def joint_pos_limits(self) -> torch.Tensor:
        """Joint limits [rad or m], infinite where unlimited, shape [num_envs, num_joints, 2]."""
        return self._limits()[0]

    @property
    def soft_joint_pos_limits(self) -> torch.Tensor:
        """Joint limits shrunk around their midpoint, shape [num_envs, num_joints, 2]."""
        return self._limits()[1]

    # Forces.

    @property
    def body_external_wrench(self) -> torch.Tensor:
        """Forces and torques applied at centers of mass [N, N m], [num_envs, num_bodies, 6]."""
        return self.data.xfrc_applied[:, self.indexing.body_index].clone()

    @property
    def body_external_force(self) -> torch.Tensor:
        """Forces applied at centers of mass in the world [N], [num_envs, num_bodies, 3]."""
        return self.body_external_wrench[..., :3]

    @property
    def body_external_torque(self) -> torch.Tensor:
        """Torques applied to bodies in the world [N m], [num_envs, num_bodies, 3]."""
        return self.body_external_wrench[..., 3:]

    @property
    def qfrc_external(self) -> torch.Tensor:
        """Efforts of external wrenches at the joints [N m or N], shape [num_envs, num_joints].

        The value is MuJoCo's sum of smooth forces minus its other parts:
        https://mujoco.readthedocs.io/en/stable/computation/index.html#general-framework
        """
        total = (
            self.data.qfrc_smooth[:, self.indexing.joint_v_index]
            + self.data.qfrc_bias[:, self.indexing.joint_v_index]
        )
        for part in ("qfrc_passive", "qfrc_applied", "qfrc_actuator"):
            total -= getattr(self.data, part)[:, self.indexing.joint_v_index]
        return total

    # Caches.

    def _limits(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return hard and soft limits, recomputed only after writes to the model's ranges."""
        source = self.model.jnt_range
        if self._range_mark.moved(source):
            limits = source[:, self.indexing.joint_index].clone()
            limited = self.model.jnt_limited[..., self.indexing.joint_index] != 0
            infinite = torch.tensor([-torch.inf, torch.inf], device=limits.device)
            limits = torch.where(limited.unsqueeze(-1), limits, infinite)
            middle = limits.mean(dim=-1, keepdim=True)
            soft = middle + self._soft_factor * (limits - middle)
            self._hard = limits
            self._soft = torch.where(limits.isinf(), limits, soft)
        return self._hard, self._soft

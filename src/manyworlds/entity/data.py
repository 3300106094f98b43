"""An entity's state as tensors."""

from __future__ import annotations

import torch

from manyworlds.entity.indexing import EntityIndexing
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.indices import as_index
from manyworlds.utils.state import Stateful


class EntityData(Stateful):
    """Reads an entity's part of the simulation; all tensors are [num_envs, ...].

    Derived quantities (body poses) describe the state at the last `sim.forward` or refreshed step.
    """

    state_attributes = ("joint_effort_target",)

    def __init__(
        self,
        indexing: EntityIndexing,
        model: WarpBridge,
        data: WarpBridge,
        default_root_state: torch.Tensor,
        default_joint_pos: torch.Tensor,
        default_joint_vel: torch.Tensor,
        soft_joint_pos_limit_factor: float,
    ) -> None:
        self.indexing = indexing
        self.model = model
        self.data = data
        self.default_root_state = default_root_state
        """Pose [m, wxyz] and velocity [m/s, rad/s] of the root at reset, shape [num_envs, 13];
        only the pose for a fixed base, shape [num_envs, 7]."""
        self.default_joint_pos = default_joint_pos
        """Joint positions at reset [rad or m], shape [num_envs, num_joints]."""
        self.default_joint_vel = default_joint_vel
        """Joint velocities at reset [rad/s or m/s], shape [num_envs, num_joints]."""
        self.joint_effort_target = torch.zeros_like(default_joint_vel)
        """Desired joint efforts [N or N m], shape [num_envs, num_joints]."""
        self._soft_factor = soft_joint_pos_limit_factor
        self._limits_cache: tuple[tuple[int, int], torch.Tensor, torch.Tensor] | None = None
        self.body_index = as_index(indexing.body_ids.tolist())
        self.joint_index = as_index(indexing.joint_ids.tolist())
        self.ctrl_index = as_index(indexing.ctrl_ids.tolist())
        self.q_index = as_index(indexing.joint_q_adr.tolist())
        self.v_index = as_index(indexing.joint_v_adr.tolist())

    @property
    def joint_pos(self) -> torch.Tensor:
        """Joint positions [rad or m], shape [num_envs, num_joints]."""
        return self.data.qpos[:, self.q_index]

    @property
    def joint_vel(self) -> torch.Tensor:
        """Joint velocities [rad/s or m/s], shape [num_envs, num_joints]."""
        return self.data.qvel[:, self.v_index]

    @property
    def joint_acc(self) -> torch.Tensor:
        """Joint accelerations of the last physics step, shape [num_envs, num_joints]."""
        return self.data.qacc[:, self.v_index]

    @property
    def actuator_force(self) -> torch.Tensor:
        """Actuator efforts of the last physics step [N or N m], shape [num_envs, num_actuators]."""
        return self.data.actuator_force[:, self.ctrl_index]

    @property
    def joint_pos_limits(self) -> torch.Tensor:
        """Joint limits [rad or m], infinite where unlimited, shape [num_envs, num_joints, 2]."""
        return self._limits()[0]

    @property
    def soft_joint_pos_limits(self) -> torch.Tensor:
        """Joint limits shrunk around their midpoint, shape [num_envs, num_joints, 2]."""
        return self._limits()[1]

    def _limits(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Hard and soft limits, computed anew only after the model's ranges were written."""
        source = self.model.jnt_range
        if self._limits_cache is None or self._limits_cache[0] != (id(source), source._version):
            limits = source[:, self.joint_index].clone()
            limited = self.model.jnt_limited[:, self.joint_index] != 0
            infinite = torch.tensor([-torch.inf, torch.inf], device=limits.device)
            limits = torch.where(limited.unsqueeze(-1), limits, infinite)
            middle = limits.mean(dim=-1, keepdim=True)
            soft = middle + self._soft_factor * (limits - middle)
            soft = torch.where(limits.isinf(), limits, soft)
            self._limits_cache = (id(source), source._version), limits, soft
        return self._limits_cache[1], self._limits_cache[2]

    @property
    def body_link_pos_w(self) -> torch.Tensor:
        """Body positions in the world [m], shape [num_envs, num_bodies, 3]."""
        return self.data.xpos[:, self.body_index]

    @property
    def body_link_quat_w(self) -> torch.Tensor:
        """Body orientations in the world (wxyz), shape [num_envs, num_bodies, 4]."""
        return self.data.xquat[:, self.body_index]

    @property
    def body_pos_w(self) -> torch.Tensor:
        """Same as `body_link_pos_w`."""
        return self.body_link_pos_w

    @property
    def root_link_pos_w(self) -> torch.Tensor:
        """Root position in the world [m], shape [num_envs, 3]."""
        return self.data.xpos[:, self.indexing.root_body_id]

    @property
    def root_link_quat_w(self) -> torch.Tensor:
        """Root orientation in the world (wxyz), shape [num_envs, 4]."""
        return self.data.xquat[:, self.indexing.root_body_id]

"""Writing an entity's state and targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from manyworlds.actuator import CommandField
from manyworlds.entity.indexing import EntityIndexing
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.math import quat_apply, quat_apply_inverse
from manyworlds.validation.worlds import EnvIds, Worlds, as_index, assign

if TYPE_CHECKING:
    from manyworlds.entity.data import EntityData

Ids: TypeAlias = "Sequence[int] | np.ndarray | slice | torch.Tensor | None"
"""Entity-local ids of elements, or a mask over them; None for all."""


class StateWriters:
    """Writes state, targets and controls of an entity, in given worlds and elements, None for all.

    Values have one row per world and one column per element; NumPy arrays are accepted. Derived
    quantities follow at the next `sim.forward` or step.

    Raises:
        ValueError: a write to the root does not fit a fixed or a floating base, an id is out of
            range, or a shape is wrong.
    """

    data: EntityData
    indexing: EntityIndexing

    # The root.

    def write_root_state_to_sim(self, root_state: torch.Tensor, env_ids: EnvIds = None) -> None:
        """Set pose [m, wxyz] and world velocity [m/s, rad/s], shape [len(env_ids), 13]."""
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        root_state = self._tensor(root_state, 13)
        self.write_root_link_pose_to_sim(root_state[..., :7], worlds)
        self.write_root_link_velocity_to_sim(root_state[..., 7:], worlds)

    def write_root_link_pose_to_sim(self, root_pose: torch.Tensor, env_ids: EnvIds = None) -> None:
        """Set the root's pose in the world [m, wxyz], shape [len(env_ids), 7]."""
        self._require_floating_base("pose")
        root_pose = self._tensor(root_pose, 7)
        assign(self.data.data.qpos, root_pose, env_ids, self.indexing.free_joint_q_index)

    def write_root_link_velocity_to_sim(
        self, root_velocity: torch.Tensor, env_ids: EnvIds = None
    ) -> None:
        """Set the velocity of the root's origin in the world [m/s, rad/s], [len(env_ids), 6]."""
        # MuJoCo keeps a free joint's linear velocity in the world, its angular one in the body.
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        quat, velocity = self._root_motion(root_velocity, worlds)
        angular = quat_apply_inverse(quat, velocity[..., 3:])
        self._write_root_qvel(velocity[..., :3], angular, worlds)

    def write_root_link_velocity_b_to_sim(
        self, root_velocity_b: torch.Tensor, env_ids: EnvIds = None
    ) -> None:
        """Set the velocity of the root's origin in its own frame [m/s, rad/s]."""
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        quat, velocity = self._root_motion(root_velocity_b, worlds)
        linear = quat_apply(quat, velocity[..., :3])
        self._write_root_qvel(linear, velocity[..., 3:], worlds)

    def write_root_com_velocity_to_sim(
        self, root_velocity: torch.Tensor, env_ids: EnvIds = None
    ) -> None:
        """Set the velocity of the root body's center of mass in the world [m/s, rad/s]."""
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        quat, velocity = self._root_motion(root_velocity, worlds)
        offset = self.data.model.body_ipos[:, self.indexing.root_body_id]
        arm = quat_apply(quat, worlds.take(offset))
        linear = velocity[..., :3] - torch.linalg.cross(velocity[..., 3:], arm)
        angular = quat_apply_inverse(quat, velocity[..., 3:])
        self._write_root_qvel(linear, angular, worlds)

    def write_mocap_pose_to_sim(self, mocap_pose: torch.Tensor, env_ids: EnvIds = None) -> None:
        """Place a fixed base in the world [m, wxyz], shape [len(env_ids), 7]."""
        mocap_id = self.indexing.mocap_id
        if mocap_id is None:
            raise ValueError(
                "Cannot write a mocap pose: the root is no mocap body. Use "
                "write_root_link_pose_to_sim for a floating base."
            )
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        pose = self._tensor(mocap_pose, 7)
        column = slice(mocap_id, mocap_id + 1)
        assign(self.data.data.mocap_pos, pose[..., None, :3], worlds, column)
        assign(self.data.data.mocap_quat, pose[..., None, 3:], worlds, column)

    # Joints, controls and wrenches.

    def write_joint_state_to_sim(
        self,
        position: torch.Tensor,
        velocity: torch.Tensor,
        joint_ids: Ids = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set joint positions and velocities, each of shape [len(env_ids), len(joint_ids)]."""
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        q_index = _select(self.indexing.joint_q_adr, self.indexing.joint_q_index, joint_ids)
        assign(self.data.data.qpos, position, worlds, q_index)
        v_index = _select(self.indexing.joint_v_adr, self.indexing.joint_v_index, joint_ids)
        assign(self.data.data.qvel, velocity, worlds, v_index)

    def write_joint_position_to_sim(
        self, position: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set joint positions [rad or m], shape [len(env_ids), len(joint_ids)]."""
        index = _select(self.indexing.joint_q_adr, self.indexing.joint_q_index, joint_ids)
        assign(self.data.data.qpos, position, env_ids, index)

    def write_joint_velocity_to_sim(
        self, velocity: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set joint velocities [rad/s or m/s], shape [len(env_ids), len(joint_ids)]."""
        index = _select(self.indexing.joint_v_adr, self.indexing.joint_v_index, joint_ids)
        assign(self.data.data.qvel, velocity, env_ids, index)

    def write_ball_joint_state_to_sim(
        self,
        quat: torch.Tensor,
        ang_vel: torch.Tensor,
        ball_joint_ids: Ids = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set ball joints: orientations (wxyz) and velocities in the child's frame [rad/s].

        Args:
            quat: shape [len(env_ids), len(ball_joint_ids), 4].
            ang_vel: shape [len(env_ids), len(ball_joint_ids), 3].
            ball_joint_ids: the ball joints.
            env_ids: the worlds.
        """
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        columns = _columns(ball_joint_ids, len(self.indexing.ball_joint_ids))
        q_adr = self.indexing.ball_joint_q_adr[columns]
        v_adr = self.indexing.ball_joint_v_adr[columns]
        quat = self._per_element("quat", quat, len(q_adr), 4)
        assign(self.data.data.qpos, quat.flatten(-2), worlds, as_index(q_adr.flatten()))
        ang_vel = self._per_element("ang_vel", ang_vel, len(v_adr), 3)
        assign(self.data.data.qvel, ang_vel.flatten(-2), worlds, as_index(v_adr.flatten()))

    def write_ctrl_to_sim(
        self, ctrl: torch.Tensor, ctrl_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set controls, bypassing the actuator objects, shape [len(env_ids), len(ctrl_ids)]."""
        index = _select(self.indexing.ctrl_ids, self.indexing.ctrl_index, ctrl_ids)
        assign(self.data.data.ctrl, ctrl, env_ids, index)

    def write_external_wrench_to_sim(
        self,
        forces: torch.Tensor | None,
        torques: torch.Tensor | None,
        env_ids: EnvIds = None,
        body_ids: Ids = None,
    ) -> None:
        """Apply forces and torques to bodies from now on, until overwritten or reset.

        Args:
            forces: at the bodies' centers of mass, in the world [N], shape [len(env_ids),
                len(body_ids), 3], or [len(env_ids), 3] for one body; None keeps the present forces.
            torques: in the world [N m], of the same shapes; None keeps the present torques.
            env_ids: the worlds.
            body_ids: the bodies.
        """
        self.data.has_wrench = True
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        wrench = self.data.data.xfrc_applied
        index = _select(self.indexing.body_ids, self.indexing.body_index, body_ids)
        count = wrench[0, index].shape[0]
        if forces is not None:
            assign(wrench[..., :3], self._per_element("force", forces, count, 3), worlds, index)
        if torques is not None:
            assign(wrench[..., 3:], self._per_element("torque", torques, count, 3), worlds, index)

    # Targets.

    def set_target(
        self,
        transmission: TransmissionType,
        field: CommandField,
        value: torch.Tensor,
        element_ids: Ids = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set targets of one kind, shape [len(env_ids), len(element_ids)].

        Args:
            transmission: the kind of the elements: joints, tendons or sites.
            field: the kind of the targets; sites have efforts only.
            value: the targets, in the units of `DriveTargets`.
            element_ids: the elements.
            env_ids: the worlds.

        Raises:
            ValueError: the elements have no such target, an id is out of range, or a shape is
                wrong.
        """
        if transmission == TransmissionType.SITE and field != "effort":
            raise ValueError(f"A site has no {field} target: set its effort target.")
        target = self.data.drive_targets(transmission).of(field)
        columns = element_ids
        if not isinstance(columns, slice):
            columns = _columns(columns, target.shape[1])
        assign(target, value, env_ids, columns)

    def set_joint_position_target(
        self, position: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired joint positions [rad or m], shape [len(env_ids), len(joint_ids)]."""
        self.set_target(TransmissionType.JOINT, "position", position, joint_ids, env_ids)

    def set_joint_velocity_target(
        self, velocity: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired joint velocities [rad/s or m/s], shape [len(env_ids), len(joint_ids)]."""
        self.set_target(TransmissionType.JOINT, "velocity", velocity, joint_ids, env_ids)

    def set_joint_effort_target(
        self, effort: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired joint efforts before gears, shape [len(env_ids), len(joint_ids)]."""
        self.set_target(TransmissionType.JOINT, "effort", effort, joint_ids, env_ids)

    def set_tendon_len_target(
        self, length: torch.Tensor, tendon_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired tendon lengths [m], shape [len(env_ids), len(tendon_ids)]."""
        self.set_target(TransmissionType.TENDON, "position", length, tendon_ids, env_ids)

    def set_tendon_vel_target(
        self, velocity: torch.Tensor, tendon_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired tendon velocities [m/s], shape [len(env_ids), len(tendon_ids)]."""
        self.set_target(TransmissionType.TENDON, "velocity", velocity, tendon_ids, env_ids)

    def set_tendon_effort_target(
        self, effort: torch.Tensor, tendon_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired tendon forces before gears [N], [len(env_ids), len(tendon_ids)]."""
        self.set_target(TransmissionType.TENDON, "effort", effort, tendon_ids, env_ids)

    def set_site_effort_target(
        self, effort: torch.Tensor, site_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        """Set desired efforts at sites before gears, shape [len(env_ids), len(site_ids)]."""
        self.set_target(TransmissionType.SITE, "effort", effort, site_ids, env_ids)

    # Helpers.

    def _tensor(self, values: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Convert values to a float32 tensor on the device of the entity, and check its width."""
        values = torch.as_tensor(values, dtype=torch.float32, device=self.data.device)
        if width is not None and values.shape[-1:] != (width,):
            raise ValueError(
                f"This part of the root's state has {width} numbers per world, got values of shape "
                f"{tuple(values.shape)}: give shape [len(env_ids), {width}]."
            )
        return values

    def _root_motion(
        self, velocity: torch.Tensor, worlds: Worlds
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the root's orientations in `qpos`, and one velocity per world."""
        self._require_floating_base("velocity")
        quat = worlds.take(self.data.data.qpos[:, self.indexing.free_joint_q_index])[:, 3:]
        velocity = self._tensor(velocity, 6)
        if velocity.shape[:-1] not in ((), (1,), (len(quat),)):
            raise ValueError(
                f"Values of shape {(len(quat), 6)} were expected, got {tuple(velocity.shape)}: "
                "give a row for each world, or one for all."
            )
        return quat, velocity.expand(len(quat), 6)

    def _write_root_qvel(self, linear: torch.Tensor, angular: torch.Tensor, worlds: Worlds) -> None:
        qvel = torch.cat([linear, angular], dim=-1)
        assign(self.data.data.qvel, qvel, worlds, self.indexing.free_joint_v_index)

    def _require_floating_base(self, what: str) -> None:
        if self.indexing.is_fixed_base:
            if self.indexing.mocap_id is not None:
                remedy = "use write_mocap_pose_to_sim"
            else:
                remedy = "give its root body a <freejoint>"
            raise ValueError(f"Cannot write the root {what} of a fixed base: {remedy}.")

    def _per_element(self, what: str, values: torch.Tensor, count: int, width: int) -> torch.Tensor:
        """Convert values to a tensor of shape [len(env_ids), count, width].

        The dimension of elements may be omitted only for a single element.
        """
        values = self._tensor(values)
        fits = values.ndim == 3 or (values.ndim == 2 and count == 1)
        if not fits or values.shape[-1] != width:
            short = ""
            if count == 1:
                short = f" or [len(env_ids), {width}]"
            raise ValueError(
                f"{what} must have shape [len(env_ids), {count}, {width}]{short}, got "
                f"{tuple(values.shape)}: give one row per world with one entry per element."
            )
        if values.ndim == 2:
            values = values.unsqueeze(1)
        return values


def _columns(ids: Ids, count: int) -> slice | torch.Tensor:
    """Convert ids to an index; ids on a GPU are not checked, which would synchronize with it."""
    if isinstance(ids, torch.Tensor) and ids.is_cuda and ids.dtype != torch.bool:
        return ids
    return as_index(ids, count)


def _select(every: torch.Tensor, index: slice | torch.Tensor, ids: Ids) -> slice | torch.Tensor:
    """Select global ids or addresses by local ids; for all of them return their `index`."""
    if ids is None or (isinstance(ids, slice) and ids == slice(None)):
        return index
    if isinstance(ids, slice):
        return every[ids]
    return every[_columns(ids, len(every))]

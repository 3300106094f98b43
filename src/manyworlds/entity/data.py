"""An entity's state as tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

from manyworlds.entity.indexing import EntityIndexing
from manyworlds.entity.writers import DataWriters
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.math import quat_mul
from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, as_index, assign

# Name of a target -> the kind of element that it has a column for.
TARGETS: dict[str, str] = {
    "joint_pos_target": "joint",
    "joint_vel_target": "joint",
    "joint_effort_target": "joint",
    "tendon_len_target": "tendon",
    "tendon_vel_target": "tendon",
    "tendon_effort_target": "tendon",
    "site_effort_target": "site",
}


@dataclass(frozen=True)
class _Frame:
    """Where the poses of one family of frames are: `inertial` ones are those of centers of mass."""

    kind: str
    pos: str
    inertial: bool = False


# MuJoCo stores positions of all of these, but quaternions of bodies only.
_FRAMES = {
    "root_link": _Frame("root", "xpos"),
    "root_com": _Frame("root", "xipos", inertial=True),
    "body_link": _Frame("body", "xpos"),
    "body_com": _Frame("body", "xipos", inertial=True),
    "geom": _Frame("geom", "geom_xpos"),
    "site": _Frame("site", "site_xpos"),
}

_QUANTITIES = {
    "pose_w": ("poses in the world [m, wxyz]", 7),
    "vel_w": ("velocities in the world [m/s, rad/s]", 6),
    "pos_w": ("positions in the world [m]", 3),
    "quat_w": ("orientations in the world (wxyz)", 4),
    "lin_vel_w": ("linear velocities in the world [m/s]", 3),
    "ang_vel_w": ("angular velocities in the world [rad/s]", 3),
}


def _family(name: str) -> tuple[property, ...]:
    """Make the properties of a family of frames, in the order of `_QUANTITIES`."""
    frame = _FRAMES[name]
    shape = "num_envs" if frame.kind == "root" else f"num_envs, num {frame.kind}s"

    def make(quantity: str) -> property:
        def read(self: EntityData) -> torch.Tensor:
            return getattr(self, f"_{quantity}")(frame)

        what, width = _QUANTITIES[quantity]
        doc = f"Of {name.replace('_', ' ')} frames: {what}, shape [{shape}, {width}]."
        return property(read, doc=doc)

    return tuple(make(quantity) for quantity in _QUANTITIES)


def _in_body_frame(quantity: str) -> property:
    def read(self: EntityData) -> torch.Tensor:
        rotation = self.data.xmat[:, self._index["root"]]
        return torch.matmul(getattr(self, quantity).unsqueeze(1), rotation).squeeze(1)

    return property(read, doc=f"`{quantity}` seen from the root's frame, shape [num_envs, 3].")


def _column(source: str, index: str, doc: str) -> property:
    def read(self: EntityData) -> torch.Tensor:
        return getattr(self.data, source)[:, getattr(self, index)]

    return property(read, doc=doc)


def compute_velocity_from_cvel(
    pos: torch.Tensor, subtree_com: torch.Tensor, cvel: torch.Tensor
) -> torch.Tensor:
    """World velocities [m/s, rad/s] of points that move with bodies, shape [..., 6].

    Args:
        pos: the points in the world [m], shape [..., 3].
        subtree_com: centers of mass of the trees that the bodies belong to [m], shape [..., 3].
        cvel: MuJoCo's velocities of the bodies [rad/s, m/s], shape [..., 6].
    """
    return torch.cat([_point_velocity(pos, subtree_com, cvel), cvel[..., :3]], dim=-1)


def _point_velocity(
    pos: torch.Tensor, subtree_com: torch.Tensor, cvel: torch.Tensor
) -> torch.Tensor:
    # MuJoCo's cvel is the velocity of the point of the body that is at its tree's center of mass:
    # https://mujoco.readthedocs.io/en/stable/computation/index.html#forward-dynamics
    return cvel[..., 3:] + torch.linalg.cross(cvel[..., :3], pos - subtree_com)


@dataclass(frozen=True, kw_only=True)
class EntityDefaults:
    """Where an entity starts, each [num_envs, ...]; see the attributes of `EntityData`."""

    root_state: torch.Tensor
    joint_pos: torch.Tensor
    joint_vel: torch.Tensor
    ball_joint_quat: torch.Tensor


class EntityData(DataWriters, Stateful):
    """Reads and writes an entity's part of the simulation; all tensors are [num_envs, ...].

    Poses and velocities of frames describe the state at the last `sim.forward` or refreshed step:
    after writing state, call `sim.forward` to have them current. Accelerations and forces are
    those of the last physics step.

    Args:
        indexing: where the entity is in the model.
        model: the simulation's model.
        data: the simulation's data.
        defaults: where the entity starts.
        soft_joint_pos_limit_factor: share of a joint's range within its soft limits.
        driven: kinds of elements that actuators drive: 'tendon', 'site'. Targets of tendons and
            sites have no columns unless actuators follow them.
    """

    state_attributes = (
        *TARGETS,
        *("default_root_state", "_default_joint_pos", "default_joint_vel", "encoder_bias"),
        *("default_ball_joint_quat", "_qpos0", "has_wrench"),
    )
    derived_attributes = ("_seen", "_hard", "_soft")

    POS_DIM, QUAT_DIM, LIN_VEL_DIM, ANG_VEL_DIM = 3, 4, 3, 3
    ROOT_POSE_DIM = POS_DIM + QUAT_DIM
    ROOT_VEL_DIM = LIN_VEL_DIM + ANG_VEL_DIM
    ROOT_STATE_DIM = ROOT_POSE_DIM + ROOT_VEL_DIM

    def __init__(
        self,
        indexing: EntityIndexing,
        model: WarpBridge,
        data: WarpBridge,
        defaults: EntityDefaults,
        soft_joint_pos_limit_factor: float = 1.0,
        driven: Collection[str] = (),
    ) -> None:
        self.indexing = indexing
        self.model = model
        self.data = data
        self.default_root_state = defaults.root_state
        """Pose [m, wxyz] relative to the world's origin and velocity [m/s, rad/s] of the root at
        reset, shape [num_envs, 13]; only the pose for a fixed base, shape [num_envs, 7]."""
        self._default_joint_pos = defaults.joint_pos
        self.default_joint_vel = defaults.joint_vel
        """Joint velocities at reset [rad/s or m/s], shape [num_envs, num_joints]."""
        self.default_ball_joint_quat = defaults.ball_joint_quat
        """Ball joint orientations at reset (wxyz), shape [num_envs, num_ball_joints, 4]."""
        num_envs, num_joints = defaults.joint_pos.shape
        device = defaults.joint_pos.device
        self.encoder_bias = torch.zeros(num_envs, num_joints, device=device)
        """What joint encoders add to the joint positions [rad or m], [num_envs, num_joints]."""
        widths = {"joint": num_joints, "tendon": len(indexing.tendons), "site": len(indexing.sites)}
        self.joint_pos_target: torch.Tensor
        """Desired joint positions [rad or m], shape [num_envs, num_joints]."""
        self.joint_vel_target: torch.Tensor
        """Desired joint velocities [rad/s or m/s], shape [num_envs, num_joints]."""
        self.joint_effort_target: torch.Tensor
        """Desired joint efforts before gears [N m or N], shape [num_envs, num_joints]."""
        self.tendon_len_target: torch.Tensor
        """Desired tendon lengths [m], shape [num_envs, num_tendons], or 0 columns."""
        self.tendon_vel_target: torch.Tensor
        """Desired tendon velocities [m/s], shape [num_envs, num_tendons], or 0 columns."""
        self.tendon_effort_target: torch.Tensor
        """Desired tendon forces before gears [N], [num_envs, num_tendons], or 0 columns."""
        self.site_effort_target: torch.Tensor
        """Desired efforts at sites before gears, shape [num_envs, num_sites], or 0 columns."""
        for name, kind in TARGETS.items():
            width = widths[kind] if kind == "joint" or kind in driven else 0
            setattr(self, name, torch.zeros(num_envs, width, device=device))
        self.gravity_vec_w = torch.tensor([0.0, 0.0, -1.0], device=device).repeat(num_envs, 1)
        """Direction of gravity in the world, shape [num_envs, 3]."""
        self.forward_vec_b = torch.tensor([1.0, 0.0, 0.0], device=device).repeat(num_envs, 1)
        """Direction that the root faces, in its frame, shape [num_envs, 3]."""
        self._soft_factor = soft_joint_pos_limit_factor
        self._seen: dict[str, tuple[int, int]] = {}
        self._hard = self._soft = torch.empty(0)
        self._set_indices(indexing)
        self._qpos0 = model.qpos0[:, self.q_index].clone()
        self._compiled_qpos0 = model.default_rows("qpos0")[:, self.q_index]
        self.default_joint_pos_limits = self.joint_pos_limits.clone()
        """Joint limits that the worlds began with [rad or m], shape [num_envs, num_joints, 2]."""

    def _set_indices(self, indexing: EntityIndexing) -> None:
        """Bring ids to the cheapest form of index."""
        self.body_index = as_index(indexing.body_ids)
        self.joint_index = as_index(indexing.joint_ids)
        self.geom_index = as_index(indexing.geom_ids)
        self.site_index = as_index(indexing.site_ids)
        self.tendon_index = as_index(indexing.tendon_ids)
        self.actuator_index = as_index(indexing.actuator_ids)
        self.ctrl_index = as_index(indexing.ctrl_ids)
        self.q_index = as_index(indexing.joint_q_adr)
        self.v_index = as_index(indexing.joint_v_adr)
        self.free_q_index = as_index(indexing.free_joint_q_adr)
        self.free_v_index = as_index(indexing.free_joint_v_adr)
        self._index = {
            "root": indexing.root_body_id,
            "body": self.body_index,
            "geom": self.geom_index,
            "site": self.site_index,
        }
        # The bodies that frames of each kind move with, and the roots of these bodies' trees.
        self._carriers = {
            "root": indexing.root_body_id,
            "body": self.body_index,
            "geom": as_index(indexing.geom_body_ids),
            "site": as_index(indexing.site_body_ids),
        }
        self._roots: dict[str, Any] = {"root": indexing.tree_root_ids[indexing.root_body_id].item()}
        for kind, ids in (
            ("body", indexing.body_ids),
            ("geom", indexing.geom_body_ids),
            ("site", indexing.site_body_ids),
        ):
            roots = indexing.tree_root_ids[ids]
            shared = len(roots) and bool((roots == roots[0]).all())
            self._roots[kind] = slice(roots[0].item(), roots[0].item() + 1) if shared else roots

    # What it is.

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.encoder_bias.device

    @property
    def is_articulated(self) -> bool:
        """Whether it has joints besides a free one."""
        return len(self.indexing.joints) + len(self.indexing.ball_joints) > 0

    @property
    def is_actuated(self) -> bool:
        """Whether it has actuators."""
        return len(self.indexing.actuators) > 0

    def state_dict(self) -> dict[str, Any]:
        """Copy targets, defaults and biases, with the defaults as they are now."""
        _ = self.default_joint_pos  # which then has followed qpos0
        return super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned, after that of the simulation."""
        super().load_state_dict(state)
        self._compiled_qpos0 = self.model.default_rows("qpos0")[:, self.q_index]

    def clear_state(self, env_ids: EnvIds = None) -> None:
        """Clear targets and external wrenches in the worlds named."""
        for target in TARGETS:
            assign(getattr(self, target), 0.0, env_ids)
        if self.has_wrench:
            assign(self.data.xfrc_applied, 0.0, env_ids, self.body_index)

    # Joints, tendons and actuators.

    joint_pos = _column("qpos", "q_index", "Joint positions [rad or m], [num_envs, num_joints].")
    joint_vel = _column("qvel", "v_index", "Joint velocities, shape [num_envs, num_joints].")
    joint_acc = _column("qacc", "v_index", "Joint accelerations, shape [num_envs, num_joints].")
    tendon_len = _column("ten_length", "tendon_index", "Tendon lengths [m], [num_envs, ntendon].")
    tendon_vel = _column("ten_velocity", "tendon_index", "Tendon velocities [m/s].")
    actuator_force = _column(
        "actuator_force",
        "actuator_index",
        "Actuator efforts before gears [N m or N], [num_envs, num_actuators].",
    )
    qfrc_actuator = _column(
        "qfrc_actuator", "v_index", "Actuator efforts at the joints, [num_envs, num_joints]."
    )

    @property
    def joint_pos_biased(self) -> torch.Tensor:
        """Joint positions as the encoders tell them [rad or m], [num_envs, num_joints]."""
        return self.joint_pos + self.encoder_bias

    @property
    def joint_torques(self) -> torch.Tensor:
        """Not available: which torques are meant is not clear.

        Raises:
            NotImplementedError: always; names what to use instead.
        """
        raise NotImplementedError(
            "joint_torques is ambiguous: use qfrc_actuator for what actuators do at the joints, "
            "or actuator_force for their own outputs."
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

        Where a world's `qpos0` is changed, its defaults change by as much; another variant with
        another `qpos0` changes nothing.
        """
        if self._was_written("qpos0"):
            qpos0 = self.model.qpos0[:, self.q_index]
            compiled = self.model.default_rows("qpos0")[:, self.q_index]
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
        return self.data.xfrc_applied[:, self.body_index]

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
        """What external wrenches do at the joints [N m or N], shape [num_envs, num_joints].

        MuJoCo's sum of smooth forces less its other parts:
        https://mujoco.readthedocs.io/en/stable/computation/index.html#general-framework
        """
        total = self.data.qfrc_smooth[:, self.v_index] + self.data.qfrc_bias[:, self.v_index]
        for part in ("qfrc_passive", "qfrc_applied", "qfrc_actuator"):
            total -= getattr(self.data, part)[:, self.v_index]
        return total

    # Poses and velocities.

    (
        root_link_pose_w,
        root_link_vel_w,
        root_link_pos_w,
        root_link_quat_w,
        root_link_lin_vel_w,
        root_link_ang_vel_w,
    ) = _family("root_link")
    (
        root_com_pose_w,
        root_com_vel_w,
        root_com_pos_w,
        root_com_quat_w,
        root_com_lin_vel_w,
        root_com_ang_vel_w,
    ) = _family("root_com")
    (
        body_link_pose_w,
        body_link_vel_w,
        body_link_pos_w,
        body_link_quat_w,
        body_link_lin_vel_w,
        body_link_ang_vel_w,
    ) = _family("body_link")
    (
        body_com_pose_w,
        body_com_vel_w,
        body_com_pos_w,
        body_com_quat_w,
        body_com_lin_vel_w,
        body_com_ang_vel_w,
    ) = _family("body_com")
    (
        geom_pose_w,
        geom_vel_w,
        geom_pos_w,
        geom_quat_w,
        geom_lin_vel_w,
        geom_ang_vel_w,
    ) = _family("geom")
    (
        site_pose_w,
        site_vel_w,
        site_pos_w,
        site_quat_w,
        site_lin_vel_w,
        site_ang_vel_w,
    ) = _family("site")
    # Short names stand for the link's frame.
    body_pose_w, body_vel_w, body_pos_w = body_link_pose_w, body_link_vel_w, body_link_pos_w
    body_quat_w, body_lin_vel_w = body_link_quat_w, body_link_lin_vel_w
    body_ang_vel_w = body_link_ang_vel_w

    root_link_lin_vel_b = _in_body_frame("root_link_lin_vel_w")
    root_link_ang_vel_b = _in_body_frame("root_link_ang_vel_w")
    root_com_lin_vel_b = _in_body_frame("root_com_lin_vel_w")
    root_com_ang_vel_b = _in_body_frame("root_com_ang_vel_w")
    projected_gravity_b = _in_body_frame("gravity_vec_w")

    @property
    def heading_w(self) -> torch.Tensor:
        """Angle of the root's forward direction about the world's z [rad], shape [num_envs]."""
        level = self.data.xmat[:, self._index["root"], :2]
        x, y = (level * self.forward_vec_b.unsqueeze(1)).sum(dim=-1).unbind(1)
        return torch.atan2(y, x)

    # How families are read.

    def _pos_w(self, frame: _Frame) -> torch.Tensor:
        return getattr(self.data, frame.pos)[:, self._index[frame.kind]]

    def _quat_w(self, frame: _Frame) -> torch.Tensor:
        quat = self.data.xquat[:, self._carriers[frame.kind]]
        if frame.inertial:
            return quat_mul(quat, self.model.body_iquat[:, self._carriers[frame.kind]])
        if frame.kind in ("geom", "site"):
            local = getattr(self.model, f"{frame.kind}_quat")
            return quat_mul(quat, local[:, self._index[frame.kind]])
        return quat

    def _pose_w(self, frame: _Frame) -> torch.Tensor:
        return torch.cat([self._pos_w(frame), self._quat_w(frame)], dim=-1)

    def _vel_w(self, frame: _Frame) -> torch.Tensor:
        return compute_velocity_from_cvel(*self._motion(frame))

    def _ang_vel_w(self, frame: _Frame) -> torch.Tensor:
        return self.data.cvel[:, self._carriers[frame.kind], :3]

    def _lin_vel_w(self, frame: _Frame) -> torch.Tensor:
        return _point_velocity(*self._motion(frame))

    def _motion(self, frame: _Frame) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Where frames are, where the centers of mass of their trees are, and `cvel`."""
        subtree_com = self.data.subtree_com[:, self._roots[frame.kind]]
        return self._pos_w(frame), subtree_com, self.data.cvel[:, self._carriers[frame.kind]]

    def _was_written(self, field: str) -> bool:
        """Whether a model field may have changed since the last call for this field."""
        source = getattr(self.model, field)
        with torch._C.DisableTorchFunctionSubclass():  # which costs more than all the rest
            now = id(source), source._version
        before = self._seen.get(field)
        self._seen[field] = now
        return before != now

    def _limits(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Hard and soft limits, computed anew only after the model's ranges were written."""
        if self._was_written("jnt_range"):
            limits = self.model.jnt_range[:, self.joint_index].clone()
            limited = self.model.jnt_limited[:, self.joint_index] != 0
            infinite = torch.tensor([-torch.inf, torch.inf], device=limits.device)
            limits = torch.where(limited.unsqueeze(-1), limits, infinite)
            middle = limits.mean(dim=-1, keepdim=True)
            soft = middle + self._soft_factor * (limits - middle)
            self._hard, self._soft = limits, torch.where(limits.isinf(), limits, soft)
        return self._hard, self._soft

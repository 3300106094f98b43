"""Differential inverse kinematics by damped least squares, as an action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch

from manyworlds.envs.mdp.actions.actions import clip_bounds, find_targets
from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg, TargetColumns
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.math import (
    default_orientation,
    normalize,
    quat_box_minus,
    quat_box_plus,
    quat_conjugate,
    quat_mul,
)
from manyworlds.utils.math.vectors import cross
from manyworlds.validation.worlds import EnvIds, as_index, assign, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

# Field of `MjData` with the positions of each kind of frame.
_POSITIONS = {"body": "xpos", "site": "site_xpos", "geom": "geom_xpos"}


@dataclass(kw_only=True)
class DifferentialIKActionCfg(ActionTermCfg):
    """Configuration of an action that moves joints so that a frame reaches a pose.

    The action has one of these forms; positions are relative to the world's origin, in its axes:

    - relative: a translation [m] and a rotation vector [rad] from the current pose, 6 numbers;
    - absolute: position [m] and orientation (wxyz, need not be normalized), 7 numbers;
    - with `orientation_weight=0`: only the first 3 numbers of either form.
    """

    actuator_names: tuple[str, ...] | list[str]
    """Regular expressions that select joints whose actuators follow position targets, by the names
    of the joints or of the actuators: see `DrivenTargets`."""
    frame_type: Literal["body", "site", "geom"] = "body"
    frame_name: str
    """Name of the body, site or geom in the entity."""
    use_relative_mode: bool = True
    """Interpret the action relative to the current pose."""
    delta_pos_scale: float = 1.0
    """Factor of translations in relative mode."""
    delta_ori_scale: float = 1.0
    """Factor of rotations in relative mode."""
    damping: float = 0.05
    """Weight of the damping: larger values give slower motion, and more robust near
    singularities."""
    max_dq: float = 0.5
    """Maximum change of a joint in one physics step [rad or m]; if exceeded, all changes are
    scaled by the same factor."""
    position_weight: float = 1.0
    orientation_weight: float = 1.0
    joint_limit_weight: float = 0.0
    """Weight of the return to soft limits, for joints that are beyond them."""
    posture_weight: float = 0.0
    """Weight of the approach to `posture_target`."""
    posture_target: dict[str, float] | None = field(default=None)
    """Joint positions by regular expression [rad or m]. Joints without a match, and all joints for
    None, use their current defaults."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.frame_type not in _POSITIONS:
            raise ValueError(
                f"DifferentialIKActionCfg.frame_type must be 'body', 'site' or 'geom', got "
                f"'{self.frame_type}'."
            )
        if self.position_weight == 0.0 and self.orientation_weight == 0.0:
            raise ValueError(
                "DifferentialIKActionCfg.position_weight and orientation_weight are both 0, so "
                "that actions have no effect: make one of them positive."
            )
        for name, value in {"damping": self.damping, "max_dq": self.max_dq}.items():
            if not value > 0.0:
                raise ValueError(f"DifferentialIKActionCfg.{name} must be positive, got {value}.")

    def build(self, env: ManagerBasedRlEnv) -> DifferentialIKAction:
        """Build the term."""
        return DifferentialIKAction(self, env)


class DifferentialIKAction(ActionTerm):
    """Action that minimizes `|J dq - e|^2_W + damping^2 |dq|^2 + ...` before every physics step.

    J is the frame's Jacobian, e is the error of its pose, and dq are the changes of the joints. The
    solution is that of damped least squares: Nakamura and Hanafusa, "Inverse Kinematic Solutions
    With Singularity Robustness for Robot Manipulator Control", 1986. Kinematics are those at the
    beginning of the last physics step; in the first physics step of a control step they are
    current.

    Raises:
        ValueError: actuators or the frame are not found, or no selected joint moves the frame.
    """

    cfg: DifferentialIKActionCfg
    needs_substeps = True
    state_attributes = ("_raw_actions", "_target_pos", "_target_quat")

    def __init__(self, cfg: DifferentialIKActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        entity = self._entity
        ids, targets = find_targets(entity, cfg.actuator_names, field="position")
        self._target_names = list(targets.names)
        self._target_ids = torch.tensor(ids, device=self.device)
        self._index = as_index(self._target_ids)
        self._dofs = as_index(entity.indexing.joint_v_adr[self._target_ids])
        self._find_frame()
        self._clip = clip_bounds(cfg.clip, targets, self.device)
        posture = targets.values(cfg.posture_target or {}, torch.nan)
        self._posture = torch.tensor(posture, dtype=torch.float32, device=self.device)
        self._full_pose = cfg.orientation_weight != 0.0
        width = 3
        if self._full_pose:
            width = 6 if cfg.use_relative_mode else 7
        weights = 3 * [cfg.position_weight] + 3 * [cfg.orientation_weight]
        self._weights = torch.tensor(weights, dtype=torch.float32, device=self.device)
        diagonal = cfg.damping**2 + cfg.posture_weight
        self._diagonal = diagonal * torch.eye(len(ids), device=self.device)
        self._raw_actions = torch.zeros(self.num_envs, width, device=self.device)
        self._target_pos = torch.zeros(self.num_envs, 3, device=self.device)
        self._target_quat = torch.zeros(self.num_envs, 4, device=self.device)
        self._identity = default_orientation(self.num_envs, self.device)

    @property
    def sets(self) -> TargetColumns | None:
        """Position targets that the term sets."""
        return TargetColumns(
            self.cfg.entity_name, TransmissionType.JOINT, "position", self._target_names
        )

    @property
    def action_dim(self) -> int:
        """Width of the slice: 3, 6 or 7."""
        return self._raw_actions.shape[1]

    @property
    def raw_action(self) -> torch.Tensor:
        """Unprocessed slice of the policy's action, shape [num_envs, action_dim]."""
        return self._raw_actions

    @property
    def target_ids(self) -> torch.Tensor:
        """Entity-local ids of the driven joints, shape [joints]."""
        return self._target_ids

    @property
    def target_names(self) -> list[str]:
        """Names of the driven joints."""
        return self._target_names

    def process_actions(self, actions: torch.Tensor) -> None:
        """Compute the target pose from actions of shape [num_envs, action_dim]."""
        self._raw_actions.copy_(actions)
        cfg = self.cfg
        if not cfg.use_relative_mode:
            self._target_pos.copy_(actions[:, :3] + self._env.scene.env_origins)
            if self._full_pose:
                inverse = quat_conjugate(self._local_quat())
                self._target_quat.copy_(quat_mul(normalize(actions[:, 3:]), inverse))
            return
        self._target_pos.copy_(self._frame_pos() + cfg.delta_pos_scale * actions[:, :3])
        if self._full_pose:
            quat = self._env.sim.data.xquat[:, self._body]
            self._target_quat.copy_(quat_box_plus(quat, cfg.delta_ori_scale * actions[:, 3:]))

    def compute_dq(self) -> torch.Tensor:
        """Return the changes of the joints [rad or m], shape [num_envs, joints]."""
        cfg = self.cfg
        data = self._entity.data
        error = self._pose_error()
        jacobian = torch.cat(self._compute_jacobian(), dim=1)
        jacobian = jacobian[:, : error.shape[1]]
        weighted = jacobian.mT * self._weights[: error.shape[1]]
        hessian = weighted @ jacobian + self._diagonal
        gradient = (weighted @ error.unsqueeze(-1)).squeeze(-1)
        q = data.joint_pos[:, self._index]
        if cfg.joint_limit_weight:
            low, high = data.soft_joint_pos_limits[:, self._index].unbind(-1)
            beyond = q.clamp(low, high) - q
            hessian = hessian + torch.diag_embed(cfg.joint_limit_weight * (beyond != 0.0))
            gradient = gradient + cfg.joint_limit_weight * beyond
        if cfg.posture_weight:
            default = data.default_joint_pos[:, self._index]
            posture = torch.where(self._posture.isnan(), default, self._posture)
            gradient = gradient + cfg.posture_weight * (posture - q)
        # The variant without checks, which does not synchronize with the device.
        factor, _ = torch.linalg.cholesky_ex(hessian)
        dq = torch.cholesky_solve(gradient.unsqueeze(-1), factor).squeeze(-1)
        return self._bounded(dq)

    def _bounded(self, dq: torch.Tensor) -> torch.Tensor:
        """Return changes of the joints within their bound, shape [num_envs, joints]."""
        largest = dq.abs().amax(dim=1, keepdim=True)
        return dq * (self.cfg.max_dq / largest.clamp_min(self.cfg.max_dq))

    def apply_actions(self) -> None:
        """Write joint position targets, clipped to the limits."""
        data = self._entity.data
        target = data.joint_pos[:, self._index] + self.compute_dq()
        low, high = data.joint_pos_limits[:, self._index].unbind(-1)
        target = target.clamp(low, high)
        if self._clip is not None:
            target = target.clamp(*self._clip)
        self._entity.set_joint_position_target(target, self._index)

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Set the actions of the given worlds to zero."""
        assign(self._raw_actions, 0.0, env_ids)

    def _find_frame(self) -> None:
        cfg = self.cfg
        indexing = self._entity.indexing
        model = self._env.sim.mj_model
        frames, names = self._entity.find(cfg.frame_type, cfg.frame_name)
        if len(frames) > 1:
            raise ValueError(
                f"DifferentialIKActionCfg.frame_name='{cfg.frame_name}' must name one "
                f"{cfg.frame_type}, but matches {names}."
            )
        self._frame = int(getattr(indexing, f"{cfg.frame_type}_ids")[frames[0]])
        self._body = self._frame
        if cfg.frame_type != "body":
            self._body = int(getattr(model, f"{cfg.frame_type}_bodyid")[self._frame])
        self._root = int(model.body_rootid[self._body])
        ancestors = {self._body}
        body = self._body
        while body:
            body = int(model.body_parentid[body])
            ancestors.add(body)
        joints = indexing.joint_ids[self._target_ids].tolist()
        moves = [int(model.jnt_bodyid[joint]) in ancestors for joint in joints]
        if not any(moves):
            raise ValueError(
                f"The {cfg.frame_type} '{cfg.frame_name}' does not move with any of the joints "
                f"{self._target_names}: choose another frame or other actuators."
            )
        self._moves = torch.tensor(moves, dtype=torch.float32, device=self.device)[:, None]

    def _get_frame_pose(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the frame's position [m] and orientation (wxyz) in the world.

        Shapes [num_envs, 3] and [num_envs, 4].
        """
        return self._frame_pos(), quat_mul(
            self._env.sim.data.xquat[:, self._body], self._local_quat()
        )

    def _frame_pos(self) -> torch.Tensor:
        return getattr(self._env.sim.data, _POSITIONS[self.cfg.frame_type])[:, self._frame]

    def _local_quat(self) -> torch.Tensor:
        """Orientation of the frame relative to its body, shape [num_envs, 4]."""
        if self.cfg.frame_type == "body":
            return self._identity
        return getattr(self._env.sim.model, f"{self.cfg.frame_type}_quat")[:, self._frame]

    def _pose_error(self) -> torch.Tensor:
        """Return the position error [m] and, if weighted, the rotation error as a vector [rad].

        Shape [num_envs, 3 or 6].

        The rotation of the frame is that of its body; the target is stored for the body.
        """
        offset = self._target_pos - self._frame_pos()
        if not self._full_pose:
            return offset
        turn = quat_box_minus(self._target_quat, self._env.sim.data.xquat[:, self._body])
        return torch.cat([offset, turn], dim=1)

    def _compute_jacobian(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the frame's linear and angular Jacobians, shapes [num_envs, 3, joints].

        Computed as in `mj_jac`: for each degree of freedom, `cdof` holds the rotation and the
        linear motion of the point at the tree's center of mass.
        """
        data = self._env.sim.data
        cdof = data.cdof[:, self._dofs] * self._moves
        rotation, translation = cdof.split(3, dim=-1)
        arm = self._frame_pos() - data.subtree_com[:, self._root]
        return (translation + cross(rotation, arm.unsqueeze(1))).mT, rotation.mT

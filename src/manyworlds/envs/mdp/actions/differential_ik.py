"""Actions that move a frame: differential inverse kinematics by damped least squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch

from manyworlds.envs.mdp.actions.actions import clip_bounds, find_targets
from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg
from manyworlds.utils.math import (
    default_orientation,
    normalize,
    quat_box_minus,
    quat_box_plus,
    quat_conjugate,
    quat_mul,
)
from manyworlds.utils.math.vectors import cross
from manyworlds.validation.names import resolve_expr
from manyworlds.validation.worlds import EnvIds, as_index, assign

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

# Where MuJoCo keeps the positions of each kind of frame.
_POSITIONS = {"body": "xpos", "site": "site_xpos", "geom": "geom_xpos"}


@dataclass(kw_only=True)
class DifferentialIKActionCfg(ActionTermCfg):
    """Moves joints so that a frame goes where the action says.

    The action is one of these; positions are relative to the world's origin, in its axes:

    - relative: a translation [m] and a rotation vector [rad] from the present pose, 6 numbers;
    - a pose: position [m] and orientation (wxyz, of any length), 7 numbers;
    - with `orientation_weight=0`, only the first 3 of either.
    """

    actuator_names: tuple[str, ...] | list[str]
    """Regular expressions that select the actuators of the joints to move, which follow position
    targets."""
    frame_type: Literal["body", "site", "geom"] = "body"
    frame_name: str
    """Name of the body, site or geom, in the entity."""
    use_relative_mode: bool = True
    """Whether the action is relative to the present pose."""
    delta_pos_scale: float = 1.0
    """Factor of translations in relative mode."""
    delta_ori_scale: float = 1.0
    """Factor of rotations in relative mode."""
    damping: float = 0.05
    """Weight against motion: the larger, the slower and the safer near singular poses."""
    max_dq: float = 0.5
    """Largest change of a joint in one physics step [rad or m]; all are slowed down alike."""
    position_weight: float = 1.0
    orientation_weight: float = 1.0
    joint_limit_weight: float = 0.0
    """Weight of going back within soft limits, for joints that are beyond them."""
    posture_weight: float = 0.0
    """Weight of going to `posture_target`."""
    posture_target: dict[str, float] | None = field(default=None)
    """Joint positions by regular expression [rad or m]; the others, and all for None, are at their
    present defaults."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.frame_type not in _POSITIONS:
            raise ValueError(
                f"DifferentialIKActionCfg.frame_type must be 'body', 'site' or 'geom', got "
                f"'{self.frame_type}'."
            )
        for name in ("damping", "max_dq"):
            if not getattr(self, name) > 0.0:
                raise ValueError(
                    f"DifferentialIKActionCfg.{name} must be positive, got {getattr(self, name)}."
                )

    def build(self, env: ManagerBasedRlEnv) -> DifferentialIKAction:
        """Make the term."""
        return DifferentialIKAction(self, env)


class DifferentialIKAction(ActionTerm):
    """Solves `min |J dq - e|^2_W + damping^2 |dq|^2 + ...` for dq before every physics step.

    J is the frame's Jacobian and e what it lacks to its target; the solution is that of damped
    least squares: Nakamura and Hanafusa, "Inverse Kinematic Solutions With Singularity Robustness
    for Robot Manipulator Control", 1986. Kinematics are those at the begin of the last physics
    step, except in the first one of a control step, where they are current.

    Raises:
        ValueError: actuators or the frame are not found, or the frame does not move with a joint.
    """

    cfg: DifferentialIKActionCfg
    needs_substeps = True
    state_attributes = ("_raw_action", "_target_pos", "_target_quat")

    def __init__(self, cfg: DifferentialIKActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        entity, model = self._entity, env.sim.mj_model
        ids, self._target_names = find_targets(entity, model, cfg.actuator_names)
        self._target_ids = torch.tensor(ids, device=self.device)
        self._index = as_index(self._target_ids)
        self._dofs = as_index(entity.indexing.joint_v_adr[self._target_ids])
        self._find_frame()
        self._clip = clip_bounds(cfg.clip, self._target_names, self.device)
        posture = resolve_expr(cfg.posture_target or {}, self._target_names, torch.nan)
        self._posture = torch.tensor(posture, dtype=torch.float32, device=self.device)
        self._full_pose = cfg.orientation_weight != 0.0
        width = 3 if not self._full_pose else 6 if cfg.use_relative_mode else 7
        weights = 3 * [cfg.position_weight] + 3 * [cfg.orientation_weight]
        self._weights = torch.tensor(weights, dtype=torch.float32, device=self.device)
        diagonal = cfg.damping**2 + cfg.posture_weight
        self._diagonal = diagonal * torch.eye(len(ids), device=self.device)
        self._raw_action = torch.zeros(self.num_envs, width, device=self.device)
        self._target_pos = torch.zeros(self.num_envs, 3, device=self.device)
        self._target_quat = torch.zeros(self.num_envs, 4, device=self.device)
        self._identity = default_orientation(self.num_envs, self.device)

    @property
    def action_dim(self) -> int:
        """Width of its slice: 3, 6 or 7."""
        return self._raw_action.shape[1]

    @property
    def raw_action(self) -> torch.Tensor:
        """The slice as the policy gave it, shape [num_envs, action_dim]."""
        return self._raw_action

    @property
    def target_ids(self) -> torch.Tensor:
        """Entity-local ids of the joints that it moves."""
        return self._target_ids

    @property
    def target_names(self) -> list[str]:
        """Names of the joints that it moves."""
        return self._target_names

    def process_actions(self, actions: torch.Tensor) -> None:
        """Find the pose to go to."""
        self._raw_action.copy_(actions)
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
        cfg, data = self.cfg, self._entity.data
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
        # The form without checks, for which the host need not wait for the device.
        factor, _ = torch.linalg.cholesky_ex(hessian)
        dq = torch.cholesky_solve(gradient.unsqueeze(-1), factor).squeeze(-1)
        largest = dq.abs().amax(dim=1, keepdim=True)
        return dq * (cfg.max_dq / largest.clamp_min(cfg.max_dq))

    def apply_actions(self) -> None:
        """Set joint position targets, within limits."""
        data = self._entity.data
        target = data.joint_pos[:, self._index] + self.compute_dq()
        low, high = data.joint_pos_limits[:, self._index].unbind(-1)
        target = target.clamp(low, high)
        if self._clip is not None:
            target = target.clamp(*self._clip)
        self._entity.set_joint_position_target(target, self._index)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Forget the actions of the worlds named."""
        assign(self._raw_action, 0.0, env_ids)

    def _find_frame(self) -> None:
        cfg, indexing, model = self.cfg, self._entity.indexing, self._env.sim.mj_model
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
        ancestors, body = {self._body}, self._body
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
        """Position [m], shape [num_envs, 3], and orientation (wxyz) of the frame in the world."""
        return self._frame_pos(), quat_mul(
            self._env.sim.data.xquat[:, self._body], self._local_quat()
        )

    def _frame_pos(self) -> torch.Tensor:
        return getattr(self._env.sim.data, _POSITIONS[self.cfg.frame_type])[:, self._frame]

    def _local_quat(self) -> torch.Tensor:
        """Orientation of the frame in its body, shape [num_envs, 4]."""
        if self.cfg.frame_type == "body":
            return self._identity
        return getattr(self._env.sim.model, f"{self.cfg.frame_type}_quat")[:, self._frame]

    def _pose_error(self) -> torch.Tensor:
        """What the frame lacks to its target: [m] and a rotation vector [rad] if it counts.

        The rotation of the frame is that of its body, for which the target is kept.
        """
        offset = self._target_pos - self._frame_pos()
        if not self._full_pose:
            return offset
        turn = quat_box_minus(self._target_quat, self._env.sim.data.xquat[:, self._body])
        return torch.cat([offset, turn], dim=1)

    def _compute_jacobian(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Velocities of the frame per joint velocity, linear and angular, [num_envs, 3, joints].

        As `mj_jac`: `cdof` holds, for each degree of freedom, its rotation and the motion of the
        point at the tree's center of mass.
        """
        data = self._env.sim.data
        cdof = data.cdof[:, self._dofs] * self._moves
        rotation, translation = cdof.split(3, dim=-1)
        arm = self._frame_pos() - data.subtree_com[:, self._root]
        return (translation + cross(rotation, arm.unsqueeze(1))).mT, rotation.mT

"""Actions of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from mjlab.envs.mdp.actions import (
    DifferentialIKAction,
    DifferentialIKActionCfg,
    JointPositionAction,
    JointPositionActionCfg,
)
from mjlab.managers.action_manager import ActionTerm, ActionTermCfg

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv

__all__ = [
    "CartesianAction",
    "CartesianActionCfg",
    "GripperAction",
    "GripperActionCfg",
    "SmoothActionCfg",
    "SmoothJointPositionAction",
]


@dataclass(kw_only=True)
class SmoothActionCfg(JointPositionActionCfg):
    """Settings of smoothed position targets."""

    alpha: float = 0.5

    def build(self, env: ManagerBasedRlEnv) -> SmoothJointPositionAction:
        """Build the term."""
        return SmoothJointPositionAction(self, env)


class SmoothJointPositionAction(JointPositionAction):
    """Position targets that follow the policy's by a first-order filter."""

    cfg: SmoothActionCfg

    def __init__(self, cfg: SmoothActionCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg=cfg, env=env)
        self._filtered = torch.zeros(self.num_envs, self.action_dim, device=self.device)
        self._fresh = torch.ones(self.num_envs, 1, dtype=torch.bool, device=self.device)

    def process_actions(self, actions: torch.Tensor) -> None:
        """Filter the targets; the first one of an episode passes."""
        super().process_actions(actions)
        filtered = torch.lerp(self._filtered, self._processed_actions, self.cfg.alpha)
        self._filtered = torch.where(self._fresh, self._processed_actions, filtered)
        self._fresh[:] = False

    def apply_actions(self) -> None:
        """Write the filtered targets."""
        target = self._filtered
        self._entity.set_joint_position_target(target, joint_ids=self._target_ids)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Let the next target pass."""
        super().reset(env_ids)
        self._fresh[slice(None) if env_ids is None else env_ids] = True


class CartesianAction(DifferentialIKAction):
    """Motion of the gripper in the world, along three axes."""

    def apply_actions(self) -> None:
        """Write the targets, and keep the largest change of a joint."""
        self.largest = self.compute_dq().abs().amax(dim=1)
        super().apply_actions()


@dataclass(kw_only=True)
class CartesianActionCfg(DifferentialIKActionCfg):
    """Settings of the gripper's motion."""

    def build(self, env: ManagerBasedRlEnv) -> CartesianAction:
        """Build the term."""
        return CartesianAction(self, env)


@dataclass(kw_only=True)
class GripperActionCfg(ActionTermCfg):
    """Settings of a gripper that opens and closes."""

    joint_name: str
    open_pos: float
    closed_pos: float

    def build(self, env: ManagerBasedRlEnv) -> GripperAction:
        """Build the term."""
        return GripperAction(self, env)


class GripperAction(ActionTerm):
    """One number: positive opens, negative closes."""

    cfg: GripperActionCfg

    def __init__(self, cfg: GripperActionCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg=cfg, env=env)
        joint_ids, _ = self._entity.find_joints(cfg.joint_name)
        self._joint_ids = torch.tensor(joint_ids, device=self.device, dtype=torch.long)
        self._raw_actions = torch.zeros(self.num_envs, 1, device=self.device)
        self._targets = torch.zeros_like(self._raw_actions)

    @property
    def action_dim(self) -> int:
        """One."""
        return 1

    @property
    def raw_action(self) -> torch.Tensor:
        """Output of the policy."""
        return self._raw_actions

    def process_actions(self, actions: torch.Tensor) -> None:
        """Choose between open and closed."""
        self._raw_actions[:] = actions
        self._targets = torch.where(actions > 0, self.cfg.open_pos, self.cfg.closed_pos)

    def apply_actions(self) -> None:
        """Write the target."""
        self._entity.set_joint_position_target(self._targets, joint_ids=self._joint_ids)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Forget the output of the policy."""
        self._raw_actions[slice(None) if env_ids is None else env_ids] = 0.0

"""Actions relative to the joint positions of the motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import torch

from manyworlds.envs.mdp.actions import BaseAction, JointPositionAction, JointPositionActionCfg
from manyworlds.tasks.tracking.mdp.commands import MotionCommand

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class MotionJointPositionAction(JointPositionAction):
    """Joint position targets: those of the motion plus the scaled action.

    A policy whose actions are zero follows the motion, so that learning starts with balance.
    """

    def __init__(self, cfg: MotionJointPositionActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._command = cast(MotionCommand, env.command_manager.get_term(cfg.command_name))

    @property
    def offset(self) -> torch.Tensor:
        """Current joint positions of the motion [rad or m], shape [num_envs, action_dim]."""
        return self._command.joint_pos[:, self._index]


@dataclass(kw_only=True)
class MotionJointPositionActionCfg(JointPositionActionCfg):
    """Configuration of joint positions relative to those of a motion."""

    command_name: str = "motion"
    """Name of the motion command of the same entity."""

    term: ClassVar[type[BaseAction]] = MotionJointPositionAction

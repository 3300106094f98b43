"""Actions relative to what the motion asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import torch

from manyworlds.envs.mdp.actions import BaseAction, JointPositionAction, JointPositionActionCfg
from manyworlds.tasks.tracking.mdp.commands import MotionCommand

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class MotionJointPositionAction(JointPositionAction):
    """Drives joints to where the motion has them, plus the scaled action.

    A policy that does nothing plays the motion, so that learning begins with keeping balance.
    """

    cfg: MotionJointPositionActionCfg

    def __init__(self, cfg: MotionJointPositionActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._command = cast(MotionCommand, env.command_manager.get_term(cfg.command_name))

    @property
    def offset(self) -> torch.Tensor:
        """Joint positions that the motion asks for now, shape [num_envs, action_dim]."""
        return self._command.joint_pos[:, self._index]


@dataclass(kw_only=True)
class MotionJointPositionActionCfg(JointPositionActionCfg):
    """Joint positions relative to those of a motion."""

    command_name: str = "motion"
    """The motion command of the same entity."""

    term: ClassVar[type[BaseAction]] = MotionJointPositionAction

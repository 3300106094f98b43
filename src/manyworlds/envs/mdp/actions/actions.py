"""Actions that set joint targets: `target = scale * action + offset`, then clipped."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg
from manyworlds.utils.indices import EnvIds, as_index, assign
from manyworlds.utils.string import resolve_expr

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class BaseActionCfg(ActionTermCfg):
    """Which actuators an action drives, and how it is scaled."""

    actuator_names: tuple[str, ...]
    """Regular expressions that select the actuators."""
    scale: float | dict[str, float] = 1.0
    """Factor, one for all targets or by regular expression."""
    offset: float | dict[str, float] = 0.0
    """Offset, one for all targets or by regular expression."""


class BaseAction(ActionTerm):
    """Scales, offsets and clips its slice of the action."""

    state_attributes = ("_raw_action", "_processed_actions")

    def __init__(self, cfg: BaseActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        ids, self.target_names = self._entity.find_joints_by_actuator_names(cfg.actuator_names)
        self.target_ids = as_index(ids)
        self._raw_action = torch.zeros(self.num_envs, len(ids), device=self.device)
        self._processed_actions = torch.zeros_like(self._raw_action)
        self.scale = self._parameter(cfg.scale, 1.0)
        self.offset = self._parameter(cfg.offset, 0.0)
        self._low, self._high = None, None
        if cfg.clip is not None:
            bounds = resolve_expr(cfg.clip, self.target_names, (-torch.inf, torch.inf))
            self._low, self._high = torch.tensor(bounds, device=self.device).T

    @property
    def action_dim(self) -> int:
        """Width of its slice: one per target."""
        return self._raw_action.shape[1]

    @property
    def raw_action(self) -> torch.Tensor:
        """The slice as the policy gave it, shape [num_envs, action_dim]."""
        return self._raw_action

    def process_actions(self, actions: torch.Tensor) -> None:
        """Scale, offset and clip."""
        self._raw_action.copy_(actions)
        torch.addcmul(self.offset, actions, self.scale, out=self._processed_actions)
        if self._low is not None:
            self._processed_actions.clamp_(self._low, self._high)

    @abstractmethod
    def apply_actions(self) -> None:
        """Set the entity's targets."""

    def reset(self, env_ids: EnvIds = None) -> None:
        """Forget the actions of the worlds named."""
        assign(self._raw_action, 0.0, env_ids)
        assign(self._processed_actions, 0.0, env_ids)

    def _parameter(self, value: float | dict[str, float], default: float) -> torch.Tensor:
        table = value if isinstance(value, dict) else {".*": value}
        row = resolve_expr(table, self.target_names, default)
        return torch.tensor(row, dtype=torch.float32, device=self.device)


@dataclass(kw_only=True)
class JointEffortActionCfg(BaseActionCfg):
    """Sets joint effort targets [N or N m]."""

    def build(self, env: ManagerBasedRlEnv) -> JointEffortAction:
        """Make the term."""
        return JointEffortAction(self, env)


class JointEffortAction(BaseAction):
    """Drives joints by effort."""

    def apply_actions(self) -> None:
        """Set the effort targets."""
        self._entity.set_joint_effort_target(self._processed_actions, self.target_ids)

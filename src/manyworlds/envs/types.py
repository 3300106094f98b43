"""Types of an environment's return values, and of what observes its steps."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import torch

VecEnvObs = dict[str, "torch.Tensor"]
"""Observations by group, each of shape [num_envs, ...]; see `ObservationManager.compute`."""
Extras = dict[str, Any]
"""What `ManagerBasedRlEnv.step` returns beside its tensors."""
VecEnvStepReturn = tuple[VecEnvObs, "torch.Tensor", "torch.Tensor", "torch.Tensor", Extras]
"""Observations, rewards, terminated, truncated, extras."""
SubstepStage = Literal["controls", "launched", "physics"]
"""Part of a physics step that has just been done; see `ManagerBasedRlEnv.substeps`."""


class StepObserver(Protocol):
    """Object that sees every control step; see `ManagerBasedRlEnv.observers`.

    A step that raises, or is not iterated to its end, has no `after_step`: the next call is the
    `before_step` of another step.
    """

    def before_step(self, action: torch.Tensor) -> None:
        """See the unprocessed actions, shape [num_envs, total_action_dim], before any change."""
        ...

    def after_step(self) -> None:
        """See the environment after the step: its rewards, terminations and observations."""
        ...

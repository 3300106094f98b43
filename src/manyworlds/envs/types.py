"""Types of an environment's return values."""

from __future__ import annotations

from typing import Any

import torch

VecEnvObs = dict[str, "torch.Tensor"]
"""Observations by group, each of shape [num_envs, ...]; see `ObservationManager.compute`."""
VecEnvStepReturn = tuple[VecEnvObs, "torch.Tensor", "torch.Tensor", "torch.Tensor", dict[str, Any]]
"""Observations, rewards, terminated, truncated, extras."""

"""The direction of gravity, of the worlds of a batch and of a model of MuJoCo C."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.sim.views import ModelView

_OFF = mujoco.mjtDisableBit.mjDSBL_GRAVITY


def gravity_direction(model: ModelView) -> torch.Tensor:
    """Return the unit vector of each world's gravity, or zero without, shape [num_envs, 3]."""
    gravity = model.opt.gravity
    if model.opt.disableflags & _OFF:
        return torch.zeros_like(gravity)
    return torch.nn.functional.normalize(gravity, dim=1)


def plain_gravity_direction(option: mujoco.MjOption) -> np.ndarray:
    """Return the unit vector of a model's gravity, or zero without, shape [3]."""
    pull = np.linalg.norm(option.gravity)
    if pull == 0.0 or option.disableflags & _OFF:
        return np.zeros(3)
    return option.gravity / pull

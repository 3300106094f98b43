"""Gymnasium spaces of an environment's observations and actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from manyworlds.managers import ActionManager, ObservationManager


def observation_space(manager: ObservationManager) -> gymnasium.spaces.Dict:
    """Return the space of the observations of one world, by group."""
    groups: dict[str, gymnasium.Space[Any]] = {}
    for name, dim in manager.group_obs_dim.items():
        if isinstance(dim, list):
            terms = manager.active_terms[name]
            shapes = zip(terms, dim, strict=True)
            groups[name] = gymnasium.spaces.Dict({term: _box(shape) for term, shape in shapes})
        else:
            groups[name] = _box(dim)
    return gymnasium.spaces.Dict(groups)


def action_space(manager: ActionManager) -> gymnasium.spaces.Box:
    """Return the space of the action of one world."""
    return _box((manager.total_action_dim,))


def _box(shape: tuple[int, ...]) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)

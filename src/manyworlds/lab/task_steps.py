"""Results of control steps of a task's environment, as plain data of its only world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from manyworlds.envs.types import VecEnvStepReturn


def plain_step(result: VecEnvStepReturn) -> dict[str, object]:
    """Return what a control step returned; see the verb `step_task`."""
    observations, reward, terminated, truncated, extras = result
    return plain_reset(observations, extras) | {
        "reward": float(reward),
        "terminated": bool(terminated),
        "truncated": bool(truncated),
        "final_observations": _row(extras.get("final_obs", {})),
    }


def plain_reset(observations: object, extras: Mapping[str, object]) -> dict[str, object]:
    """Return what a reset returned; see the verb `reset_task`."""
    told: Any = extras["log"]
    log = {name: float(value) for name, value in told.items()}
    return {"observations": _row(observations), "log": log}


def shapes_of(space: gymnasium.Space) -> object:  # type: ignore[type-arg]
    """Return the shape of a box, or the shapes of a dict of spaces, by name."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: shapes_of(part) for name, part in space.spaces.items()}
    return list(space.shape or ())


def _row(value: Any) -> Any:
    """Return the first row of each tensor, as an array that later steps do not overwrite."""
    if isinstance(value, Mapping):
        return {name: _row(part) for name, part in value.items()}
    return value[0].detach().cpu().numpy().copy()

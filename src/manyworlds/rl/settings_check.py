"""Checks of the learner's numbers, before anything is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from manyworlds.rl.config import NETWORKS
from manyworlds.validation.checks import check_count

_COUNTS = (
    "num_steps_per_env",
    "max_iterations",
    "save_interval",
    "algorithm.num_learning_epochs",
    "algorithm.num_mini_batches",
    "algorithm.gradient_length",
)
_POSITIVE = (
    "max_minutes",
    "clip_actions",
    "algorithm.learning_rate",
    "algorithm.desired_kl",
    "algorithm.max_grad_norm",
    "algorithm.clip_param",
    *(f"{network}.distribution_cfg.init_std" for network in NETWORKS),
)
_NOT_NEGATIVE = ("algorithm.entropy_coef", "algorithm.value_loss_coef")
_SHARES = ("algorithm.gamma", "algorithm.lam")
_REMEDIES = {
    "max_minutes": "leave it out for a run without a limit",
    "clip_actions": "leave it out for no bound",
    "algorithm.learning_rate": "0.001 is a usual value",
    "algorithm.gamma": "0.99 is a usual value",
    "algorithm.lam": "0.95 is a usual value",
}


def check_settings(settings: Mapping[str, object], num_envs: int) -> None:
    """Check the numbers of a learner's settings; those that are None or absent are not checked.

    Args:
        settings: the settings, in rsl_rl's structure.
        num_envs: number of worlds.

    Raises:
        ValueError: a number is out of its range; the message has its name, value and bound.
    """
    for path in _COUNTS:
        value = _at(settings, path)
        if value is not None:
            check_count(f"The learner's {path}", value, 1, _remedy(path))
    _check(settings, _POSITIVE, "positive and finite", lambda x: 0.0 < x < math.inf)
    _check(settings, _NOT_NEGATIVE, "finite, and at least 0", lambda x: 0.0 <= x < math.inf)
    _check(settings, _SHARES, "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    for network in NETWORKS:
        for i, width in enumerate(_at(settings, f"{network}.hidden_dims") or ()):
            check_count(f"The learner's {network}.hidden_dims[{i}]", width, 1)
    _check_mini_batches(settings, num_envs)


def _check(
    settings: Mapping[str, object],
    paths: tuple[str, ...],
    bound: str,
    fits: Callable[[float], bool],
) -> None:
    for path in paths:
        value = _at(settings, path)
        if value is not None and not (isinstance(value, Real) and fits(float(value))):
            raise ValueError(f"The learner's {path} must be {bound}, got {value}{_remedy(path)}.")


def _check_mini_batches(settings: Mapping[str, object], num_envs: int) -> None:
    """Check that each mini-batch has a step, or a world: those of recurrent networks are worlds."""
    count = _at(settings, "algorithm.num_mini_batches") or 1
    if any(_at(settings, f"{network}.rnn_type") for network in ("actor", "critic")):
        if count > num_envs:
            raise ValueError(
                f"The learner's algorithm.num_mini_batches is {count}, but there are {num_envs} "
                "worlds, of which each mini-batch of a recurrent network has at least one: set it "
                "to less."
            )
        return
    steps = _at(settings, "num_steps_per_env")
    if count > steps * num_envs:
        raise ValueError(
            f"The learner's algorithm.num_mini_batches must be at most {steps * num_envs}, the "
            f"{steps} steps of {num_envs} worlds in an iteration, got {count}: set it to less, or "
            "take more worlds."
        )


def _at(settings: Mapping[str, object], path: str) -> Any:
    """Return the value at a path of names; None if there is none."""
    value: Any = settings
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _remedy(path: str) -> str:
    return f": {_REMEDIES[path]}" if path in _REMEDIES else ""

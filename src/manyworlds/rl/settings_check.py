"""Checks of the learner's numbers, before anything is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import cast

from manyworlds.rl.config import NETWORKS
from manyworlds.utils.config import flatten
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
    "max_minutes": ": leave it out for a run without a limit",
    "clip_actions": ": leave it out for no bound",
    "algorithm.learning_rate": ": 0.001 is a usual value",
    "algorithm.gamma": ": 0.99 is a usual value",
    "algorithm.lam": ": 0.95 is a usual value",
}


def check_settings(settings: Mapping[str, object], num_envs: int) -> None:
    """Check the numbers of a learner's settings; those that are None or absent are not checked.

    Args:
        settings: the settings, in rsl_rl's structure.
        num_envs: number of worlds.

    Raises:
        ValueError: a number is out of its range; the message has its name, value and bound.
    """
    values = {path: value for path, value in flatten(settings).items() if value is not None}
    for path in _COUNTS:
        if path in values:
            check_count(f"The learner's {path}", values[path], 1, _REMEDIES.get(path, ""))
    _check(values, _POSITIVE, "positive and finite", lambda x: 0.0 < x < math.inf)
    _check(values, _NOT_NEGATIVE, "finite, and at least 0", lambda x: 0.0 <= x < math.inf)
    _check(values, _SHARES, "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    for network in NETWORKS:
        widths = cast("tuple[int, ...]", values.get(f"{network}.hidden_dims", ()))
        for i, width in enumerate(widths):
            check_count(f"The learner's {network}.hidden_dims[{i}]", width, 1)

    # Each mini-batch has a step, or a world: those of recurrent networks are worlds.
    count = cast("int", values.get("algorithm.num_mini_batches", 1))
    steps = cast("int", values["num_steps_per_env"])
    if "actor.rnn_type" in values or "critic.rnn_type" in values:
        if count > num_envs:
            raise ValueError(
                f"The learner's algorithm.num_mini_batches is {count}, but there are {num_envs} "
                "worlds, of which each mini-batch of a recurrent network has at least one: set it "
                "to less."
            )
    elif count > steps * num_envs:
        raise ValueError(
            f"The learner's algorithm.num_mini_batches must be at most {steps * num_envs}, the "
            f"{steps} steps of {num_envs} worlds in an iteration, got {count}: set it to less, or "
            "take more worlds."
        )


def _check(
    values: Mapping[str, object],
    paths: tuple[str, ...],
    bound: str,
    fits: Callable[[float], bool],
) -> None:
    for path in paths:
        value = values.get(path)
        if value is not None and not (isinstance(value, Real) and fits(float(value))):
            remedy = _REMEDIES.get(path, "")
            raise ValueError(f"The learner's {path} must be {bound}, got {value}{remedy}.")

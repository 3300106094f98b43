"""Checks of numbers in the configuration of a task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from manyworlds.validation.rules import refuse

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnvCfg


def check_numbers(cfg: ManagerBasedRlEnvCfg) -> None:
    """Check the decimation, and the ranges of commands; those of events are their terms'.

    Raises:
        ValueError: there are no physics steps, or a range ends before it begins.
    """
    if cfg.decimation < 1:
        raise ValueError(f"decimation must be at least 1, got {cfg.decimation}.")
    for name, command in cfg.commands.items():
        check_ranges(f"commands.{name}", command)


def check_episode_length(cfg: ManagerBasedRlEnvCfg, step_dt: float) -> None:
    """Check that an episode with a time limit has a control step.

    Args:
        cfg: the task.
        step_dt: control period [s].

    Raises:
        ValueError: the limit is shorter than a control step.
    """
    length = cfg.episode_length_s
    if length != 0.0 and not length >= step_dt * (1.0 - 1e-6):
        raise ValueError(
            f"episode_length_s is {length:g} s, but must be at least one control step, which is "
            f"{step_dt:g} s: set a longer time, or 0 for a task without a time limit."
        )


def check_ranges(path: str, cfg: object) -> None:
    """Check that ranges within a configuration begin with their lower bound.

    Pairs of numbers are ranges if their name, or that of what contains them, has 'range' in it.

    Raises:
        ValueError: a range ends before it begins; the message has its path.
    """
    for name, (low, high) in _ranges(path, cfg):
        if not low <= high:
            refuse(f"{name} is ({low:g}, {high:g}), which is no range: give the lower bound first.")


def _ranges(path: str, value: object, inside: bool = False) -> Iterator[tuple[str, tuple]]:
    """Yield the path and the bounds of each range."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _ranges(f"{path}.{key}", item, inside or "range" in str(key))
        return
    if not inside or not isinstance(value, tuple | list) or len(value) != 2:
        return
    if all(isinstance(item, int | float) for item in value):
        yield path, tuple(value)

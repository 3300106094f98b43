"""Fields of a task's configurations as options: `--env...` and `--agent...`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import parse_whole, rewritten
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlBaseRunnerCfg
from manyworlds.utils.garbage import gc_paused

C = TypeVar("C", bound="EnvConfig")

_MARKERS = (
    tyro.conf.AvoidSubcommands,
    tyro.conf.HelptextFromCommentsOff,  # reading sources for comments is slow
    tyro.conf.SuppressFixed,
    tyro.conf.UsePythonSyntaxForLiteralCollections,
)


@dataclass(kw_only=True)
class EnvConfig:
    """Environment of a task."""

    env: ManagerBasedRlEnvCfg
    """Environment."""


@dataclass(kw_only=True)
class TrainConfig(EnvConfig):
    """Environment and learner of a task."""

    agent: RslRlBaseRunnerCfg
    """Learner."""


def parse_fields(config: C, words: Sequence[str], command: str, options: object) -> C:
    """Parse the part of a command line that changes fields of a task's configurations.

    Collections are written as in Python. Fields that text cannot express, such as functions, are no
    options.

    Args:
        config: the configurations of the task.
        words: the arguments that are no options of the command itself.
        command: name of the command and of the task.
        options: the options of the command itself, for its help and for suggestions.

    Returns:
        The changed configurations.

    Raises:
        SystemExit: tyro has printed the help, or what is wrong.
        UsageError: there is a value too many.
    """
    if not words:
        return config  # tyro takes a second for the fields of a task
    # The command's own options are already parsed: they add to the help and to suggestions.
    fields: list[tuple[str, Any]] = [("task", tyro.conf.Suppress[tuple[str, ...]])]
    for name, part in vars(config).items():
        fields.append((name, Annotated[type(part), *_MARKERS]))
    cls = dataclasses.make_dataclass("Options", fields, bases=(type(options),), kw_only=True)
    cls.__doc__ = type(options).__doc__
    whole = cls(**vars(options), **vars(config))
    with gc_paused():  # tyro makes 10^5 objects
        parsed = parse_whole(cls, rewritten(whole, words), command, default=whole)
    return dataclasses.replace(config, **{name: getattr(parsed, name) for name in vars(config)})


def take_num_envs(env_cfg: ManagerBasedRlEnvCfg, num_envs: int | None) -> None:
    """Set the number of worlds to that of `--num-envs`, if it is given.

    Raises:
        UsageError: the number is below 1.
    """
    if num_envs is not None:
        env_cfg.scene.num_envs = num_envs
    if env_cfg.scene.num_envs < 1:
        raise UsageError(f"--num-envs must be at least 1, got {env_cfg.scene.num_envs}.")

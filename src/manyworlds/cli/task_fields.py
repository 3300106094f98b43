"""Fields of a task's configurations as options: `--env...` and `--agent...`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.help_texts import join_source_lines, joined
from manyworlds.cli.options import HELP, rewritten
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlBaseRunnerCfg
from manyworlds.utils.garbage import gc_paused
from manyworlds.utils.parse_errors import parse_errors_as_sentences

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


class GivenField(NamedTuple):
    """Field of a configuration that a command line gives."""

    path: tuple[str, ...]
    """Names from the outside in, such as ("env", "rewards", "air_time", "weight")."""
    value: Any


def parse_fields(
    config: C, words: Sequence[str], command: str, options: object
) -> tuple[C, list[GivenField]]:
    """Parse the part of a command line that changes fields of a task's configurations.

    Collections are written as in Python. Fields that text cannot express, such as functions, are no
    options.

    Args:
        config: the configurations of the task.
        words: the arguments that are no options of the command itself.
        command: name of the command and of the task.
        options: the options of the command itself, for its help.

    Returns:
        The changed configurations, and the fields that are given.

    Raises:
        UsageError: the command line is wrong.
        SystemExit: tyro has printed the help.
    """
    if not words:
        return config, []  # tyro takes a second for the fields of a task
    prog = f"manyworlds {command}"
    args = rewritten(config, [*words])
    with gc_paused(), parse_errors_as_sentences(options, config):  # tyro makes 10^5 objects
        if any(word in HELP for word in words):
            shown = _with_fields(options, config)
            about = joined(type(options).__doc__ or "")
            join_source_lines()
            tyro.cli(type(shown), default=shown, args=["--help"], prog=prog, description=about)
        parsed = tyro.cli(type(config), default=config, args=args, prog=prog, config=_MARKERS)
    places = _places(parsed)
    given: list[GivenField] = []
    for word in args:
        if not word.startswith("--"):
            continue
        path = _split(word.partition("=")[0].removeprefix("--"))
        if path not in places:  # a flag that is turned off
            path = (*path[:-1], path[-1].removeprefix("no_"))
        parent, key = places[path]
        given.append(GivenField(path, _entries(parent)[key]))
    return parsed, given


def set_fields(config: EnvConfig, fields: Sequence[GivenField]) -> None:
    """Set fields that a command line gives in other configurations, for example those of a run.

    Raises:
        UsageError: the configurations have no such field.
    """
    for field in fields:
        places = _places(config)  # again each time: the last value may have been a dict with others
        if field.path not in places:
            raise UsageError(
                f"There is no option --{'.'.join(field.path).replace('_', '-')} for this run, "
                "whose configuration lacks that field: leave it out."
            )
        parent, key = places[field.path]
        if isinstance(parent, dict):
            parent[key] = field.value
        else:
            object.__setattr__(parent, key, field.value)  # some are frozen


def take_num_envs(env_cfg: ManagerBasedRlEnvCfg, num_envs: int | None) -> None:
    """Set the number of worlds to that of `--num-envs`, if it is given.

    Raises:
        UsageError: the number is below 1.
    """
    if num_envs is not None:
        env_cfg.scene.num_envs = num_envs
    if env_cfg.scene.num_envs < 1:
        raise UsageError(f"--num-envs must be at least 1, got {env_cfg.scene.num_envs}.")


def _with_fields(options: object, config: EnvConfig) -> object:
    """Return the options of a command together with the fields of a task, for the help."""
    fields: list[tuple[str, Any]] = [("task", tyro.conf.Suppress[tuple[str, ...]])]
    for name, part in vars(config).items():
        kind: Any = type(part)
        for marker in _MARKERS:
            kind = Annotated[kind, marker]
        fields.append((name, kind))
    both = dataclasses.make_dataclass("Options", fields, bases=(type(options),), kw_only=True)
    return both(**vars(options), **vars(config))


def _places(config: object) -> dict[tuple[str, ...], tuple[Any, Any]]:
    """Return what contains each field, and its name, key or index in it, by the field's path."""
    places: dict[tuple[str, ...], tuple[Any, Any]] = {}
    parents: list[tuple[tuple[str, ...], object]] = [((), config)]
    while parents:
        above, parent = parents.pop()
        for key, value in _entries(parent).items():
            path = (*above, *_split(str(key)))
            places[path] = (parent, key)
            parents.append((path, value))
    return places


def _entries(parent: object) -> dict[Any, Any]:
    """Return the values below an option by their names, keys or indices."""
    if isinstance(parent, dict):
        return parent
    if isinstance(parent, list | tuple):
        return dict(enumerate(parent))
    if dataclasses.is_dataclass(parent) and not isinstance(parent, type):
        return vars(parent)
    return {}


def _split(name: str) -> tuple[str, ...]:
    """Return the parts of a name between its dots, as tyro makes options of them.

    A key of a dict, such as the regular expression `.*_wrist_.*`, may have several.
    """
    return tuple(part.replace("-", "_") for part in name.split(".") if part)

"""Values of the command line in place of a curriculum's stages."""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from typing import Any

from manyworlds.cli.task_fields import TrainConfig
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.live.values import stages_of
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

_GROUPS = {
    "reward_name": "rewards",
    "termination_name": "terminations",
    "event_name": "events",
    "command_name": "commands",
}
"""Groups of terms by the parameter with which a curriculum names one of them."""


def keep_given_values(config: TrainConfig, words: Sequence[str]) -> list[str]:
    """Remove values that the command line gives from stages, which would overwrite them later.

    Args:
        config: the configurations, with the given values; they are modified.
        words: the arguments that change fields of the configurations.

    Returns:
        A sentence for each value that stages had.
    """
    given: dict[str, None] = {}
    for word in words:
        if word.startswith("--"):
            path = word.partition("=")[0].removeprefix("--").replace("-", "_")
            head, dot, name = path.rpartition(".")
            given[path] = None
            given[head + dot + name.removeprefix("no_")] = None  # a flag that is turned off
    notes: list[str] = []
    if isinstance(config.agent, RslRlOnPolicyRunnerCfg):
        notes = _keep_learner_values(config.agent.algorithm, given)
    for curriculum, term in list(config.env.curriculum.items()):
        if term is None:
            continue
        changed = copy.deepcopy(term)  # stages may be constants of a module
        stages = stages_of(changed.params)
        is_changed = False
        for path in given:
            if _remove_from_stages(config.env, changed.params, stages, path):
                is_changed = True
                notes.append(
                    f"{path.removeprefix('env.')} stays as given: the curriculum '{curriculum}' "
                    "no longer changes it"
                )
        if not is_changed:
            continue
        config.env.curriculum[curriculum] = changed
        rest = [value for stage in stages for key, value in stage.items() if key != "step"]
        if all(value in ({}, None) for value in rest):
            # Not deleted: a run that is continued reads from its file that it is off.
            config.env.curriculum[curriculum] = None  # type: ignore[assignment]
    return notes


def _keep_learner_values(algorithm: RslRlPpoAlgorithmCfg, given: Container[str]) -> list[str]:
    """Clear the stages of settings that are given without their stages; return sentences."""
    notes: list[str] = []
    for name, stages in (
        ("entropy_coef", "entropy_stages"),
        ("learning_rate", "learning_rate_stages"),
    ):
        if f"agent.algorithm.{name}" not in given or f"agent.algorithm.{stages}" in given:
            continue
        if getattr(algorithm, stages):
            setattr(algorithm, stages, ())
            notes.append(f"agent.algorithm.{name} stays as given: {stages} no longer change it")
    return notes


def _remove_from_stages(
    env_cfg: ManagerBasedRlEnvCfg, params: dict[str, Any], stages: list[dict[str, Any]], path: str
) -> bool:
    """Remove the value of an option from a curriculum's stages; return True if one has it.

    A stage replaces a dict, such as the bounds of pushes by axis, as a whole: a single value in it
    becomes the given one.

    Args:
        env_cfg: the environment, with the given values.
        params: parameters of the curriculum, which name the term that it changes.
        stages: the stages; they are modified.
        path: the option, such as `env.rewards.air_time.weight`.
    """
    parts = path.split(".")
    targets = [[group, params[key]] for key, group in _GROUPS.items() if key in params]
    if parts[1:3] not in targets or len(parts) == 3:
        return False
    keys = parts[3:]
    found = False
    for stage in stages:
        values = stage
        names = keys
        if keys[0] in ("params", "ranges") and len(keys) > 1:
            values = stage.get(keys[0], stage)
            names = keys[1:]
        if len(names) == 1:
            found |= values.pop(names[0], None) is not None
        elif len(names) == 2 and isinstance(values.get(names[0]), dict):
            entries: Any = getattr(env_cfg, parts[1])[parts[2]]
            for key in keys[:-1]:
                entries = entries[key] if isinstance(entries, dict) else getattr(entries, key)
            if names[1] in entries:
                values[names[0]] = {**values[names[0]], names[1]: entries[names[1]]}
                found = True
    return found

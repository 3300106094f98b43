"""Values that the command line gives, in place of those of a curriculum's stages."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.edited_values import stages_of
from manyworlds.managers import CurriculumTermCfg
from manyworlds.rl.config import RslRlBaseRunnerCfg

_GROUPS = {
    "reward_name": "rewards",
    "termination_name": "terminations",
    "event_name": "events",
    "command_name": "commands",
}
"""Groups of terms by the parameter with which a curriculum names one of them."""
_LEARNER_STAGES = {"entropy_coef": "entropy_stages", "learning_rate": "learning_rate_stages"}
"""Settings of the learner, and those that change them at given iterations."""


def keep_given_values(
    env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlBaseRunnerCfg, argv: Sequence[str]
) -> list[str]:
    """Take values that the command line gives out of the stages of curricula and of the learner.

    The stages would set other values later, so that the options had no effect.

    Args:
        env_cfg: the environment, with the values of the command line; it is modified.
        rl_cfg: the learner, with the values of the command line; it is modified.
        argv: the command line.

    Returns:
        A sentence for each of these values.
    """
    given = [word.partition("=")[0].replace("-", "_") for word in argv if word.startswith("--")]
    told = _keep_learner_values(rl_cfg, given)
    terms = {name: term for name, term in env_cfg.curriculum.items() if term is not None}
    for name, term in terms.items():
        changed = copy.deepcopy(term)  # stages may be constants of a module
        for place, target in _places(env_cfg, term):
            paths = [option.removeprefix(place) for option in given if option.startswith(place)]
            taken = [path for path in paths if _take_out(changed.params, path.split("."), target)]
            if taken:
                env_cfg.curriculum[name] = changed
                told += [
                    f"{place.removeprefix('__env.')}{path} stays as given: the curriculum '{name}' "
                    "no longer changes it"
                    for path in taken
                ]
                if not any(map(_sets_anything, stages_of(changed.params))):
                    env_cfg.curriculum[name] = None  # which a run that is continued has, too
    return told


def _keep_learner_values(cfg: RslRlBaseRunnerCfg, given: Sequence[str]) -> list[str]:
    """Remove the stages of settings that are given without their stages; return sentences."""
    algorithm: Any = getattr(cfg, "algorithm", None)
    told = []
    for name, stages in _LEARNER_STAGES.items():
        options = [f"__agent.algorithm.{part}" for part in (name, stages)]
        if options[0] in given and options[1] not in given and getattr(algorithm, stages, ()):
            setattr(algorithm, stages, ())
            told.append(f"agent.algorithm.{name} stays as given: {stages} no longer change it")
    return told


def _places(cfg: ManagerBasedRlEnvCfg, term: CurriculumTermCfg) -> list[tuple[str, object]]:
    """Return the beginnings of options of the terms that a curriculum changes, and the terms."""
    params = term.params
    named = [(group, params[key]) for key, group in _GROUPS.items() if key in params]
    return [(f"__env.{group}.{name}.", getattr(cfg, group).get(name)) for group, name in named]


def _take_out(params: dict[str, Any], path: list[str], target: object) -> bool:
    """Remove a value from all stages; return True if one of them has it.

    A stage replaces a dict, such as the bounds of pushes by axis, as a whole: a single value in it
    becomes the given one, which `target`, the changed term, has.
    """
    found = False
    for stage in stages_of(params):
        values, keys = stage, path
        if keys[0] in ("params", "ranges") and len(keys) > 1:
            values, keys = stage.get(keys[0], stage), keys[1:]
        if len(keys) > 1 and isinstance(values.get(keys[0]), dict):
            values[keys[0]] = {**values[keys[0]], keys[1]: _value_at(target, path)}
            found = True
        else:
            found |= values.pop(keys[0], None) is not None
    return found


def _value_at(target: Any, path: Sequence[str]) -> object:
    for part in path:
        target = target[part] if isinstance(target, dict) else getattr(target, part)
    return target


def _sets_anything(stage: dict[str, Any]) -> bool:
    return any(key != "step" and value not in ({}, None) for key, value in stage.items())

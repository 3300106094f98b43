"""Values that the command line gives, in place of those of a curriculum's stages."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.edited_values import stages_of
from manyworlds.managers import CurriculumTermCfg

_GROUPS = {
    "reward_name": "rewards",
    "termination_name": "terminations",
    "event_name": "events",
    "command_name": "commands",
}
"""Groups of terms by the parameter with which a curriculum names one of them."""


def keep_given_values(cfg: ManagerBasedRlEnvCfg, argv: Sequence[str]) -> list[str]:
    """Take values that the command line gives out of the stages of curricula.

    The stages would set other values at the first reset, so that the options had no effect.

    Args:
        cfg: the environment, with the values of the command line; it is modified.
        argv: the command line.

    Returns:
        A sentence for each of these values.
    """
    given = [word.partition("=")[0].replace("-", "_") for word in argv if word.startswith("--env.")]
    told = []
    terms = {name: term for name, term in cfg.curriculum.items() if term is not None}
    for name, term in terms.items():
        changed = copy.deepcopy(term)  # stages may be constants of a module
        for place in _places(term):
            paths = [option.removeprefix(place) for option in given if option.startswith(place)]
            taken = [path for path in paths if _take_out(changed.params, path.split("."))]
            if taken:
                cfg.curriculum[name] = changed
                told += [
                    f"{place.removeprefix('__env.')}{path} stays as given: the curriculum '{name}' "
                    "no longer changes it"
                    for path in taken
                ]
                if not any(map(_sets_anything, stages_of(changed.params))):
                    cfg.curriculum[name] = None  # which a run that is continued has, too
    return told


def _places(term: CurriculumTermCfg) -> list[str]:
    """Return the beginnings of options of the term that a curriculum changes."""
    params = term.params
    return [f"__env.{group}.{params[key]}." for key, group in _GROUPS.items() if key in params]


def _take_out(params: dict[str, Any], path: list[str]) -> bool:
    """Remove a value from all stages; return True if one of them has it."""
    found = False
    for stage in stages_of(params):
        values, key = stage, path[0]
        if key in ("params", "ranges") and len(path) > 1:
            values, key = stage.get(key, stage), path[1]
        found |= values.pop(key, None) is not None
    return found


def _sets_anything(stage: dict[str, Any]) -> bool:
    return any(key != "step" and value not in ({}, None) for key, value in stage.items())

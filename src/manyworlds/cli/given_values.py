"""Values that a command line gives, in place of the stages of curricula and of the learner."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from manyworlds.cli.task_fields import GivenField, TrainConfig
from manyworlds.live.values import stages_of

_GROUPS = {
    "reward_name": "rewards",
    "termination_name": "terminations",
    "event_name": "events",
    "command_name": "commands",
}
"""Groups of terms by the parameter with which a curriculum names one of them."""
_LEARNER_STAGES = {"entropy_coef": "entropy_stages", "learning_rate": "learning_rate_stages"}
"""Settings of the learner, and those that change them at given iterations."""


def keep_given_values(config: TrainConfig, given: Sequence[GivenField]) -> list[str]:
    """Take given values out of stages, which would set other values later.

    Args:
        config: the configurations, with the given values; they are modified.
        given: the fields that the command line gives.

    Returns:
        A sentence for each value that stages had.
    """
    notes = _keep_learner_values(config.agent, {field.path for field in given})
    for name, term in list(config.env.curriculum.items()):
        if term is None:
            continue
        changed = copy.deepcopy(term)  # stages may be constants of a module
        terms = [
            ("env", group, term.params[key]) for key, group in _GROUPS.items() if key in term.params
        ]
        is_changed = False
        for field in given:
            if field.path[:3] in terms and _take_out(changed.params, field):
                is_changed = True
                path = ".".join(field.path[1:])
                notes.append(f"{path} stays as given: the curriculum '{name}' no longer changes it")
        if not is_changed:
            continue
        config.env.curriculum[name] = changed
        sets_anything = False
        for stage in stages_of(changed.params):
            for key, value in stage.items():
                sets_anything |= key != "step" and value not in ({}, None)
        if not sets_anything:
            # Not deleted: a run that is continued reads from its file that it is off.
            config.env.curriculum[name] = None  # type: ignore[assignment]
    return notes


def _keep_learner_values(agent: Any, paths: set[tuple[str, ...]]) -> list[str]:
    """Remove the stages of settings that are given without their stages; return sentences."""
    algorithm = getattr(agent, "algorithm", None)  # a distillation has other settings
    notes = []
    for name, stages in _LEARNER_STAGES.items():
        is_given = ("agent", "algorithm", name) in paths
        has_stages = bool(getattr(algorithm, stages, ()))
        if is_given and has_stages and ("agent", "algorithm", stages) not in paths:
            setattr(algorithm, stages, ())
            notes.append(f"agent.algorithm.{name} stays as given: {stages} no longer change it")
    return notes


def _take_out(params: dict[str, Any], field: GivenField) -> bool:
    """Remove a value from all stages; return True if one of them has it.

    A stage replaces a dict, such as the bounds of pushes by axis, as a whole: a single value in it
    becomes the given one.
    """
    found = False
    for stage in stages_of(params):
        values = stage
        keys = list(field.path[3:])
        if keys[0] in ("params", "ranges") and len(keys) > 1:
            values = stage.get(keys[0], stage)
            keys = keys[1:]
        if len(keys) > 1 and isinstance(values.get(keys[0]), dict):
            values[keys[0]] = {**values[keys[0]], keys[1]: field.value}
            found = True
        elif values.pop(keys[0], None) is not None:
            found = True
    return found

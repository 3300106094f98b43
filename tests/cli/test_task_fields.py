"""Fields of a task's configurations as options."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from manyworlds.cli.errors import UsageError
from manyworlds.cli.task_fields import EnvConfig, GivenField, parse_fields, set_fields
from manyworlds.cli.train import TrainOptions
from manyworlds.tasks import load_env_cfg

TASK = "Velocity-Flat-Go1"


def parsed(config: EnvConfig, *words: str) -> tuple[Any, list[GivenField]]:
    """Return the environment that words give, and the given fields."""
    changed, given = parse_fields(config, words, f"train {TASK}", TrainOptions())
    return changed.env, given


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["--env.decimation", "3"], "decimation", 3),
        (["--env.sim.nan-guard.enabled"], "sim.nan_guard.enabled", True),
        (["--env.no-auto_reset"], "auto_reset", False),
        (["--env.rewards.pose.weight=-2.5"], "rewards.pose.weight", -2.5),
        (
            ["--env.rewards.pose.params.std-standing.*-calf-joint", "0.7"],
            "rewards.pose.params.std_standing.*_calf_joint",
            0.7,
        ),
        (
            ["--env.commands.twist.ranges.lin-vel-x", "(-1, 2)"],
            "commands.twist.ranges.lin_vel_x",
            (-1.0, 2.0),
        ),
    ],
)
def test_given_fields_have_a_path_and_a_value(words, path, value):
    """Give a field as an option: it is set, its path is known, and it can be set elsewhere."""
    config = EnvConfig(env=load_env_cfg(TASK))
    env, given = parsed(config, *words)
    assert given == [GivenField(("env", *path.split(".")), value)]
    assert env != config.env
    other = copy.deepcopy(config)
    set_fields(other, given)
    assert other.env == env


def test_a_key_with_dots_is_set_elsewhere():
    """Find a key that is a regular expression, of which an option lacks the first dot."""
    config = EnvConfig(env=load_env_cfg(TASK))
    _, given = parsed(config, "--env.rewards.pose.params.std-standing.*-calf-joint", "0.7")
    set_fields(config, given)
    pose: Any = config.env.rewards["pose"]
    assert pose.params["std_standing"][".*_calf_joint"] == 0.7


def test_a_configuration_that_lacks_a_field_is_named():
    """Refuse to set a field of a term that a run has turned off."""
    config = EnvConfig(env=load_env_cfg(TASK))
    _, given = parsed(config, "--env.rewards.pose.weight", "1.0")
    config.env.rewards["pose"] = None  # type: ignore[assignment]
    with pytest.raises(UsageError, match="There is no option --env.rewards.pose.weight for this"):
        set_fields(config, given)

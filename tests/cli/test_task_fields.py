"""Fields of a task's configurations as options."""

from __future__ import annotations

from typing import Any

import pytest

from manyworlds.cli.task_fields import EnvConfig, parse_fields
from manyworlds.cli.train import TrainOptions
from manyworlds.tasks import load_env_cfg

TASK = "Velocity-Flat-Go1"


def parsed(*words: str, config: EnvConfig | None = None) -> Any:
    """Return the environment that words give."""
    config = config or EnvConfig(env=load_env_cfg(TASK))
    return parse_fields(config, words, f"train {TASK}", TrainOptions()).env


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["--env.decimation", "3"], "decimation", 3),
        (["--env.sim.nan-guard.enabled"], "sim.nan_guard.enabled", True),
        (["--env.no-auto_reset"], "auto_reset", False),
        (["--env.rewards.pose.weight=-2.5"], "rewards.pose.weight", -2.5),
        (
            ["--env.commands.twist.ranges.lin-vel-x", "(-1, 2)"],
            "commands.twist.ranges.lin_vel_x",
            (-1.0, 2.0),
        ),
    ],
)
def test_options_set_fields(words, path, value):
    """Set a field at any depth, and leave the given configuration as it was."""
    config = EnvConfig(env=load_env_cfg(TASK))
    found = parsed(*words, config=config)
    for name in path.split("."):
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == value
    assert config.env == load_env_cfg(TASK)


def test_a_key_with_dots_is_set():
    """Find a key that is a regular expression, of which an option lacks the first dot."""
    env = parsed("--env.rewards.pose.params.std-standing.*-calf-joint", "0.7")
    assert env.rewards["pose"].params["std_standing"][".*_calf_joint"] == 0.7


def test_a_term_that_is_off_has_no_options(capsys):
    """Refuse to set a field of a term that a run has turned off."""
    config = EnvConfig(env=load_env_cfg(TASK))
    config.env.rewards["pose"] = None  # type: ignore[assignment]
    with pytest.raises(SystemExit):
        parsed("--env.rewards.pose.weight", "1.0", config=config)
    assert "Unrecognized options: --env.rewards.pose.weight" in capsys.readouterr().err

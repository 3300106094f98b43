"""Fields of a task's configurations as options."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from manyworlds.cli.main import main
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


def test_values_of_the_help_are_written_as_one_types_them(capsys):
    """Show kinds of values without None, and defaults that the shell and the parser read again."""
    task = "Cartpole-Swingup"
    assert main(["train", task, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--num-envs INT Number" in shown and "{None}" not in shown
    assert "--agent.obs-groups.actor (STR,...)" in shown
    default = """{"slider": 0.0, "hinge_1": 3.141592653589793}"""
    assert f"(default: '{default}')" in shown and "'\"'" not in shown
    env = load_env_cfg(task)
    words = shlex.split(f"--env.scene.entities.cartpole.init-state.joint-pos '{default}'")
    assert parsed(*words, config=EnvConfig(env=env)).scene.entities == env.scene.entities


def test_the_help_without_a_task_names_fields_of_all_tasks(capsys):
    """Name, with the kinds of their values, fields that the help of each task has, too."""
    assert main(["train", "--help"]) == 0
    general = capsys.readouterr().out.partition("Fields that every task has: ")[2]
    told = " ".join(general.partition(".\n")[0].split()).split(", ")
    assert len(told) == 10
    for task in ("Cartpole-Swingup", TASK):
        assert main(["train", task, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert [each for each in told if each not in shown] == []

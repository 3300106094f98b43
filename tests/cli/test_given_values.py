"""Values of the command line in place of a curriculum's stages."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from manyworlds.cli.given_values import keep_given_values
from manyworlds.cli.options import parse_known
from manyworlds.cli.task_fields import TrainConfig
from manyworlds.cli.train import TrainOptions, read_config, run
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.live.values import stages_of
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.tasks.velocity import velocity_cpu

TASK = "Velocity-Flat-Quadruped"


def configured(task: str, words: list[str]) -> tuple[TrainConfig, Path | None]:
    """Return the configurations and the checkpoint to continue for a command line of `train`."""
    options, fields = parse_known(TrainOptions, [task, *words], "train")
    return read_config(task, options, fields)


def test_a_weight_of_the_command_line_holds(capsys):
    """Train with a weight: no curriculum sets another one, and others still change theirs."""
    options = ["--env.rewards.air-time.weight", "0.33", "--num-envs", "2", "--preset", "cpu"]
    cfg, _ = configured(TASK, options)
    assert "rewards.air_time.weight stays as given" in capsys.readouterr().err
    assert cfg.env.curriculum["air_time_weight"] is None
    env = ManagerBasedRlEnv(cfg.env)
    for step in (0, 1500, 3000):
        env.common_step_counter = step
        env.reset()
        assert env.reward_manager.get_term_cfg("air_time").weight == 0.33
    assert env.reward_manager.get_term_cfg("action_rate_l2").weight == -0.2


def test_a_preset_that_is_not_taken_changes_nothing(capsys):
    """Give a weight with the task's own settings: there is nothing to tell."""
    cfg, _ = configured(TASK, ["--env.rewards.air-time.weight=0.33", "--preset", "gpu"])
    air_time = cfg.env.rewards["air_time"]
    assert air_time is not None and air_time.weight == 0.33 and not capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "curriculum", "left"),
    [
        ("--env.commands.twist.ranges.lin-vel-x", "command_vel", {"lin_vel_y", "ang_vel_z"}),
        ("--env.commands.twist.rel-standing-envs", "command_vel", {"lin_vel_x", "lin_vel_y"}),
        ("--env.events.push_robot.params.velocity_range", "push_strength", set()),
        ("--env.terminations.stalled.params.limit", "stalled_limit", set()),
    ],
)
def test_ranges_and_parameters_hold(option, curriculum, left):
    """Take one value out of the stages of commands, events and terminations, and leave others."""
    task = "Velocity-Flat-Humanoid"
    config = TrainConfig(env=load_env_cfg(task), agent=load_rl_cfg(task))
    use_cpu_preset(task, config.env, config.agent)
    cfg = config.env
    constants = copy.deepcopy(velocity_cpu._BIPED_COMMANDS)
    [text] = keep_given_values(config, [option, "(0, 1)", "--agent.seed=1"])
    assert f"the curriculum '{curriculum}' no longer changes it" in text
    assert (cfg.curriculum[curriculum] is not None) == bool(left)
    assert constants == velocity_cpu._BIPED_COMMANDS
    if left:
        term = cfg.curriculum[curriculum]
        assert term is not None
        stages = term.params["velocity_stages"]
        assert left <= {key for stage in stages for key in stage}
        name = option.rpartition(".")[2].replace("-", "_")
        assert not any(name in stage for stage in stages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "option", "curriculum"),
    [
        (
            "Velocity-Flat-Humanoid",
            "--env.events.push-robot.params.velocity-range.x",
            "push_strength",
        ),
        ("Tracking-Flat-Humanoid", "--env.commands.motion.velocity-range.x", None),
    ],
)
def test_other_axes_of_a_range_go_on(task, option, curriculum, capsys):
    """Give the bounds of one axis: stages keep them, and change those of the others."""
    plain, _ = configured(task, ["--preset", "cpu"])
    cfg, _ = configured(task, ["--preset", "cpu", option, "(-0.7, 0.7)"])
    [note] = capsys.readouterr().err.splitlines()
    assert option.removeprefix("--env.").replace("-", "_") + " stays as given" in note
    name = curriculum or note.partition("the curriculum '")[2].partition("'")[0]
    ranges = [velocity_ranges(c.env.curriculum[name]) for c in (plain, cfg)]
    assert len(ranges[0]) == len(ranges[1]) > 1
    for before, after in zip(*ranges, strict=True):
        assert after == {**before, "x": (-0.7, 0.7)} != before
    assert any(before["y"] != ranges[0][-1]["y"] for before in ranges[0])


def velocity_ranges(term) -> list[dict]:
    """Bounds of velocities by axis in the stages of a curriculum."""
    stages = [stage.get("params", stage) for stage in stages_of(term.params)]
    return [stage["velocity_range"] for stage in stages if "velocity_range" in stage]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "name", "stages"),
    [
        ("Velocity-Flat-Go1", "entropy_coef", "entropy_stages"),
        ("Velocity-Flat-Humanoid", "learning_rate", "learning_rate_stages"),
    ],
)
def test_settings_of_the_learner_hold(task, name, stages, capsys):
    """Give a value that stages change: it holds, unless stages are given, too."""
    option = [f"--agent.algorithm.{name}", "0.003", "--preset", "cpu"]
    agent: Any = configured(task, option)[0].agent
    assert getattr(agent.algorithm, name) == 0.003
    assert getattr(agent.algorithm, stages) == ()
    told = f"note: agent.algorithm.{name} stays as given: {stages} no longer change it.\n"
    assert capsys.readouterr().err == told
    given = f"--agent.algorithm.{stages.replace('_', '-')}"
    agent = configured(task, [*option, given, "((5, 0.001),)"])[0].agent
    assert getattr(agent.algorithm, stages) == ((5, 0.001),) and not capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("preset", [["--preset", "cpu"], ["--device", "cpu"]])
def test_terms_of_the_preset_are_options(preset, capsys):
    """Set the weight of a term that only the preset has; without the preset, it is no option."""
    option = ["--env.rewards.is-terminated.weight", "-50"]
    cfg, _ = configured(TASK, [*option, *preset])
    term = cfg.env.rewards["is_terminated"]
    assert term is not None and term.weight == -50.0
    assert cfg.env.curriculum["is_terminated_weight"] is None
    assert "rewards.is_terminated.weight stays as given" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        configured(TASK, [*option, "--preset", "gpu"])
    assert "Unrecognized options: --env.rewards.is-terminated.weight" in capsys.readouterr().err


@pytest.mark.slow
def test_help_shows_the_values_of_the_preset(capsys):
    """Print the defaults that apply with the preset that other options choose."""
    shown = {}
    for preset in ("cpu", "gpu"):
        with pytest.raises(SystemExit):
            configured(TASK, ["--help", "--preset", preset])
        text = capsys.readouterr().out
        shown[preset] = text[text.index("--env.scene.num-envs INT") :][:200]
    assert "(default: 512)" in shown["cpu"] and "(default: 4096)" in shown["gpu"]


@pytest.mark.slow
def test_a_run_is_continued_with_its_weight(tmp_path):
    """Resume a run with a weight of its own: the curriculum stays left out."""
    root = ["--log-root", str(tmp_path), "--preset", "cpu"]
    cfg, _ = configured(TASK, [*root, "--env.rewards.air-time.weight", "0.33", "--num-envs", "2"])
    cfg.agent.max_iterations = 1
    assert run(TASK, TrainOptions(log_root=tmp_path), cfg) == 0
    again, checkpoint = configured(TASK, [*root, "--resume"])
    assert again.env.curriculum["air_time_weight"] is None
    air_time = again.env.rewards["air_time"]
    assert air_time is not None and air_time.weight == 0.33
    again.agent.max_iterations = 2
    assert run(TASK, TrainOptions(log_root=tmp_path), again, checkpoint) == 0


@pytest.mark.slow
def test_a_policy_of_another_task_brings_no_settings(tmp_path, capsys):
    """Continue a policy in another task: the environment is that of the task."""
    cfg, _ = configured("Cartpole-Swingup", ["--num-envs", "4", "--log-root", str(tmp_path)])
    cfg.agent.max_iterations = 1
    assert run("Cartpole-Swingup", TrainOptions(log_root=tmp_path), cfg) == 0
    capsys.readouterr()
    options = ["--log-root", str(tmp_path), "--checkpoint", str(next(tmp_path.rglob("model_0.pt")))]
    again, checkpoint = configured("Cartpole-Swingup", options)
    assert again.env.scene.num_envs == 4
    assert capsys.readouterr().err == f"note: the training continues from '{checkpoint}'.\n"
    other, found = configured("Cartpole-Balance", options)
    assert found == checkpoint and other.env.scene.num_envs != 4
    assert "the policy is of the task 'Cartpole-Swingup'" in capsys.readouterr().err

"""Commands of the reference as functions of configs."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import replace

import mujoco
import pytest

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

TASK = "Mjlab-Cartpole-Balance"
pytestmark = pytest.mark.usefixtures("alias")


@pytest.mark.slow
def test_a_program_trains_and_plays_by_configs(tmp_path, capsys):
    """Train from a config, continue the run, and film its policy."""
    from mjlab.scripts.play import PlayConfig, run_play
    from mjlab.scripts.train import TrainConfig, launch_training

    cfg = replace(TrainConfig.from_task(TASK), log_root=str(tmp_path), video_length=4)
    cfg.env.scene.num_envs = 4
    cfg.agent.max_iterations, cfg.agent.num_steps_per_env = 1, 8
    cfg = replace(cfg, enable_nan_guard=True)
    launch_training(TASK, cfg)
    assert not cfg.env.sim.nan_guard.enabled
    cfg.agent.max_iterations, cfg.agent.resume = 2, True
    launch_training(TASK, args=cfg)
    assert "iteration 2/2" in capsys.readouterr().out
    (checkpoint,) = tmp_path.glob("cartpole/*/model_1.pt")
    run_play(
        TASK,
        PlayConfig(
            checkpoint_file=str(checkpoint),
            num_envs=2,
            video=True,
            video_length=2,
            video_height=48,
            video_width=64,
            log_root=str(tmp_path),
        ),
    )
    assert list(checkpoint.parent.glob("videos/play/*"))


def test_options_without_a_meaning_are_refused():
    """Say what to do instead of an option that has no meaning here."""
    from mjlab.scripts.play import PlayConfig
    from mjlab.scripts.train import TrainConfig

    with pytest.raises(ValueError, match="registry_name is 'org/motion'.*set motion_file"):
        PlayConfig(registry_name="org/motion")
    cfg = TrainConfig.from_task(TASK)
    with pytest.raises(ValueError, match="registry_name is 'org/motion'.*motion_file"):
        replace(cfg, registry_name="org/motion")
    with pytest.raises(ValueError, match="torchrunx_log_dir is 'logs'.*leave it out"):
        replace(cfg, torchrunx_log_dir="logs")
    with pytest.raises(AttributeError, match="no mjlab.scripts.train.run_train: call launch_train"):
        from mjlab.scripts import train

        train.run_train  # noqa: B018


@pytest.mark.parametrize(
    "arguments", [["balance"], ["--keyword", "balance"], ["--keyword=balance"]]
)
def test_tasks_are_listed_by_a_keyword(arguments, capsys, monkeypatch):
    """Print the tasks whose names contain a text."""
    from mjlab.scripts import list_envs

    monkeypatch.setattr(sys, "argv", ["list-envs", *arguments])
    list_envs.main()
    printed = capsys.readouterr().out
    assert TASK in printed.split() and "Velocity" not in printed
    list_envs.list_environments(keyword="balance")
    assert capsys.readouterr().out == printed
    list_envs.list_environments()
    assert "Mjlab-Velocity-Flat-Unitree-Go1" in capsys.readouterr().out


def test_a_scene_is_exported(tmp_path, monkeypatch):
    """Write the scene of a task, and one with an entity that a function returns."""
    from mjlab.scripts import export_scene as command

    monkeypatch.setattr(sys, "argv", ["export-scene", TASK, "--output-dir", str(tmp_path / "task")])
    command.main()
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "task" / "scene.xml"))
    assert model.joint("cartpole/slider").id >= 0
    target = "tests.envs.mdp.robot:robot_cfg"
    command.export_scene(command.ExportSceneCfg(target, str(tmp_path / "robot"), zip=True))
    assert "scene.xml" in str(zipfile.ZipFile(tmp_path / "robot.zip").namelist())
    with pytest.raises(ValueError, match="no task or robot 'Mjlab-Cartpole-Balanc'.*Balance"):
        command.export_scene(command.ExportSceneCfg("Mjlab-Cartpole-Balanc"))
    assert set(command.ENTITY_ALIASES) == {"g1", "go1", "yam"}

"""Environment in which a run is watched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import load_env_cfg, load_rl_cfg, registry, use_cpu_preset
from manyworlds.tasks.run_configs import play_env_cfg
from manyworlds.utils.config import to_plain
from tests.robots import robot_file
from tests.tasks.velocity.test_env_cfgs import FILES

Watch = Callable[[str, ManagerBasedRlEnvCfg], ManagerBasedRlEnvCfg]


@pytest.fixture
def watch(tmp_path, monkeypatch) -> Watch:
    """Configure what is shown of a run that was trained with a configuration."""

    def show(task: str, trained: ManagerBasedRlEnvCfg) -> ManagerBasedRlEnvCfg:
        monkeypatch.setattr(RunFolder, "env_params", lambda run: to_plain(trained))
        return play_env_cfg(task, RunFolder(tmp_path))

    return show


@pytest.mark.parametrize("task", [t for t in registry.BUILTIN_TASKS if t.startswith("Velocity")])
def test_terms_of_the_training_alone_are_left_out(task, watch):
    """Train with the settings for a CPU, whose curriculum the watched task does not have."""
    if (file := FILES.get(task.split("-")[2])) is not None:
        robot_file(file)
    cfg = load_env_cfg(task)
    use_cpu_preset(task, cfg, load_rl_cfg(task))
    watched = watch(task, cfg)
    assert watched.curriculum == load_env_cfg(task, play=True).curriculum
    assert watched.decimation == cfg.decimation


def test_an_event_of_the_training_alone_may_be_changed(watch):
    """Push more often while training: playback, which does not push, stays as it is."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    cfg.events["push_robot"].interval_range_s = (1.0, 2.0)
    watched = watch("Velocity-Flat-Quadruped", cfg)
    assert watched == load_env_cfg("Velocity-Flat-Quadruped", play=True)


def test_a_changed_parameter_leaves_the_others(watch):
    """Change one parameter of a reward: the others stay."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    cfg.rewards["track_linear_velocity"].params["std"] = 0.3
    watched = watch("Velocity-Flat-Quadruped", cfg)
    expected = load_env_cfg("Velocity-Flat-Quadruped", play=True)
    expected.rewards["track_linear_velocity"].params["std"] = 0.3
    assert watched == expected


def test_what_playback_turns_off_stays_off(watch, monkeypatch):
    """Change a term that the watched task sets to None."""
    task = "Velocity-Flat-Quadruped"
    off = load_env_cfg(task, play=True)
    off.rewards["air_time"] = None
    cfg = load_env_cfg(task)
    cfg.rewards["air_time"].weight = 2.0
    real = load_env_cfg
    monkeypatch.setattr(
        "manyworlds.tasks.run_configs.load_env_cfg",
        lambda task, play=False: off if play else real(task),
    )
    assert watch(task, cfg).rewards["air_time"] is None

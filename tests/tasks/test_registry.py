"""The registry of tasks."""

import importlib

import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import (
    list_tasks,
    load_env_cfg,
    load_rl_cfg,
    load_runner_cls,
    register_task,
    registry,
)
from tests.tasks.sharing import shared_parts


def test_builtin_tasks_are_listed_and_load():
    """List all tasks and load each for training and for watching."""
    assert (
        {"Cartpole-Balance", "Cartpole-Swingup"} <= set(registry.BUILTIN_TASKS) <= set(list_tasks())
    )
    for name in registry.BUILTIN_TASKS:
        assert (
            load_env_cfg(name).episode_length_s
            < 1e6
            < load_env_cfg(name, play=True).episode_length_s
        )
        assert load_rl_cfg(name).max_iterations > 0
        assert (load_runner_cls(name) is None) != name.startswith("Tracking")


def test_loaded_configs_are_copies():
    """Hand out configs that a user may edit."""
    load_env_cfg("Cartpole-Balance").scene.num_envs = 3
    assert load_env_cfg("Cartpole-Balance").scene.num_envs == 1024


@pytest.mark.parametrize("task", registry.BUILTIN_TASKS)
def test_edits_of_a_config_stay_where_they_are_made(task):
    """Share no part between two terms or sensors, nor between two configs of the same task."""
    lazy = registry.BUILTIN_TASKS[task]
    make = getattr(importlib.import_module(lazy.module), lazy.env_cfg)
    assert not shared_parts(make(), make())


def test_a_task_can_be_registered_once(monkeypatch, env_cfg, rl_settings):
    """Add a task, find it, and refuse its name a second time."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    register_task("My-Task", env_cfg, env_cfg, rl_settings)
    assert "My-Task" in list_tasks()
    assert load_env_cfg("My-Task").scene.num_envs == 4
    with pytest.raises(ValueError, match="'My-Task' is already registered"):
        register_task("My-Task", env_cfg, env_cfg, rl_settings)
    with pytest.raises(ValueError, match="'Cartpole-Balance' is already registered"):
        register_task("Cartpole-Balance", env_cfg, env_cfg, rl_settings)


@pytest.fixture
def rl_settings():
    """Take the cartpole's learning settings."""
    return load_rl_cfg("Cartpole-Balance")


def test_an_unknown_task_gets_near_matches():
    """Name what was asked for, what is like it, and what there is."""
    with pytest.raises(
        KeyError, match=r"no task 'Cartpole-Swing'.*Did you mean 'Cartpole-Swingup'"
    ):
        load_env_cfg("Cartpole-Swing")


@pytest.mark.parametrize(
    ("task", "upright"), [("Cartpole-Balance", 1.0), ("Cartpole-Swingup", -1.0)]
)
def test_the_pole_starts_where_the_task_says(task, upright):
    """Start balance upright and swing-up hanging, with noise."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 64, 1
    obs = ManagerBasedRlEnv(cfg).get_observations()["actor"]
    assert (obs[:, 1] * upright > 0.99).all()
    assert obs[:, 2].std() > 0.005

"""A task over a live lab is a gymnasium environment with the results of the local one."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from manyworlds.envs import GymEnv, ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.client import BadValueError, LabEnv, NotReadyError, connect
from manyworlds.tasks import load_env_cfg
from tests.lab.client.conftest import address, serve

TASKS = ("Cartpole-Balance", "Velocity-Flat-Quadruped", "Lift-Cube-Arm")


def task_cfg(task: str, episode_s: float = 5.0):
    """Return the config of one seeded world, and the length of its episodes."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine = 1, 5, "native"
    cfg.episode_length_s = episode_s
    return cfg


@contextlib.contextmanager
def served(task: str, **changes):
    """Serve a task that its environment drives; yield the lab and its address."""
    env = ManagerBasedRlEnv(task_cfg(task, **changes), device="cpu")
    with LiveLab.driven_by(env) as lab, serve(lab) as hub:
        yield lab, address(hub)


def rollout(env, num_steps: int = 25) -> list:
    """Results of an environment under random actions, reset at the ends of episodes."""
    random = np.random.default_rng(1)
    env.reset()  # ends the episode that the lab has run by itself
    results = [env.reset(seed=7)]
    for _ in range(num_steps):
        action = random.uniform(-1.0, 1.0, env.action_space.shape).astype(np.float32)
        results.append(env.step(action))
        if results[-1][2] or results[-1][3]:
            results.append(env.reset())
    return results


def plain(value) -> object:
    """Return results as bytes and numbers, to be compared to the bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize("task", TASKS)
def test_results_are_those_of_the_local_environment(task):
    """Act in both, with the same seed and across ends of episodes: results are equal to the bit."""
    local = GymEnv(task_cfg(task, episode_s=0.3), device="cpu")
    expected = rollout(local)
    local.close()
    with served(task, episode_s=0.3) as (_, where):
        env = LabEnv(where)
        assert env.action_space == local.action_space
        assert env.observation_space == local.observation_space
        assert env.metadata == local.metadata
        results = rollout(env)
        env.close()
    assert len(results) == len(expected)
    for mine, other in zip(results, expected, strict=True):
        assert plain(mine) == plain(other)


@pytest.mark.parametrize("obs_group", [None, "actor"])
def test_gymnasium_finds_nothing_to_complain_about(obs_group):
    """Pass gymnasium's check without a warning."""
    with served("Cartpole-Balance") as (lab, where), connect(where) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env = LabEnv(client, obs_group=obs_group)
            check_env(env, skip_render_check=True)
        env.close()
        assert client.read_task_report()["auto_reset"] and lab.modes.mode == "live"


def test_the_lab_is_left_as_it_was():
    """Close the environment: mode and resets are as before; others may step in between."""
    with served("Cartpole-Balance") as (lab, where):
        env = LabEnv(where, obs_group="actor")
        assert lab.modes.mode == "direct" and not lab.environment.auto_reset
        obs, _ = env.reset(seed=1)
        obs[:] = 0.0  # may be written
        with pytest.raises(BadValueError, match="step_task: The task has 1 actions, got 2"):
            env.step(np.zeros(2))
        lab.step(3)
        with pytest.raises(NotReadyError, match="3 physics steps of a control step are made"):
            env.step(np.zeros(1))
        lab.step(lab.environment.env.cfg.decimation - 3)
        env.step(np.zeros(1))
        env.lab.set_mode("live")
        with pytest.raises(BadValueError, match="step_task: the mode is 'live', not 'direct'"):
            env.step(np.zeros(1))
        env.lab.set_mode("direct")
        env.close()
        assert lab.modes.mode == "live" and lab.environment.auto_reset
        lab.modes.set("direct")
        env.close()  # changes nothing
        assert lab.modes.mode == "direct"
        with pytest.raises(ValueError, match=r"group 'x' does not exist: choose one of"):
            LabEnv(where, obs_group="x")


def test_plain_worlds_have_no_task():
    """Open a world of plain MuJoCo: the error says how a task is served."""
    import mujoco

    world = world_from_spec(mujoco.MjSpec.from_string("<mujoco/>"))
    with (
        LiveLab(world, LabCfg(mode="direct")) as lab,
        serve(lab) as hub,
        pytest.raises(NotReadyError, match="--stepper environment"),
    ):
        LabEnv(address(hub))

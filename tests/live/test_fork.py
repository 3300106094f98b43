"""A world of a batch that goes on alone."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from manyworlds.actuator import DelayedActuatorCfg
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import world_from_env
from manyworlds.live import fork_env
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.seeding import rng_state

TASKS = [
    "Velocity-Rough-Quadruped",  # randomized, on a terrain with a seed of its own
    "Velocity-Flat-Humanoid",
    "Lift-Cube-Arm",
    "Push-Variants",
    "Tracking-Flat-Humanoid",
    "Cartpole-Swingup",
]
WORLDS, WARM_UP, STEPS = 5, 17, 40


def make_env(task: str, change: Any = lambda cfg: None) -> ManagerBasedRlEnv:
    """Build worlds of a task, as in training."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs = WORLDS
    cfg.seed = 3
    change(cfg)
    return ManagerBasedRlEnv(cfg, device="cpu")


def delay(cfg: Any) -> None:
    """Delay actions and observations, and let the policy see the last steps."""
    robot = cfg.scene.entities["robot"]
    robot.articulation = copy.deepcopy(robot.articulation)
    robot.articulation.actuators = tuple(
        DelayedActuatorCfg(base_cfg=actuator, delay_min_lag=0, delay_max_lag=4)
        for actuator in robot.articulation.actuators
    )
    group = cfg.observations["actor"]
    group.history_length = 3
    for i, term in enumerate(filter(None, group.terms.values())):
        term.delay_min_lag, term.delay_max_lag = i % 2, 3


def rows_of(result: tuple[Any, ...], env: ManagerBasedRlEnv, env_id: int) -> list[Any]:
    """Observations and ends of a step in a world, its state and its model fields, to the bit."""
    obs, _, *flags, _ = result
    values = [group[env_id] for _, group in sorted(obs.items())]
    world = world_from_env(env, env_id)
    fields = {
        name: getattr(world.model, name).tobytes()
        for name in sorted(env.sim.expanded_fields)
        if hasattr(world.model, name)
    }
    rows = [value.numpy().tobytes() for value in values] + [flag[env_id].item() for flag in flags]
    assert world.start is not None
    return [*rows, world.start.tobytes(), fields]


def walk_out(env: ManagerBasedRlEnv, env_id: int) -> int:
    """Step a batch and a world taken out of it, compare them; return the ends of episodes."""
    generator = torch.Generator().manual_seed(2)
    width = env.action_manager.total_action_dim
    actions = torch.rand(WARM_UP + STEPS, env.num_envs, width, generator=generator) - 0.5
    for action in actions[:WARM_UP]:
        env.step(action)
    alone = fork_env(env, env_id)
    assert (alone.num_envs, env.num_envs) == (1, WORLDS)
    ends = 0
    for action in actions[WARM_UP:]:
        expected = env.step(action)
        result = alone.step(action[env_id : env_id + 1])
        assert rows_of(result, alone, 0) == rows_of(expected, env, env_id)
        assert torch.equal(alone.episode_length_buf[0], env.episode_length_buf[env_id])
        assert result[1][0] == expected[1][env_id]
        assert terms_of(alone, 0) == terms_of(env, env_id)
        ends += int(alone.reset_buf[0])
    for one in (env, alone):
        one.close()
    return ends


def terms_of(env: ManagerBasedRlEnv, env_id: int) -> dict[str, float]:
    """Values of the terms of all managers in a world."""
    managers = [
        env.reward_manager,
        env.command_manager,
        env.termination_manager,
        env.metrics_manager,
        env.action_manager,
    ]
    return {
        f"{manager.kind} {name} {i}": float(number)
        for manager in managers
        for name, value in manager.get_active_iterable_terms(env_id)
        for i, number in enumerate(np.ravel(value))
    }


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("env_id", [0, 3])
def test_a_world_goes_on_bit_for_bit(task, env_id):
    """Step a world alone and in its batch: states, model, observations, rewards, ends."""
    walk_out(make_env(task), env_id)


@pytest.mark.parametrize("task", ["Velocity-Flat-Quadruped", "Velocity-Flat-Humanoid"])
def test_delays_and_histories_go_along(task):
    """Delay actions and observations by steps: the world alone has the delayed values."""
    env = make_env(task, delay)
    assert any(actuator.has_delay for actuator in env.scene["robot"].actuators)
    walk_out(env, 2)


def test_an_episode_ends_alone_as_in_the_batch():
    """End episodes within the steps compared: the new ones are equal, too."""

    def short(cfg):
        cfg.episode_length_s = 0.6

    env = make_env("Lift-Cube-Arm", short)
    assert WARM_UP < env.max_episode_length < WARM_UP + STEPS
    assert walk_out(env, 1) >= 1


def test_the_batch_does_not_change():
    """Take a world out: the next steps of the batch and its random numbers are as without."""
    results = []
    for taken in (False, True):
        env = make_env("Velocity-Flat-Quadruped")
        env.step(torch.zeros(WORLDS, 12))
        if taken:
            fork_env(env, 2).close()
        obs = env.step(torch.ones(WORLDS, 12))[0]
        results.append((obs["actor"].numpy().tobytes(), rng_state()["torch"].numpy().tobytes()))
        env.close()
    assert results[0] == results[1]


def test_a_saved_state_keeps_the_origins():
    """Save and load worlds without a terrain: they keep their places."""
    env = make_env("Push-Variants")
    origins = env.scene.env_origins.clone()
    state = env.state_dict()
    env.scene.env_origins.zero_()
    env.load_state_dict(state)
    assert torch.equal(env.scene.env_origins, origins) and origins.any()
    del state["scene"]["env_origins"]  # a state of an older version
    env.load_state_dict(state)
    assert np.array_equal(fork_env(env, 4).scene.env_origins[0], origins[4])


def test_what_cannot_be_taken_out():
    """Name a world that is not there, and a state that fits no other number of worlds."""
    env = make_env("Cartpole-Balance")
    with pytest.raises(ValueError, match="no world 5: the environment has 5 worlds"):
        fork_env(env, 5)
    with pytest.raises(ValueError, match="shape"):
        env.load_state_dict(env.world_state(1))
    env.close()

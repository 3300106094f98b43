"""Gymnasium's adapters: its own checker, seeds, and what finished worlds return."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from manyworlds.envs import GymEnv, GymVectorEnv
from manyworlds.managers import ObservationGroupCfg


@pytest.mark.parametrize("obs_group", [None, "actor"])
def test_gymnasium_finds_nothing_to_complain_about(env_cfg, obs_group):
    """Pass gymnasium's check of one world without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(GymEnv(env_cfg, obs_group=obs_group), skip_render_check=True)


def test_a_registered_task_passes_with_pictures(env_cfg):
    """Pass gymnasium's check through `gymnasium.make`, with a renderer set from outside."""

    def make(render_mode=None):
        env = GymEnv(env_cfg, render_mode=render_mode)
        env.env.renderer = lambda: np.zeros((8, 8, 3), np.uint8)
        return env

    gymnasium.register("manyworlds/Test-v0", entry_point=make)
    try:
        env = gymnasium.make("manyworlds/Test-v0", render_mode="rgb_array")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)
        env.reset()
        assert env.render().shape == (8, 8, 3)
    finally:
        gymnasium.registry.pop("manyworlds/Test-v0")


def rollout(env_cfg, seed: int) -> list:
    """Let a random agent act in a vector environment across ends of episodes."""
    env_cfg.episode_length_s = 0.5
    env = GymVectorEnv(env_cfg)
    env.action_space.seed(seed)
    results = [env.reset(seed=seed)]
    results += [env.step(env.action_space.sample()) for _ in range(25)]
    env.close()
    return results


def test_random_agents_repeat_with_their_seed(env_cfg):
    """Give the same arrays for the same seed, and others for another; results are no views."""
    first, again, other = (rollout(env_cfg, seed) for seed in (3, 3, 4))
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a[0]["actor"], b[0]["actor"])
        assert all(np.array_equal(x, y) for x, y in zip(a[1:-1], b[1:-1], strict=True))
    assert not np.array_equal(first[0][0]["actor"], other[0][0]["actor"])
    assert not np.array_equal(first[0][0]["actor"], first[1][0]["actor"])


def test_finished_worlds_report_their_final_observation(env_cfg):
    """Fill `final_obs` only where an episode ended, and say how worlds are reset."""
    env_cfg.observations["other"] = ObservationGroupCfg(
        terms=env_cfg.observations["actor"].terms, concatenate_terms=False
    )
    env = GymVectorEnv(env_cfg)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    env.reset(seed=1)
    env.env.episode_length_buf[2] = 199
    obs, rewards, terminated, truncated, infos = env.step(np.ones((4, 1), np.float32))
    assert rewards.dtype == np.float32 and terminated.dtype == truncated.dtype == bool
    assert infos["_final_obs"].tolist() == truncated.tolist() == [False, False, True, False]
    final = infos["final_obs"]
    assert [item is None for item in final] == [True, True, False, True]
    assert final[2] in env.single_observation_space and obs in env.observation_space
    assert abs(final[2]["actor"][3]) > 0.1 > abs(obs["actor"][2, 3])
    assert np.array_equal(final[2]["other"]["joint_vel"], final[2]["actor"][3:])
    assert infos["log"]["Episode_Termination/time_out"] == 1.0
    assert "final_obs" not in env.step(np.ones((4, 1), np.float32))[-1]


def test_worlds_can_be_reset_by_a_mask_and_seeds_by_a_list(env_cfg):
    """Follow gymnasium's `reset_mask`; put a list of seeds together."""
    env = GymVectorEnv(env_cfg, obs_group="actor")
    first = env.reset(seed=[1, 2, 3, 4])[0]
    assert np.array_equal(first, env.reset(seed=[1, 2, 3, 4])[0])
    assert not np.array_equal(first, env.reset(seed=[1, 2, 3, 5])[0])
    for _ in range(3):
        env.step(np.ones((4, 1), np.float32))
    env.reset(options={"reset_mask": np.array([True, False, False, True])})
    assert env.env.episode_length_buf.tolist() == [0, 3, 3, 0]


def test_mistakes_are_named(env_cfg):
    """Name the groups that there are."""
    with pytest.raises(ValueError, match=r"group 'x' does not exist: choose one of \['actor'\]"):
        GymEnv(env_cfg, obs_group="x")

"""Trained policies without their training."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.tasks import load_env_cfg, load_rl_cfg


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_memory_is_cleared_and_restored(kind, tmp_path):
    """Let a recurrent policy act in two worlds: clear one memory, all, and restore a saved one."""
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs = 2
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", kind
    rl_cfg.actor.rnn_hidden_dim, rl_cfg.actor.rnn_num_layers = 8, 1
    rl_cfg.clip_actions = 0.01
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    runner.cfg["upload_model"] = False
    runner.save(tmp_path / "model_0.pt")
    policy = load_policy(env, rl_cfg, tmp_path / "model_0.pt")
    obs = env.get_observations()
    policy.clip_actions = None  # the other bound hides the memory
    env.episode_length_buf[:] = 1
    first = [policy(obs).clone() for _ in range(3)]
    assert not torch.equal(first[0], first[1])
    saved = policy.state_dict()
    following = policy(obs).clone()
    policy.reset(torch.tensor([False, True]))
    assert torch.equal(policy(obs)[1], first[0][1])
    policy.load_state_dict(saved)
    assert torch.equal(policy(obs), following)
    policy.reset()
    assert torch.equal(policy(obs), first[0])
    policy.load_state_dict(saved)
    env.episode_length_buf[0] = 0  # the start of an episode
    assert torch.equal(policy(obs), torch.stack([first[0][0], following[1]]))
    assert load_policy(env, rl_cfg, tmp_path / "model_0.pt")(obs).abs().max() <= 0.01
    env.close()


def test_a_policy_without_memory_has_none(tmp_path):
    """Save, restore and reset a feedforward policy: nothing changes."""
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    policy, obs = runner.get_inference_policy(), env.get_observations()
    expected = policy(obs).clone()
    assert policy.state_dict() == {}
    policy.load_state_dict({})
    policy.reset(torch.ones(2, dtype=torch.bool))
    assert torch.equal(policy(obs), expected)
    env.close()


@pytest.mark.parametrize("widths", [(4,), (64, 64), (128, 128, 128)])
def test_an_action_is_the_same_in_a_batch_of_any_size(widths):
    """Compute actions, values and deviations of some of many observations, bit for bit."""
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs = 1
    rl_cfg.actor.hidden_dims = rl_cfg.critic.hidden_dims = widths
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    policy = runner.get_inference_policy()
    policy.critic = runner.alg.critic
    obs = torch.randn(1000, env.get_observations()["actor"].shape[1])
    groups = {"actor": obs, "critic": obs}
    expected = policy(groups)
    estimate = policy.estimate(groups)
    assert estimate.value.shape == (1000,) and estimate.deviation.shape == expected.shape
    for count in (1, 2, 3, 7, 12, 16, 31, 100, 999):
        some = {"actor": obs[:count], "critic": obs[:count]}
        assert torch.equal(policy(some), expected[:count]), count
        assert torch.equal(policy.estimate(some).value, estimate.value[:count]), count
        assert torch.equal(policy.estimate(some).deviation, estimate.deviation[:count]), count
    env.close()

"""Tests of a learner on another device, which `test_collector.py` runs in a process of their own.

torch must know the device before it computes its first gradient.
"""

import torch

from manyworlds.rl.checkpoint import load_checkpoint
from tests.rl.elsewhere import DEVICE, Elsewhere
from tests.rl.test_collector import make_runner, weights


def test_a_learner_elsewhere_learns_the_same(env_cfg, rl_cfg):
    """Give the same weights bit for bit, time-outs and normalizers included."""
    rl_cfg.actor.obs_normalization = rl_cfg.critic.obs_normalization = True
    env_cfg.episode_length_s = 0.05  # some episodes end in each rollout
    here = make_runner(env_cfg, rl_cfg)
    here.learn(3)
    with Elsewhere():
        there = make_runner(env_cfg, rl_cfg, DEVICE)
        there.learn(3)
        assert there.alg.storage.rewards.device.type == DEVICE.type
        moved = weights(there)
    assert torch.equal(moved, weights(here))


def test_a_rollout_moves_as_a_whole(env_cfg, rl_cfg):
    """Copy once to the learner and twice back in each iteration, whatever the number of steps."""
    with Elsewhere() as elsewhere:
        runner = make_runner(env_cfg, rl_cfg, DEVICE)
        runner.learn(1)
        elsewhere.sent.clear(), elsewhere.fetched.clear()
        runner.learn(2)
    rollout = 8 * 4 * (5 + 5 + 1 + 1) * 4  # observations twice, action, reward
    assert len(elsewhere.sent) == 2 and all(rollout < size < 2 * rollout for size in elsewhere.sent)
    assert len(elsewhere.fetched) == 4  # weights, and the means of losses


def test_checkpoints_load_across_devices(env_cfg, rl_cfg, tmp_path):
    """Continue here what was learned elsewhere, and the other way around, bit for bit."""
    with Elsewhere():
        there = make_runner(env_cfg, rl_cfg, DEVICE)
        there.learn(2)
        there.save(tmp_path / "there.pt")
        policy = there.get_inference_policy()
        obs = there.env.get_observations()
        action = policy(obs)
        assert action.device.type == "cpu" and next(there.alg.actor.parameters()).device == DEVICE
    here = make_runner(env_cfg, rl_cfg)
    here.load(tmp_path / "there.pt")
    assert torch.equal(here.get_inference_policy()(obs), action)
    here.learn(1)
    with Elsewhere():
        back = make_runner(env_cfg, rl_cfg, DEVICE)
        back.load(tmp_path / "there.pt")
        back.learn(1)
        assert torch.equal(weights(back), weights(here))
    for value in load_checkpoint(tmp_path / "there.pt")["actor_state_dict"].values():
        assert value.device.type == "cpu"

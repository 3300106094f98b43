"""Checkpoints: what is written is read, also from files of earlier versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlRndCfg, RslRlVecEnvWrapper
from manyworlds.rl.checkpoint import (
    AVERAGED,
    PROCESS_PARTS,
    TRAINING_PARTS,
    load_checkpoint,
    write_memory,
)

EARLIER = Path(__file__).with_name("data") / "checkpoint_of_november.pt"
"""Checkpoint of one iteration, from before the table of parts, with the settings of `earlier`."""


def make_runner(env_cfg, rl_cfg) -> OnPolicyRunner:
    """Make a runner of a fresh environment."""
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)


def assert_same(left: object, right: object) -> None:
    """Compare plain data with tensors, bit for bit."""
    first, structure = tree_flatten(left)
    second, other = tree_flatten(right)
    assert structure == other
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.fixture
def full_cfg(env_cfg, rl_cfg):
    """Configure a learner with all that a checkpoint may have."""
    env_cfg.episode_length_s = 0.2
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.class_name, network.rnn_type, network.rnn_hidden_dim = "RNNModel", "lstm", 4
        network.obs_normalization = True
    rl_cfg.algorithm.averaged_iterations = 4.0
    rl_cfg.algorithm.critic_learning_rate = 7e-4
    rl_cfg.algorithm.rnd_cfg = RslRlRndCfg(weight=5.0, reward_normalization=True)
    return rl_cfg


@pytest.mark.slow_on_warp
def test_each_part_is_written_and_read(env_cfg, full_cfg, tmp_path):
    """Have the keys of the tables, and write the same again once another runner has read it."""
    runner = make_runner(env_cfg, full_cfg)
    runner.learn(2)
    runner.save(tmp_path / "first.pt", {"note": "mine"})
    first = load_checkpoint(tmp_path / "first.pt")
    once = {part.key for part in TRAINING_PARTS}
    assert first.keys() == runner.alg.save().keys() | once | {"infos"}
    assert first["infos"].keys() == {p.key for p in PROCESS_PARTS} | {"note", "other_ranks"}
    again = make_runner(env_cfg, full_cfg)
    assert again.load(tmp_path / "first.pt")["note"] == "mine"
    assert again.current_learning_iteration == 2
    again.current_learning_iteration = 1
    again.save(tmp_path / "second.pt", {"note": "mine"})
    assert_same(load_checkpoint(tmp_path / "second.pt"), first)


@pytest.mark.slow_on_warp
def test_parts_of_the_present_episodes_are_not_played(env_cfg, full_cfg, tmp_path):
    """Load the policy alone, which is the average, and leave the rest of a runner as it is."""
    runner = make_runner(env_cfg, full_cfg)
    runner.learn(2)
    runner.save(tmp_path / "model.pt")
    checkpoint = load_checkpoint(tmp_path / "model.pt")
    player = make_runner(env_cfg, full_cfg)
    before = player.env.unwrapped.state_dict(), player.alg.critic.state_dict()
    player.load(tmp_path / "model.pt", load_cfg={"actor": True})
    assert_same(player.acting_policy().state_dict(), checkpoint[AVERAGED])
    assert_same((player.env.unwrapped.state_dict(), player.alg.critic.state_dict()), before)
    assert player.current_learning_iteration == 0
    assert write_memory(player)["actor"] is None


@pytest.fixture
def earlier(env_cfg, rl_cfg) -> Any:
    """Make the runner that wrote the earlier checkpoint."""
    env_cfg.scene.num_envs = 2
    env_cfg.episode_length_s = 0.3
    rl_cfg.actor.hidden_dims = rl_cfg.critic.hidden_dims = (4,)
    rl_cfg.actor.obs_normalization = True
    rl_cfg.algorithm.averaged_iterations = 4.0
    rl_cfg.algorithm.critic_learning_rate = 7e-4
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg, device="cpu")), rl_cfg)


def test_checkpoints_of_before_load(earlier, engine):
    """Continue networks, optimizer, average, worlds and returns of an earlier file."""
    if engine != "native":
        pytest.skip("the file is one of the native engine")
    content = load_checkpoint(EARLIER)
    earlier.load(EARLIER)
    alg = earlier.alg
    assert earlier.current_learning_iteration == 1
    assert_same(alg.actor.state_dict(), content["actor_state_dict"])
    assert_same(alg.critic.state_dict(), content["critic_state_dict"])
    saved = alg.optimizer.state_dict()
    assert_same(saved["state"], content["optimizer_state_dict"]["state"])
    assert_same(earlier.acting_policy().state_dict(), content[AVERAGED])
    returns = content["infos"]["returns"]
    assert list(earlier.logger.returns.recent) == returns["recent"][0] != []
    assert earlier.env.unwrapped.common_step_counter == 8
    state = earlier.env.unwrapped.state_dict()["sim"]["state"]
    assert torch.equal(state, content["infos"]["env_state"]["sim"]["state"])
    earlier.learn(1)
    assert [group["lr"] for group in alg.optimizer.param_groups] == [alg.learning_rate, 7e-4]

"""Rewards: weights, sums, logs."""

import pytest
import torch

from manyworlds.managers import RewardManager, RewardTermCfg
from tests.managers.terms import world_number, world_rows


def test_rewards_are_weighted_by_dt_and_never_nan(env):
    """Sum weight * term * dt; count values that are not finite as zero."""
    cfg = {
        "number": RewardTermCfg(func=world_number, weight=2.0),
        "bad": RewardTermCfg(func=lambda e: world_number(e) / 0.0, weight=1.0),
        "off": RewardTermCfg(func=world_number, weight=0.0),
        "none": None,
    }
    manager = RewardManager(cfg, env)
    assert manager.active_terms == ["number", "bad", "off"]
    reward = manager.compute(dt=0.5)
    assert reward.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert manager.step_reward.tolist()[3] == [6.0, 0.0, 0.0]
    log = manager.reset(torch.tensor([1, 3]))
    assert log["Episode_Reward/number"].item() == pytest.approx(2.0 / env.max_episode_length_s)
    unscaled = RewardManager(cfg, env, scale_by_dt=False)
    assert unscaled.compute(dt=0.5).tolist() == [0, 2, 4, 6]
    assert manager.compute(0.5)[3] == 3.0  # episode sums of worlds 0 and 2 went on
    assert manager.reset(torch.tensor([3]))["Episode_Reward/number"] == 3.0 / 10.0


def test_a_term_of_wrong_shape_is_named(env):
    """Say which manager, which term, and what was expected."""
    bad = RewardTermCfg(func=world_rows, weight=1.0)
    with pytest.raises(
        ValueError, match=r"RewardManager term 'bad' returned \(4, 2\), expected \(4,\)"
    ):
        RewardManager({"bad": bad}, env).compute(1.0)


def test_terms_of_weight_zero_are_not_evaluated(env):
    """Skip a term until its weight is changed."""
    calls = []

    def term(env) -> torch.Tensor:
        calls.append(1)
        return world_number(env)

    manager = RewardManager({"t": RewardTermCfg(func=term, weight=0.0)}, env, False)
    assert manager.compute(1.0).tolist() == [0.0] * 4 and not calls
    manager.get_term_cfg("t").weight = 2.0
    assert manager.compute(1.0).tolist() == [0.0, 2.0, 4.0, 6.0] and calls == [1]
    manager.get_term_cfg("t").weight = 0.0
    manager.compute(1.0)
    assert not manager.step_reward.any()


def test_a_shape_that_changes_later_is_named(env):
    """Check shapes in every step, not only at the beginning."""
    width = [()]
    term = RewardTermCfg(func=lambda e: torch.zeros(4, *width[0]), weight=1.0)
    manager = RewardManager({"t": term}, env)
    width[0] = (1,)
    with pytest.raises(ValueError, match=r"term 't' returned \(4, 1\), expected \(4,\)"):
        manager.compute(1.0)

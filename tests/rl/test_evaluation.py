"""Evaluation: means over one episode in each world."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.rl.evaluation import evaluate


class Count(CommandTerm):
    """Command without a value, whose metric counts the control steps of an episode."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.metrics = {"steps": torch.zeros(env.num_envs)}

    @property
    def command(self):
        return torch.zeros(self.num_envs, 0)

    def _resample_command(self, env_ids):
        pass

    def _update_command(self, env_ids):
        pass

    def _update_metrics(self):
        self.metrics["steps"] += 1.0


@dataclass(kw_only=True)
class CountCfg(CommandTermCfg):
    """Configuration of `Count`."""

    def build(self, env):
        return Count(self, env)


def fell(env):
    """End the first world's episodes after five steps."""
    return (env.episode_length_buf == 5) & (torch.arange(env.num_envs) == 0)


def test_an_episode_in_each_world_counts_once(env_cfg):
    """Count time after an early end as nothing, and episodes that begin after it not at all."""
    env_cfg.rewards = {
        "alive": RewardTermCfg(func=mdp.is_alive, weight=2.0),
        "off": RewardTermCfg(func=mdp.is_alive, weight=0.0),
    }
    env_cfg.terminations = {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "fell": TerminationTermCfg(func=fell),
    }
    env_cfg.episode_length_s = 0.5
    env = ManagerBasedRlEnv(env_cfg)
    result = evaluate(env, lambda obs: torch.zeros(4, 1))
    assert env.max_episode_length == 10 and env.num_envs == 4
    assert result.ends == {"time_out": 3, "fell": 1}
    # The step in which an episode ends is not one of being alive.
    assert result.terms == {"alive": pytest.approx((3 * 10 + 4) / 40)}
    assert result.mean_length_s == pytest.approx((3 * 10 + 5) / 4 * 0.05)
    assert result.mean_return == pytest.approx(2.0 * 34 * 0.05 / 4)
    text = str(result)
    assert "alive" in text and "off" not in text and "fell" in text and "25.0" in text


def test_metrics_are_those_of_the_first_episode(env_cfg):
    """Take each world's metrics before its first episode ends, whatever follows."""
    env_cfg.commands = {"count": CountCfg(resampling_time_range=(100.0, 100.0))}
    env_cfg.terminations = {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "fell": TerminationTermCfg(func=fell),
    }
    env_cfg.episode_length_s = 0.5
    env = ManagerBasedRlEnv(env_cfg)
    result = evaluate(env, lambda obs: torch.zeros(4, 1))
    assert result.metrics == {"count/steps": pytest.approx((3 * 9 + 4) / 4)}
    assert "count/steps 7.75" in str(result)


def test_a_world_whose_metric_is_not_finite_is_left_out(env_cfg):
    """Give the mean of the other worlds."""
    env_cfg.commands = {"c": CountCfg(resampling_time_range=(9.0, 9.0))}
    env_cfg.episode_length_s = 0.5
    env = ManagerBasedRlEnv(env_cfg)

    def policy(obs):
        env.command_manager.get_term("c").metrics["steps"][2] = torch.nan
        return torch.zeros(4, 1)

    assert evaluate(env, policy).metrics == {"c/steps": 9.0}


def test_a_world_is_evaluated_the_same_in_any_batch():
    """Evaluate ten worlds at once, and each alone: the same returns, lengths and ends."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    from dataclasses import asdict

    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    def make(num_envs: int, first_world: int = 0) -> ManagerBasedRlEnv:
        cfg = load_env_cfg("Velocity-Flat-Quadruped")
        cfg.scene.num_envs = num_envs
        cfg.scene.first_world = first_world
        cfg.scene.total_envs = 10
        cfg.episode_length_s = 0.5
        cfg.seed = 4
        cfg.sim.engine = "native"
        return ManagerBasedRlEnv(cfg, device="cpu")

    env = make(10)
    cfg = asdict(load_rl_cfg("Velocity-Flat-Quadruped"))
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), cfg, log_dir=None, device="cpu")
    policy = runner.get_inference_policy(device="cpu")
    env.seed(4)
    whole = evaluate(env, policy)
    env.close()
    alone = []
    for world in range(10):
        one = make(1, world)
        one.seed(4)
        alone.append(evaluate(one, policy))
        one.close()
    assert whole.mean_length_s == pytest.approx(sum(e.mean_length_s for e in alone) / 10, rel=1e-6)
    assert whole.mean_return == pytest.approx(sum(e.mean_return for e in alone) / 10, rel=1e-5)
    assert len({e.mean_return for e in alone}) == 10
    for name, value in whole.metrics.items():
        assert value == pytest.approx(sum(e.metrics[name] for e in alone) / 10, rel=1e-5)

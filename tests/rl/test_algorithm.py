"""Algorithms of rsl_rl, adjusted by subclassing."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import torch
from rsl_rl.algorithms import PPO, Distillation

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.algorithm import AdjustedAlgorithm, adjusted


class OwnPPO(PPO):
    """An algorithm of a user, which records what it is given."""

    def update(self) -> dict[str, float]:
        """Learn, and record the number of threads."""
        self.threads = torch.get_num_threads()
        return super().update()

    def process_env_step(self, obs: Any, rewards: Any, dones: Any, extras: Any) -> None:
        """Record the rewards."""
        self.rewards, self.time_outs = rewards, extras.get("time_outs")
        super().process_env_step(obs, rewards, dones, extras)


@pytest.mark.parametrize("algorithm", ["PPO", PPO, "Distillation", f"{__name__}:OwnPPO", OwnPPO])
def test_any_algorithm_is_adjusted_in_a_subclass(algorithm):
    """Put the adjustments before the algorithm that is named, and leave that as it is."""
    found = adjusted(algorithm)
    base = found.__mro__[2]
    assert issubclass(found, AdjustedAlgorithm) and found.__name__ == base.__name__
    assert base in (PPO, Distillation, OwnPPO)
    assert inspect.getmodule(base.update) is not inspect.getmodule(AdjustedAlgorithm)


def test_an_algorithm_of_ones_own_is_adjusted(env_cfg, rl_cfg):
    """Give it rewards with final values and its threads; set no attribute over its methods."""
    rl_cfg.algorithm.class_name = f"{__name__}:OwnPPO"
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner = OnPolicyRunner(env, rl_cfg)
    alg: Any = runner.alg
    assert isinstance(alg, OwnPPO) and not {"update", "process_env_step"} & vars(alg).keys()
    assert runner.cfg["algorithm"]["class_name"] == f"{__name__}:OwnPPO"
    env.unwrapped.episode_length_buf[1] = 199
    with torch.inference_mode():
        obs, rewards, dones, extras = env.step(alg.act(env.get_observations()))
        alg.process_env_step(obs, rewards, dones, extras)
    assert alg.time_outs is None and "time_outs" in extras
    assert (alg.rewards != rewards).tolist() == [False, True, False, False]
    alg.storage.clear()
    runner.learn(1)
    assert alg.threads == torch.get_num_threads()


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_optimizers_keep_their_settings(env_cfg, rl_cfg, tmp_path, name):
    """Learn with each optimizer, as one kernel where torch has one; follow the learning rate."""
    rl_cfg.algorithm.optimizer, rl_cfg.algorithm.learning_rate = name, 0.0007
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    optimizer: Any = runner.alg.optimizer
    [group] = optimizer.param_groups
    assert group["lr"] == 0.0007 and group.get("fused", False) == (name != "rmsprop")
    parameters = [*runner.alg.actor.parameters(), *runner.alg.critic.parameters()]
    assert [id(p) for p in group["params"]] == [id(p) for p in parameters]
    before = [p.detach().clone() for p in parameters]
    runner.learn(1)
    assert all(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
    assert optimizer.param_groups[0]["lr"] == runner.alg.learning_rate


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_the_critic_learns_at_a_rate_of_its_own(env_cfg, rl_cfg, name):
    """Keep the critic's learning rate while that of the actor adapts, also after loading."""
    rl_cfg.algorithm.optimizer, rl_cfg.algorithm.critic_learning_rate = name, 0.0007
    rl_cfg.algorithm.desired_kl = 1e9  # increases the actor's rate
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    alg: Any = runner.alg
    actor, critic = alg.optimizer.param_groups
    for group, network in ((actor, alg.actor), (critic, alg.critic)):
        assert [id(p) for p in group["params"]] == [id(p) for p in network.parameters()]
        assert group.get("fused", False) == (name != "rmsprop")
    runner.learn(1)
    assert actor["lr"] == critic["lr"] == alg.learning_rate > 0.001  # as rsl_rl sets both
    assert critic["own_lr"] == 0.0007 and "own_lr" not in actor
    alg.load(alg.save(), None, True)
    alg.learning_rate = 0.0
    for group in alg.optimizer.param_groups:
        group["lr"] = 0.0
    before = [[p.detach().clone() for p in net.parameters()] for net in (alg.actor, alg.critic)]
    copy.copy(alg.optimizer).step()
    for network, old, moved in zip((alg.actor, alg.critic), before, (False, True), strict=True):
        same = [torch.equal(p, was) for p, was in zip(network.parameters(), old, strict=True)]
        assert not any(same) if moved else all(same)
    assert [group["lr"] for group in alg.optimizer.param_groups] == [0.0, 0.0]


@pytest.mark.parametrize("rate", [0.0, -1e-3, float("nan")])
def test_a_rate_of_the_critic_that_is_not_positive_is_refused(env_cfg, rl_cfg, rate):
    """Say the value and the remedy before the training starts."""
    rl_cfg.algorithm.critic_learning_rate = rate
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=f"critic_learning_rate is {rate}, but must be positive"):
        OnPolicyRunner(env, rl_cfg)


@pytest.mark.parametrize("name", ["entropy_coef", "learning_rate"])
def test_settings_change_at_their_iterations(env_cfg, rl_cfg, tmp_path, name):
    """Apply each stage from its iteration on, also in a run that goes on later."""
    cfg = rl_cfg.algorithm
    cfg.schedule, cfg.entropy_coef, cfg.learning_rate = "fixed", 0.3, 0.3
    setattr(cfg, name.replace("_coef", "") + "_stages", ((1, 0.2), (3, 0.1)))
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner, used = OnPolicyRunner(env, rl_cfg), []
    alg: Any = runner.alg
    runner.on_iteration(lambda record: used.append((getattr(alg, name), _rate(alg))))
    runner.learn(4)
    values = [0.3, 0.2, 0.2, 0.1]
    rates = values if name == "learning_rate" else [0.3] * 4
    assert used == list(zip(values, rates, strict=True))
    runner.save(tmp_path / "last.pt")
    again: Any = OnPolicyRunner(env, rl_cfg)
    assert getattr(again.alg, name) == 0.3
    again.load(tmp_path / "last.pt")
    again.learn(1)
    assert (getattr(again.alg, name), _rate(again.alg)) == (0.1, rates[-1])


def _rate(alg: Any) -> float:
    [group] = alg.optimizer.param_groups
    return group["lr"]


@pytest.mark.parametrize("name", ["entropy_stages", "learning_rate_stages"])
@pytest.mark.parametrize(
    "stages", [((5, 0.1), (5, 0.2)), ((5, 0.1), (3, 0.2)), ((-1, 0.1),), ((1, float("nan")),)]
)
def test_stages_out_of_order_are_refused(env_cfg, rl_cfg, name, stages):
    """Say the value and an example before the training starts."""
    rl_cfg.algorithm.schedule = "fixed"
    setattr(rl_cfg.algorithm, name, stages)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=f"{name} is .* such as \\(\\(200, 0.002\\),\\)"):
        OnPolicyRunner(env, rl_cfg)


def test_stages_of_an_adaptive_learning_rate_are_refused(env_cfg, rl_cfg):
    """Say that the schedule sets the rate."""
    rl_cfg.algorithm.schedule, rl_cfg.algorithm.learning_rate_stages = "adaptive", ((5, 0.1),)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match="schedule is 'adaptive', which sets the learning rate"):
        OnPolicyRunner(env, rl_cfg)


def test_encoders_that_the_critic_shares_learn_with_the_actor(env_cfg, rl_cfg):
    """Optimize each parameter once, also if both networks have it."""
    rl_cfg.algorithm.critic_learning_rate = 0.0007
    alg: Any = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg).alg
    alg.critic.mlp = alg.actor.mlp
    actor, critic = alg._rebuilt(alg.optimizer, 0.0007).param_groups
    own = [p for p in alg.critic.parameters() if all(p is not q for q in alg.actor.parameters())]
    assert len(actor["params"]) == len([*alg.actor.parameters()])
    assert [id(p) for p in critic["params"]] == [id(p) for p in own]


def test_an_unknown_algorithm_is_named():
    """Say which name is not found."""
    with pytest.raises(ValueError, match="'PPOO'"):
        adjusted("PPOO")

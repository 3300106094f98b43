"""Updates of the actor and the critic at the same time."""

import threading
from typing import Any

import pytest
import torch
from rsl_rl.algorithms import PPO

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper, parallel_update
from manyworlds.rl.parallel_update import can_update_in_parallel, update_in_parallel
from manyworlds.utils.devices import torch_threads
from tests.waiting import PATIENCE_S

SETTINGS = {
    "as shipped": {},
    "clipped values": {"use_clipped_value_loss": True, "value_loss_coef": 0.5},
    "unclipped values": {"use_clipped_value_loss": False, "max_grad_norm": 0.01},
    "fixed rate": {"schedule": "fixed", "entropy_coef": 0.1},
    "large changes": {"desired_kl": 1e-6, "learning_rate": 0.003},
    "own rate of the critic": {"critic_learning_rate": 7e-4},
    "mixed precision": {"use_mixed_precision": True},
    "adamw": {"optimizer": "adamw"},
    "sgd": {"optimizer": "sgd"},
    "rmsprop": {"optimizer": "rmsprop", "num_mini_batches": 3, "num_learning_epochs": 2},
}


def make_runner(env_cfg, rl_cfg) -> OnPolicyRunner:
    """Make a runner of a fresh environment, whose networks normalize observations."""
    torch.manual_seed(3)
    rl_cfg.actor.obs_normalization = rl_cfg.critic.obs_normalization = True
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)


def collect(alg, env) -> None:
    """Collect a rollout, and compute its returns."""
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(alg.storage.num_transitions_per_env):
            obs, rewards, dones, extras = env.step(alg.act(obs))
            alg.process_env_step(obs, rewards, dones, extras)
        alg.compute_returns(obs)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_result_is_that_of_rsl_rl(env_cfg, rl_cfg, settings):
    """Equal losses, weights, optimizer, learning rate and random state, bit for bit."""
    for name, value in settings.items():
        setattr(rl_cfg.algorithm, name, value)
    results = []
    for update in (PPO.update, lambda alg: update_in_parallel(alg, 2)):
        runner = make_runner(env_cfg, rl_cfg)
        alg: Any = runner.alg
        assert can_update_in_parallel(alg)
        losses = []
        for _ in range(3):
            collect(alg, runner.env)
            with torch_threads(1):
                losses.append(update(alg))
        results.append((losses, alg.save(), alg.learning_rate, torch.get_rng_state()))
    theirs, mine = results
    assert [[*each.items()] for each in mine[0]] == [[*each.items()] for each in theirs[0]]
    torch.testing.assert_close(mine[1:], theirs[1:], rtol=0.0, atol=0.0)
    assert alg.optimizer.param_groups[0]["lr"] == alg.learning_rate


def test_mixed_precision_rounds_and_learns_the_same(env_cfg, rl_cfg):
    """Change the loss of equal parameters by the rounding of bfloat16; keep those in float32."""
    rl_cfg.algorithm.num_learning_epochs = rl_cfg.algorithm.num_mini_batches = 1
    losses = []
    for mixed in (False, True):
        rl_cfg.algorithm.use_mixed_precision = mixed
        runner = make_runner(env_cfg, rl_cfg)
        alg: Any = runner.alg
        collect(alg, runner.env)
        with torch_threads(1):
            losses.append(update_in_parallel(alg, 2)["value"])
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.02)
    parameters = [*alg.actor.parameters(), *alg.critic.parameters()]
    assert {p.dtype for p in parameters} == {torch.float32}


def test_the_state_is_in_the_order_of_the_parameters(env_cfg, rl_cfg, monkeypatch):
    """Save the same file whichever network learns first."""
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    learned, descend = threading.Event(), parallel_update._descend

    def critic_first(optimizer, network, *rest):
        if network is alg.actor:
            assert learned.wait(PATIENCE_S)
        descend(optimizer, network, *rest)
        learned.set()

    monkeypatch.setattr(parallel_update, "_descend", critic_first)
    collect(alg, runner.env)
    update_in_parallel(alg, 2)
    assert [*alg.optimizer.state] == alg.optimizer.param_groups[0]["params"]
    names = [*alg.save()["optimizer_state_dict"]["state"]]
    assert names == sorted(names)


def test_a_runner_uses_it_with_several_threads(env_cfg, rl_cfg, monkeypatch):
    """Take it for two threads and more, and leave one thread and own updates to rsl_rl."""
    calls = []

    def update(alg, threads):
        calls.append(threads)
        return update_in_parallel(alg, threads)

    monkeypatch.setattr("manyworlds.rl.algorithm.update_in_parallel", update)
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    before = torch.get_num_threads()
    for threads, expected in ((1, []), (2, [2]), (5, [2, 5])):
        collect(alg, runner.env)
        alg.update_threads = threads
        alg.update()
        assert calls == expected
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", ["rnd", "symmetry", "is_multi_gpu"])
def test_other_losses_and_processes_are_left_to_rsl_rl(env_cfg, rl_cfg, name):
    """Do not use it where a loss, or another process, depends on more than the two networks."""
    alg: Any = make_runner(env_cfg, rl_cfg).alg
    setattr(alg, name, True)
    assert not can_update_in_parallel(alg)


def test_recurrent_networks_are_left_to_rsl_rl(env_cfg, rl_cfg):
    """Do not use it for networks with a memory, whose mini-batches are sequences."""
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", "gru"
    assert not can_update_in_parallel(make_runner(env_cfg, rl_cfg).alg)


@pytest.mark.parametrize("network", ["actor", "critic"])
def test_an_error_of_either_network_is_raised(env_cfg, rl_cfg, network, monkeypatch):
    """Raise the error that one thread had, and do not wait for the other."""
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    collect(alg, runner.env)

    def fail(*_args, **_kwargs):
        raise ArithmeticError(f"the {network} failed")

    monkeypatch.setattr(getattr(alg, network), "forward", fail)
    with pytest.raises(ArithmeticError, match=f"the {network} failed"):
        update_in_parallel(alg, 2)

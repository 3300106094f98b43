"""The average of a policy's parameters: in training, checkpoints, playback and export."""

from typing import Any

import onnxruntime
import pytest
import torch

from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab.training.entry_stock import sent_policy
from manyworlds.live.training_policy import TrainingPolicy
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.checkpoint import AVERAGED, load_checkpoint
from manyworlds.rl.training import train

TASK = "Cartpole-Swingup"
PERIOD = 4.0


@pytest.fixture
def rl_cfg(rl_cfg):
    """Average over four iterations; observations are normalized."""
    rl_cfg.algorithm.averaged_iterations = PERIOD
    rl_cfg.actor.obs_normalization = True
    return rl_cfg


def parameters(network) -> dict[str, torch.Tensor]:
    """Return a copy of the parameters of a network."""
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def test_the_average_is_exponential(env_cfg, rl_cfg):
    """Begin with the first iteration's parameters, and follow the later ones."""
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    alg: Any = runner.alg
    policy = alg.get_policy()
    assert runner.acting_policy() is policy
    runner.learn(1)
    expected = parameters(policy)
    for _ in range(2):
        runner.learn(1)
        now = parameters(policy)
        expected = {name: old + (now[name] - old) / PERIOD for name, old in expected.items()}
    acting = runner.acting_policy()
    assert acting is not policy
    for name, value in parameters(acting).items():
        torch.testing.assert_close(value, expected[name])
        assert not torch.equal(value, parameters(policy)[name]), name
    # Statistics of observations are averages already.
    assert torch.equal(acting.obs_normalizer.mean, policy.obs_normalizer.mean)
    # A lab that enters a world of the training acts like playback.
    entered = TrainingPolicy(runner).of_world(0)["actor"]
    assert all(torch.equal(entered[name], value) for name, value in acting.state_dict().items())


@pytest.mark.slow
def test_training_goes_on_from_the_last_parameters(env_cfg, rl_cfg, log_root):
    """Resume bit for bit, with the average, which does not change what is learned."""
    whole = load_checkpoint(train(TASK, env_cfg, rl_cfg, log_root).checkpoint)
    rl_cfg.max_iterations = 2
    half = train(TASK, env_cfg, rl_cfg, log_root)
    rl_cfg.max_iterations = 4
    resumed = train(TASK, env_cfg, rl_cfg, log_root, resume=half.checkpoint)
    new = load_checkpoint(resumed.checkpoint)
    rl_cfg.algorithm.averaged_iterations = 0.0
    plain = load_checkpoint(train(TASK, env_cfg, rl_cfg, log_root).checkpoint)
    assert AVERAGED not in plain
    for name, value in whole["actor_state_dict"].items():
        assert torch.equal(value, new["actor_state_dict"][name]), name
        assert torch.equal(value, plain["actor_state_dict"][name]), name
        assert torch.equal(whole[AVERAGED][name], new[AVERAGED][name]), name


@pytest.mark.slow
def test_playback_and_export_act_with_the_average(env_cfg, rl_cfg, log_root):
    """Load the average, whatever the settings of playback, and export the same policy."""
    result = train(TASK, env_cfg, rl_cfg, log_root)
    checkpoint = load_checkpoint(result.checkpoint)
    average = checkpoint[AVERAGED]
    sent = sent_policy(result.checkpoint)["actor"]
    env = ManagerBasedRlEnv(env_cfg)
    obs: Any = env.reset()[0]
    for period in (PERIOD, 0.0):
        rl_cfg.algorithm.averaged_iterations = period
        policy: Any = load_policy(env, rl_cfg, result.checkpoint)
        for name, value in parameters(policy.actor).items():
            assert torch.equal(value, average[name]) and torch.equal(value, sent[name]), name
        action = policy(obs)
    session = onnxruntime.InferenceSession(str(result.run.path / "policy.onnx"))
    [exported] = session.run(["actions"], {"obs": obs["actor"].numpy()})
    torch.testing.assert_close(torch.from_numpy(exported), action, atol=1e-6, rtol=1e-5)
    last = checkpoint["actor_state_dict"]
    assert any(not torch.equal(last[name], value) for name, value in average.items())


@pytest.mark.parametrize("period", [-1.0, 0.5, float("nan")])
def test_periods_below_one_iteration_are_refused(env_cfg, rl_cfg, period):
    """Name the setting and the bound."""
    rl_cfg.algorithm.averaged_iterations = period
    wrapped = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=r"averaged_iterations is .* at least 1, or 0 for no"):
        OnPolicyRunner(wrapped, rl_cfg)

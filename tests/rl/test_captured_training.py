"""Training with captured control steps and updates, which a recorder on the CPU stands in for."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

from manyworlds.envs.capture_obstacles import noting
from manyworlds.managers import RewardTermCfg
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.utils.devices import torch_threads
from manyworlds.validation.host_reads import gpu_paths

pytest.importorskip("mujoco_warp")
from manyworlds.envs.step_graph import StepGraph
from manyworlds.rl.ppo import PPO
from tests.envs.test_step_graph import config, make, recorder
from tests.recorded_graph import RecordedGraph

pytestmark = pytest.mark.slow  # kernels are compiled at first


def make_runner(rl_cfg, env_cfg=None, captures: bool = True) -> OnPolicyRunner:
    """Make a runner of six worlds with the random numbers of GPUs."""
    torch.manual_seed(3)
    env = make(env_cfg or config())
    if captures:
        env.step_graph = StepGraph(env, recorder)
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), rl_cfg)
    with gpu_paths():  # also the noise of actions
        for stream in env.random_streams.streams.values():
            stream.use(stream.states)
    return runner


def learn(runner: OnPolicyRunner, iterations: int = 4) -> tuple[torch.Tensor, list[dict]]:
    """Learn on the paths of GPUs; return all weights, and the curves."""
    torch.manual_seed(4)
    records = []
    runner.on_iteration(records.append)
    with gpu_paths(), torch_threads(1):
        runner.learn(iterations)
    weights = torch.cat([p.detach().flatten() for p in runner.alg.actor.parameters()])
    values = torch.cat([p.detach().flatten() for p in runner.alg.critic.parameters()])
    return torch.cat([weights, values]), [record.scalars for record in records]


def test_a_rollout_reads_nothing_until_it_is_complete(rl_cfg):
    """Read once what the steps of an iteration report, and once whether anything was NaN."""
    runner = make_runner(rl_cfg)
    learn(runner, 2)  # the step is captured
    env = runner.env.unwrapped
    assert env.step_graph is not None and env.step_graph.captures == 1
    with torch.inference_mode(), noting(env) as obstacles:
        runner._collect(runner.env.get_observations())
    found = [obstacle for obstacle in obstacles if "generator of torch" not in obstacle.problem]
    assert [obstacle.code for obstacle in found] == [
        "reports = torch.stack([report for report, _, _ in unread]).cpu()",
        "for step, flags in enumerate(torch.stack(has_nan).tolist()):",
    ]


def test_captured_rollouts_are_learned_from_as_those_of_python(rl_cfg):
    """Give the same weights and curves bit for bit, time-outs included."""
    captured, curves = learn(make_runner(rl_cfg))
    expected, expected_curves = learn(make_runner(rl_cfg, captures=False))
    assert torch.equal(captured, expected)
    assert curves[-1]["Train/mean_episode_length"] > 0.0
    assert curves == expected_curves


def never_finite(env) -> torch.Tensor:
    """Reward that is NaN in one world."""
    return torch.where(env.episode_length_buf == 3, torch.nan, 0.0)


@pytest.mark.parametrize("policy", ["warn", "error"])
def test_values_that_are_not_finite_are_told_after_the_rollout(rl_cfg, policy):
    """Count worlds in the logs of their steps, name the manager, and raise at once for 'error'."""
    env_cfg = config()
    env_cfg.rewards["bad"] = RewardTermCfg(func=never_finite, weight=1.0, nan_policy=policy)
    runner = make_runner(rl_cfg, copy.deepcopy(env_cfg))
    if policy == "error":
        with pytest.raises(ValueError, match="term 'bad' is NaN or infinite in worlds"):
            learn(runner)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, curves = learn(runner)
    [message] = [str(w.message) for w in caught if "NaN or infinite" in str(w.message)]
    assert message.startswith("A term of RewardManager was NaN or infinite in worlds [")
    assert curves[-1]["Status/nan_reward"] >= 1.0


def captures_updates(runner: OnPolicyRunner) -> PPO:
    """Let a recorder stand in for the graphs of the learner, which is returned."""
    assert isinstance(runner.alg, PPO)
    runner.alg.capture_updates(RecordedGraph)
    return runner.alg


@pytest.mark.parametrize("schedule", ["adaptive", "fixed"])
def test_captured_updates_equal_those_of_python(rl_cfg, schedule):
    """Learn the same weights and curves bit for bit; capture again for another entropy bonus."""
    rl_cfg.algorithm.schedule = schedule
    rl_cfg.algorithm.normalize_advantage_per_mini_batch = True
    rl_cfg.algorithm.entropy_stages = ((3, 0.002),)
    rl_cfg.algorithm.critic_learning_rate = 0.002
    runners = [make_runner(rl_cfg, captures=False) for _ in range(2)]
    alg = captures_updates(runners[0])
    (captured, curves), (expected, expected_curves) = (learn(runner) for runner in runners)
    assert torch.equal(captured, expected)
    for scalars, others in zip(curves, expected_curves, strict=True):
        assert {n: (v, others[n]) for n, v in scalars.items() if v != others[n]} == {}
    assert alg.update_graph is not None and alg.update_graph.captures == 2
    rates = [scalars["Loss/learning_rate"] for scalars in curves]
    assert (len({*rates}) > 1) == (schedule == "adaptive")
    saved = alg.save()["optimizer_state_dict"]["param_groups"]
    assert [group["lr"] for group in saved] == [rates[-1], rates[-1]]


def test_updates_are_captured_again_in_other_memory(rl_cfg):
    """Continue from a loaded state of the optimizer, whose tensors are new ones."""
    runners = [make_runner(rl_cfg, captures=False) for _ in range(2)]
    alg = captures_updates(runners[0])
    for runner in runners:
        learn(runner, 2)
        runner.alg.load(copy.deepcopy(runner.alg.save()), None, True)
    assert torch.equal(learn(runners[0], 2)[0], learn(runners[1], 2)[0])
    assert alg.update_graph is not None and alg.update_graph.captures == 2


def test_updates_that_cannot_be_captured_are_refused(rl_cfg):
    """Name what keeps the update from being captured."""
    rl_cfg.algorithm.capture_update = True
    with pytest.raises(ValueError, match="capture_update is True, but the learner is on 'cpu'"):
        make_runner(rl_cfg, captures=False)

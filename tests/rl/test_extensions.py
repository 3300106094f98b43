"""Extensions of rsl_rl: rewards for new observations, distillation, and recurrent policies."""

import copy

import pytest
import torch
from tensordict import TensorDict

from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlDistillationRunnerCfg, RslRlRndCfg
from manyworlds.rl.checkpoint import load_checkpoint, write_memory
from manyworlds.rl.config import runner_settings
from manyworlds.rl.evaluation import evaluate
from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.rl.training import train
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

TASK = "Cartpole-Swingup"
pytestmark = pytest.mark.slow_on_warp


def run(env_cfg, rl_cfg, log_root, iterations=None, **kwargs):
    """Train copies of the configs."""
    rl_cfg = copy.deepcopy(rl_cfg)
    rl_cfg.max_iterations = iterations or rl_cfg.max_iterations
    return train(TASK, copy.deepcopy(env_cfg), rl_cfg, log_root, **kwargs)


def assert_resumes(env_cfg, rl_cfg, log_root) -> None:
    """Train four iterations at once, and in two halves, to the same checkpoint bit for bit."""
    whole = load_checkpoint(run(env_cfg, rl_cfg, log_root, 4).checkpoint)
    half = run(env_cfg, rl_cfg, log_root, 2)
    resumed = load_checkpoint(run(env_cfg, rl_cfg, log_root, 4, resume=half.checkpoint).checkpoint)
    assert resumed["iter"] == whole["iter"] == 3
    networks = [key for key in whole if key.endswith("_state_dict") and "optimizer" not in key]
    assert len(networks) >= 2
    for network in networks:
        for name, value in whole[network].items():
            assert torch.equal(value, resumed[network][name]), f"{network}: {name}"


@pytest.mark.slow
def test_new_observations_are_rewarded(env_cfg, rl_cfg, log_root):
    """Reward what was not observed more than what was, scaled by a weight that changes."""
    env_cfg.scene.num_envs = 16
    schedule = {"mode": "step", "final_step": 16, "final_value": 0.25}
    rl_cfg.algorithm.rnd_cfg = RslRlRndCfg(
        weight=50.0, weight_schedule=schedule, learning_rate=0.01, state_normalization=True
    )
    env_cfg.episode_length_s = 0.2
    records = run(env_cfg, rl_cfg, log_root, 12).records
    losses = [record.scalars["Loss/rnd"] for record in records]
    assert losses[-1] < 0.3 * losses[0]
    assert records[-1].scalars["Rnd/mean_intrinsic_reward"] > 0.0
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    runner.learn(3)
    assert runner.alg.rnd.update_counter == 24 and runner.alg.rnd.weight == 0.25
    obs = runner.env.get_observations()
    seen = runner.alg.rnd.get_intrinsic_reward(obs)
    new = runner.alg.rnd.get_intrinsic_reward(TensorDict({k: v + 30.0 for k, v in obs.items()}))
    assert new.mean() > 3.0 * seen.mean() > 0.0


@pytest.mark.slow
def test_rewards_for_new_observations_resume(env_cfg, rl_cfg, log_root):
    """Resume the networks, the moments of rewards and the schedule, with the curve."""
    rl_cfg.algorithm.rnd_cfg = RslRlRndCfg(
        weight=5.0,
        weight_schedule={"mode": "linear", "initial_step": 4, "final_step": 30, "final_value": 1.0},
        reward_normalization=True,
        state_normalization=True,
    )
    env_cfg.episode_length_s = 0.05
    assert_resumes(env_cfg, rl_cfg, log_root)


def test_settings_of_rewards_for_new_observations_are_checked(env_cfg, rl_cfg):
    """Refuse an incomplete schedule and an unknown group; leave them out without a weight."""
    assert "rnd_cfg" not in runner_settings(rl_cfg)["algorithm"]
    rl_cfg.algorithm.rnd_cfg = RslRlRndCfg(weight=1.0, weight_schedule={"mode": "linear"})
    with pytest.raises(ValueError, match=r"weight_schedule is \{'mode': 'linear'\}, but needs"):
        runner_settings(rl_cfg)
    rl_cfg.algorithm.rnd_cfg.weight_schedule = None
    rl_cfg.obs_groups["rnd_state"] = ("gaze",)
    with pytest.raises(ValueError, match=r"rnd_state observes \['gaze'\], but the environment"):
        OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)


@pytest.fixture
def student_cfg(env_cfg, rl_cfg, log_root) -> RslRlDistillationRunnerCfg:
    """Train a teacher for one iteration, and configure a student of other size."""
    teacher = run(env_cfg, rl_cfg, log_root, 1)
    cfg = RslRlDistillationRunnerCfg(
        num_steps_per_env=8,
        save_interval=1,
        teacher_checkpoint=str(teacher.checkpoint),
        teacher=rl_cfg.actor,
    )
    cfg.student.hidden_dims, cfg.algorithm.gradient_length = (32, 32), 4
    cfg.algorithm.learning_rate = 0.003
    return cfg


@pytest.mark.slow
def test_a_student_learns_the_actions_of_its_teacher(env_cfg, student_cfg, log_root):
    """Reduce the difference of actions; play, evaluate and export the student."""
    result = run(env_cfg, student_cfg, log_root, 20)
    losses = [record.scalars["Loss/behavior"] for record in result.records]
    assert sum(losses[-3:]) < 0.2 * sum(losses[:3])
    env = ManagerBasedRlEnv(env_cfg)
    student = load_policy(env, student_cfg, result.checkpoint)
    state = load_checkpoint(result.checkpoint)
    assert state["student_state_dict"]["mlp.0.weight"].shape == (32, 5)
    assert evaluate(env, student).episodes == 4
    policy = OnnxPolicy(result.run.path / "policy.onnx", env.sim.mj_model)
    assert policy.description["policy"]["inputs"] == {"obs": ["actor"]}
    obs = torch.randn(1, 5)
    [exported] = policy._session.run(["actions"], {"obs": obs.numpy()})
    env.episode_length_buf[:] = 1
    actions = student(TensorDict({"actor": obs}, [1]))
    torch.testing.assert_close(actions, torch.from_numpy(exported), atol=1e-5, rtol=0.0)


@pytest.mark.slow
def test_a_student_resumes_without_the_file_of_its_teacher(env_cfg, student_cfg, log_root):
    """Take the teacher from the student's checkpoint; without one, say what is missing."""
    student_cfg.student.class_name, student_cfg.student.rnn_type = "RNNModel", "gru"
    assert_resumes(env_cfg, student_cfg, log_root)
    student_cfg.teacher_checkpoint = None
    with pytest.raises(ValueError, match="Distillation has no teacher: set --agent.teacher-check"):
        run(env_cfg, student_cfg, log_root / "none")
    assert not (log_root / "none").exists()
    student_cfg.obs_groups["teacher"] = ("oracle",)
    with pytest.raises(ValueError, match=r"teacher observes \['oracle'\]"):
        run(env_cfg, student_cfg, log_root)


@pytest.fixture(params=["lstm", "gru"])
def memory_cfg(rl_cfg, request):
    """Configure recurrent networks."""
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.class_name, network.rnn_type, network.rnn_hidden_dim = "RNNModel", request.param, 8
    return rl_cfg


@pytest.mark.slow
def test_a_recurrent_policy_resumes(env_cfg, memory_cfg, log_root):
    """Resume its memory of the present episodes, bit for bit."""
    assert_resumes(env_cfg, memory_cfg, log_root)


def test_the_memory_of_a_policy_starts_with_an_episode(env_cfg, memory_cfg, log_root):
    """Forget an episode in the worlds that begin another one; leave the learner's memory alone."""
    env = ManagerBasedRlEnv(env_cfg)
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), memory_cfg)
    runner.learn(1)
    before = write_memory(runner)["actor"]
    policy = runner.get_inference_policy()
    obs = TensorDict({"actor": torch.ones(4, 5)}, [4])
    env.reset()
    first = policy(obs)
    env.episode_length_buf[:] = 1
    second = policy(obs)
    assert ((second - first).abs() > 1e-6).any(dim=1).all()
    env.episode_length_buf[1] = 0
    third = policy(obs)
    assert torch.equal(third[1], first[1]) and not torch.equal(third[0], first[0])
    assert write_memory(runner)["actor"] is before
    assert evaluate(env, policy).episodes == 4


def test_settings_of_recurrent_networks_are_checked(env_cfg, memory_cfg):
    """Refuse an unknown kind of memory, and more mini-batches than worlds."""
    memory_cfg.algorithm.num_mini_batches = 5
    with pytest.raises(ValueError, match="num_mini_batches is 5, but there are 4 worlds"):
        OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), memory_cfg).learn(1)
    memory_cfg.critic.rnn_type = "rnn"
    with pytest.raises(ValueError, match=r"critic.rnn_type is 'rnn', which must be one of"):
        runner_settings(memory_cfg)

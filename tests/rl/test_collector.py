"""A learner on another device than the worlds."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rsl_rl.algorithms import PPO

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.collector import Block


def make_runner(env_cfg, rl_cfg, device="cpu") -> OnPolicyRunner:
    """Make a runner of a fresh environment on the CPU, with its learner on a device."""
    torch.manual_seed(3)
    wrapped = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg, device="cpu"))
    return OnPolicyRunner(wrapped, rl_cfg, device=str(device))


def weights(runner) -> torch.Tensor:
    """Return all weights of a runner on the CPU, as one vector."""
    state = runner.alg.save()
    networks = [v for k, v in state.items() if k.endswith("_state_dict") and "opt" not in k]
    return torch.cat([v.float().cpu().flatten() for network in networks for v in network.values()])


def test_a_block_holds_tensors_of_all_kinds():
    """Keep shapes and types, and write through to the memory that moves."""
    shapes = {
        "image": ((3, 5, 5), torch.uint8),
        "flag": ((7,), torch.bool),
        "value": ((2, 3), torch.float64),
        "count": ((), torch.long),
    }
    block = Block(shapes, "cpu")
    for tensor in block.tensors.values():
        tensor.fill_(1)
    moved = block.to("cpu")
    for name, (shape, dtype) in shapes.items():
        assert moved[name].shape == shape and moved[name].dtype == dtype
        assert (moved[name] == 1).all()


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("memory", [None, "gru", "lstm"])
def test_collected_rollouts_are_learned_from_as_if_collected_by_the_learner(
    env_cfg, rl_cfg, memory
):
    """Give the same weights bit for bit, time-outs and memory included."""
    if memory is not None:
        for network in (rl_cfg.actor, rl_cfg.critic):
            network.class_name, network.rnn_type, network.rnn_hidden_dim = "RNNModel", memory, 8
    env_cfg.episode_length_s = 0.05  # some episodes end in each rollout
    direct = make_runner(env_cfg, rl_cfg)
    direct.learn(3)
    moved = make_runner(env_cfg, rl_cfg)
    moved.collect_on(torch.device("cpu"))
    moved.learn(3)
    assert torch.equal(weights(moved), weights(direct))


def test_rewards_of_the_learner_are_refused_on_another_device(env_cfg, rl_cfg):
    """Name the setting and the devices when the learner computes rewards in every step."""
    rl_cfg.algorithm.rnd_cfg.weight = 1.0
    runner = make_runner(env_cfg, rl_cfg)
    with pytest.raises(ValueError, match=r"rnd_cfg adds rewards .* worlds are on 'cuda'"):
        runner.collect_on(torch.device("cuda"))


class OwnActing(PPO):
    """Algorithm of a user, with actions of its own."""

    def act(self, obs):
        """Return smaller actions."""
        return 0.5 * super().act(obs)


@pytest.mark.filterwarnings("ignore:The algorithm OwnActing")
def test_actions_of_ones_own_are_refused_on_another_device(env_cfg, rl_cfg):
    """Refuse actions that a copy of the policy elsewhere would not draw."""
    rl_cfg.algorithm.class_name = f"{__name__}:OwnActing"
    runner = make_runner(env_cfg, rl_cfg)
    with pytest.raises(ValueError, match=r"OwnActing has a method act of its own, .* on 'cuda'"):
        runner.collect_on(torch.device("cuda"))


@pytest.mark.slow
def test_a_learner_works_on_another_device():
    """Run the tests of a device that is not the CPU."""
    file = Path(__file__).with_name("learner_elsewhere.py")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "native", str(file)]
    run = subprocess.run(
        command, cwd=file.parents[2], capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_gpu_learns_from_worlds_on_the_cpu(env_cfg, rl_cfg, tmp_path):
    """Give nearly the same weights after one iteration, and a checkpoint that loads here."""
    here = make_runner(env_cfg, copy.deepcopy(rl_cfg))
    there = make_runner(env_cfg, rl_cfg, "cuda")
    here.learn(1)
    there.learn(1)
    torch.testing.assert_close(weights(there), weights(here), atol=1e-2, rtol=0.0)
    there.save(tmp_path / "model.pt")
    here.load(tmp_path / "model.pt")
    assert torch.equal(weights(there), weights(here))

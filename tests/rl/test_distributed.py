"""Training in several processes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from rsl_rl.storage import RolloutStorage

from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.distributed import Ranks, any_rank, connect, gather, share
from manyworlds.rl.run_folder import RunFolder
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.training import _make_runner
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.utils.devices import torch_threads

PATIENCE_S = 600.0  # how long it takes is up to who else uses the machine


def torchrun(*args: str) -> list[dict]:
    """Train in two processes; return what each wrote down."""
    script = Path(__file__).with_name("distributed_training.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    run = subprocess.run(
        [*command, str(script), *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
    return [torch.load(Path(args[0], f"rank{i}.pt"), weights_only=True) for i in range(2)]


def same_networks(left: dict, right: dict) -> bool:
    """True if all weights, normalizers and learning rates are equal, bit for bit."""
    groups = [state["optimizer_state_dict"]["param_groups"] for state in (left, right)]
    return groups[0] == groups[1] and all(
        torch.equal(value, right[network][name])
        for network in ("actor_state_dict", "critic_state_dict")
        for name, value in left[network].items()
    )


@pytest.mark.slow
def test_two_processes_learn_one_policy_and_resume(tmp_path):
    """Learn equal networks from different worlds; stop, go on, and end as if never stopped."""
    whole = torchrun(str(tmp_path / "whole"), "3")
    assert same_networks(whole[0]["networks"], whole[1]["networks"])
    assert not torch.equal(whole[0]["start"], whole[1]["start"])
    assert not torch.equal(whole[0]["end"], whole[1]["end"])
    assert whole[0]["threads"] == whole[1]["threads"] == Ranks(local_world_size=2).threads
    assert [noted["writes"] for noted in whole] == [True, False]
    run = RunFolder.latest(tmp_path / "whole" / "runs")
    assert len(list(run.path.parent.iterdir())) == 1
    assert len(list(run.path.glob("events.out.tfevents.*"))) == 1
    assert len(load_checkpoint(run.path / "model_1.pt")["infos"]["other_ranks"]) == 1
    resumed = torchrun(str(tmp_path / "resumed"), "3", str(run.path / "model_1.pt"))
    for before, after in zip(whole, resumed, strict=True):
        assert same_networks(before["networks"], after["networks"])
        assert torch.equal(before["end"], after["end"])


@pytest.mark.slow
def test_two_processes_make_the_same_edit_after_the_same_iteration(tmp_path, monkeypatch):
    """Send an edit to one process: both have it, and a resumed run repeats it in both."""
    monkeypatch.setenv("EDIT", "rewards.smooth_reward.weight=3")
    whole = torchrun(str(tmp_path / "whole"), "3")
    assert [noted["weight"] for noted in whole] == [3.0, 3.0]
    assert whole[0]["edits"] == whole[1]["edits"] == [(1, "rewards.smooth_reward.weight = 3.0")]
    assert same_networks(whole[0]["networks"], whole[1]["networks"])
    monkeypatch.delenv("EDIT")
    plain = torchrun(str(tmp_path / "plain"), "3")
    assert not same_networks(whole[0]["networks"], plain[0]["networks"])
    run = RunFolder.latest(tmp_path / "whole" / "runs")
    for checkpoint in ("model_0.pt", "model_1.pt"):
        folder = tmp_path / checkpoint
        resumed = torchrun(str(folder), "3", str(run.path / checkpoint))
        assert [noted["weight"] for noted in resumed] == [3.0, 3.0]
        for before, after in zip(whole, resumed, strict=True):
            assert same_networks(before["networks"], after["networks"])
            assert torch.equal(before["end"], after["end"])


def make_process(task: str, rank: int, world_size: int) -> OnPolicyRunner:
    """Make the runner of one of several processes, which have 32 worlds together."""
    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.seed, rl_cfg.num_steps_per_env = 3, 12
    env_cfg.scene.num_envs = 32 // world_size
    return _make_runner(OnPolicyRunner, Ranks(rank, world_size), env_cfg, rl_cfg, "cpu")


def collect(runner: OnPolicyRunner) -> RolloutStorage:
    """Return what a runner collects until its first update."""
    runner.alg.update = lambda: {}
    with torch_threads(1):
        runner.learn(1, init_at_random_ep_len=True)
    return runner.alg.storage


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("task", ["Cartpole-Swingup", "Velocity-Flat-Quadruped"])
def test_two_processes_step_the_worlds_of_one(engine, task):
    """Collect the same with 16 worlds each as with 32, from the same networks, bit for bit."""
    one = make_process(task, 0, 1)
    two = [make_process(task, rank, 2) for rank in range(2)]
    assert same_networks(two[0].alg.save(), one.alg.save())
    two[1].alg.load(two[0].alg.save(), None, True)  # as the first process sends them
    whole = collect(one)
    for rank, runner in enumerate(two):
        part = collect(runner)
        worlds = slice(16 * rank, 16 * rank + 16)
        for name in ("actions", "rewards", "dones", "actions_log_prob"):
            assert torch.equal(getattr(part, name), getattr(whole, name)[:, worlds]), name
        for name, value in whole.observations.items():
            assert torch.equal(part.observations[name], value[:, worlds]), name
    assert not torch.equal(whole.actions[:, :16], whole.actions[:, 16:])


def test_ranks_are_read_and_checked(monkeypatch):
    """Read what torchrun sets; refuse what cannot be, by name."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert Ranks.from_environment() == Ranks() and Ranks().is_main
    monkeypatch.setenv("RANK", "5")
    with pytest.raises(ValueError, match="RANK=5 must be below WORLD_SIZE=1"):
        Ranks.from_environment()
    monkeypatch.setenv("WORLD_SIZE", "8")
    ranks = Ranks.from_environment()
    assert ranks.is_distributed and not ranks.is_main
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ValueError, match="RANK, WORLD_SIZE, .* must be numbers"):
        Ranks.from_environment()


def test_each_process_takes_a_gpu_of_its_own(monkeypatch):
    """Choose the GPU by local rank, and leave the CPU and single processes alone."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    third = Ranks(rank=6, world_size=8, local_rank=2, local_world_size=4)
    assert third.device(None) == third.device("cuda") == "cuda:2"
    assert third.device("cpu") == "cpu" and third.device("cuda:1") == "cuda:1"
    assert Ranks().device(None) is None


def test_restarts_need_a_store_of_their_own(monkeypatch):
    """Warn where restarted processes would find the addresses of earlier ones."""
    monkeypatch.setattr(dist, "init_process_group", lambda backend: None)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    two = Ranks(world_size=2, local_world_size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect(two, "cpu")
        monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
        connect(replace(two, rank=1, local_rank=1), "cpu")
        with pytest.raises(UserWarning, match="--max-restarts 3.*TORCH_DISABLE_SHARE"):
            connect(two, "cpu")
        monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "False")
        connect(two, "cpu")


def test_a_single_process_needs_no_connection():
    """Pass values through where there is nobody to talk to."""
    assert share("x") == "x" and gather(1) == [1]
    assert any_rank(True, "cpu") and not any_rank(False, "cpu")

"""Training with worlds and learner on an NVIDIA GPU."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch

from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv, check_env
from manyworlds.managers import EventTermCfg, RewardTermCfg
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.evaluation import evaluate
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg

pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here"),
]

TASK = "Velocity-Flat-Quadruped"


@pytest.fixture
def settings():
    """Configure 32 quadrupeds on a plane, and three short iterations."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs, rl_cfg.max_iterations, rl_cfg.save_interval = 32, 3, 1
    return env_cfg, rl_cfg


def test_a_policy_of_the_gpu_runs_on_the_cpu(settings, tmp_path):
    """Train on the GPU, go on from a checkpoint, and act the same on both devices."""
    env_cfg, rl_cfg = settings
    first = train(TASK, copy.deepcopy(env_cfg), copy.deepcopy(rl_cfg), tmp_path, device="cuda")
    assert (first.run.path / "policy.onnx").stat().st_size > 100
    assert all(0.0 < record.shares["physics"] < 1.0 for record in first.records)
    rl_cfg.max_iterations = 4
    resumed = train(TASK, env_cfg, rl_cfg, tmp_path, device="cuda", resume=first.checkpoint)
    assert [record.iteration for record in resumed.records] == [1, 2, 3, 4]
    env_cfg.scene.num_envs = 4
    envs = [ManagerBasedRlEnv(copy.deepcopy(env_cfg), device=d) for d in ("cpu", "cuda")]
    assert [env.sim.engine for env in envs] == ["native", "warp"]
    here, there = (load_policy(env, rl_cfg, resumed.checkpoint) for env in envs)
    obs = {name: torch.randn_like(value) for name, value in envs[0].reset()[0].items()}
    with torch.inference_mode():
        actions = there({name: value.cuda() for name, value in obs.items()}).cpu()
        torch.testing.assert_close(actions, here(obs), atol=1e-3, rtol=1e-3)
    assert evaluate(envs[1], there).episodes == 4


@pytest.mark.parametrize("task", ["Cartpole-Balance", TASK, "Velocity-Rough-Quadruped"])
def test_control_steps_are_captured(task):
    """Repeat control steps as one CUDA graph that equals the steps of Python, bit for bit."""
    env_cfg = load_env_cfg(task)
    env_cfg.scene.num_envs = 32
    env_cfg.sim.capture = "full"  # raises an error if 20 steps differ in any bit
    env = ManagerBasedRlEnv(env_cfg, device="cuda")
    assert env.step_graph is not None
    for _ in range(4):
        env.step(torch.zeros(32, env.action_manager.total_action_dim, device="cuda"))
    assert env.step_graph.captures == 1


def test_training_with_captured_steps(settings, tmp_path):
    """Collect by a graph, and learn the same as without."""
    returns = []
    for capture in ("off", "full"):
        env_cfg, rl_cfg = copy.deepcopy(settings)
        env_cfg.sim.capture = capture
        run = train(TASK, env_cfg, rl_cfg, tmp_path / capture, device="cuda")
        returns.append([record.scalars["Loss/value"] for record in run.records])
    assert returns[0] == pytest.approx(returns[1], rel=1e-3)


def reads_a_value(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Reward that branches on a value, and reads derived fields."""
    if env.sim.data.qvel.abs().mean().item() > 0.1:
        return env.sim.data.xpos[:, -1, 2].clone()
    return torch.zeros(env.num_envs, device=env.device)


def pushes(env: ManagerBasedRlEnv, env_ids: torch.Tensor) -> None:
    """Set joint velocities by ids."""
    robot = env.scene.entity("robot")
    speed = env.random.uniform(-1.0, 1.0, (robot.num_joints,), env_ids=env_ids)
    robot.write_joint_velocity_to_sim(speed, env_ids=env_ids)


def test_terms_that_cannot_be_captured_run_between_graphs(settings):
    """Name a reward that reads a value and an event that takes ids, and capture the rest."""
    env_cfg, _ = settings
    env_cfg.rewards["reads"] = RewardTermCfg(func=reads_a_value, weight=1.0)
    env_cfg.events["pushes"] = EventTermCfg(
        func=pushes, mode="interval", interval_range_s=(0.05, 0.2)
    )
    env_cfg.sim.nan_guard.enabled = False
    env_cfg.sim.capture = "auto"  # which compares 20 steps with those of Python
    with pytest.warns(UserWarning, match=r"'reads' is not capturable: .* has 3 segments"):
        env = ManagerBasedRlEnv(env_cfg, device="cuda")
    assert env.step_graph is not None
    for _ in range(4):
        env.step(torch.zeros(32, env.action_manager.total_action_dim, device="cuda"))
    assert env.step_graph.captures == 1 and env.step_graph.segments == 3


def test_a_captured_rollout_waits_for_the_gpu_when_it_is_complete(settings):
    """Read the reports of all steps once, and once whether anything was NaN."""
    env_cfg, rl_cfg = settings
    env_cfg.sim.capture = "full"
    env_cfg.sim.nan_guard.enabled = False
    env = ManagerBasedRlEnv(env_cfg, device="cuda")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), rl_cfg, device="cuda")
    runner.learn(2)
    with torch.inference_mode():
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with pytest.warns(UserWarning, match="synchroniz") as waits:
                runner._collect(runner.env.get_observations())
        finally:
            torch.cuda.set_sync_debug_mode("default")
    places = [f"{w.filename}:{w.lineno}" for w in waits if "synchroniz" in str(w.message)]
    assert len(places) <= 2, places


def test_training_with_captured_updates(settings, tmp_path):
    """Learn by a graph the same as without, with the adaptive learning rate."""
    losses = []
    for captures in (False, True):
        env_cfg, rl_cfg = copy.deepcopy(settings)
        rl_cfg.algorithm.capture_update = captures
        run = train(TASK, env_cfg, rl_cfg, tmp_path / f"{captures}", device="cuda")
        losses.append([record.scalars["Loss/value"] for record in run.records])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_a_step_waits_for_the_gpu_once_at_most(settings):
    """Read nothing on the host but, at the end of a control step, which worlds have ended."""
    env_cfg, _ = settings
    env = ManagerBasedRlEnv(env_cfg, device="cuda")
    env.reset()
    action = torch.zeros(32, env.action_manager.total_action_dim, device="cuda")
    for _ in range(3):
        env.step(action)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with pytest.warns(UserWarning, match="synchroniz") as waits:
            for _ in range(10):
                env.step(action)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    places = [f"{w.filename}:{w.lineno}" for w in waits if "synchroniz" in str(w.message)]
    assert len(places) <= 10, places


@pytest.mark.parametrize("task", ["Cartpole-Swingup", TASK, "Push-Variants", "Lift-Cube-Arm"])
def test_no_term_reads_the_gpu(task):
    """Find no term of these tasks that synchronizes the host with the GPU."""
    findings = [str(finding) for finding in check_env(load_env_cfg(task), device="cuda").findings]
    assert not [finding for finding in findings if "synchronizes" in finding]


def test_the_commands_take_the_gpu(tmp_path):
    """Train without naming a device, evaluate, and measure the speed, from the command line."""

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "manyworlds", *arguments]
        found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    small = ("--env.scene.num-envs", "64", "--agent.max-iterations", "2")
    run("train", "Cartpole-Balance", *small, "--log-root", "runs")
    [checkpoint] = tmp_path.glob("runs/*/*/model_1.pt")
    assert "cuda" in (checkpoint.parent / "params" / "run.yaml").read_text()
    run(
        "evaluate", "Cartpole-Balance", "--checkpoint", str(checkpoint), "--env.scene.num-envs", "8"
    )
    run("bench", "Cartpole-Balance")

"""Control steps that are recorded once and repeated without Python, as in a CUDA graph."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from manyworlds.validation.host_reads import gpu_paths

pytest.importorskip("mujoco_warp")
from tests.recorded_graph import RecordedGraph

pytestmark = pytest.mark.slow  # kernels are compiled at first


def make(task: str) -> ManagerBasedRlEnv:
    """Build six worlds of short episodes, with the random numbers of GPUs."""
    cfg = load_env_cfg(task)
    cfg.seed = 5
    cfg.scene.num_envs = 6
    cfg.sim.engine = "warp"
    cfg.sim.nan_guard.enabled = False
    cfg.episode_length_s = 0.3
    for command in cfg.commands.values():
        command.resampling_time_range = (0.05, 0.2)
    for event in cfg.events.values():
        if event is not None and event.mode == "interval":
            event.interval_range_s = (0.05, 0.2)
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with gpu_paths():
        for stream in env.random_streams.streams.values():
            stream.use(stream.states)
        for _ in range(2):  # what is made at its first use exists then
            env.step(torch.zeros(6, env.action_manager.total_action_dim))
    return env


@pytest.mark.parametrize(
    "task", ["Cartpole-Balance", "Velocity-Flat-Quadruped", "Push-Variants", "Reach", "Lift-Cube-Arm"]
)
def test_a_recorded_step_equals_a_step(task):
    """Repeat one recorded step through resets, commands and events: the worlds are the same."""
    env = make(task)
    other = make(task)
    action = torch.zeros(6, env.action_manager.total_action_dim)
    graph = RecordedGraph()
    with gpu_paths(), graph.record():
        result = env.step(action)
    with gpu_paths():
        expected = other.step(action.clone())
    generator = torch.Generator().manual_seed(0)
    ended = 0
    for step in range(40):
        for name, value in expected[0].items():
            assert torch.equal(result[0][name], value), f"{name} differs after step {step + 1}"
        for ours, theirs in zip(result[1:4], expected[1:4], strict=True):
            assert torch.equal(ours, theirs)
        assert torch.equal(env.sim.data.qpos, other.sim.data.qpos)
        ended += int((expected[2] | expected[3]).sum())
        action.copy_(torch.randn(action.shape, generator=generator))
        graph.replay()
        with gpu_paths():
            expected = other.step(action.clone())
    assert ended > 6

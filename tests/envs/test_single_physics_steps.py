"""Control steps that a caller takes one physics step at a time."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from tests.envs.test_env import state_rows


def make_env(task: str) -> ManagerBasedRlEnv:
    """Build two worlds of a task, seeded."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.episode_length_s = 2, 5, 0.3
    return ManagerBasedRlEnv(cfg, device="cpu")


@pytest.mark.parametrize("task", ["Cartpole-Swingup", "Velocity-Rough-Quadruped", "Lift-Cube-Arm"])
def test_single_physics_steps_equal_a_control_step(task):
    """Take the parts of a control step one by one, through resets: the same, bit for bit."""
    generator, size = torch.Generator().manual_seed(3), None
    actions: list[torch.Tensor] = []
    results = []
    for single in (False, True):
        env = make_env(task)
        size = env.action_manager.total_action_dim
        actions = actions or [torch.randn(2, size, generator=generator) for _ in range(20)]
        rows = []
        for action in actions:
            if not single:
                obs, reward, *_ = env.step(action)
            else:
                stages = []
                times = set()
                for stage in env.substeps(action):
                    stages.append(stage)
                    if stage == "physics":
                        times.add(float(env.sim.data.time[0]))
                assert stages == ["controls", "physics"] * env.cfg.decimation
                assert len(times) == env.cfg.decimation
                obs = env.obs_buf
                reward = env.reward_buf
            rows.append((state_rows(env), reward.clone(), {k: v.clone() for k, v in obs.items()}))
        results.append(rows)
    assert any(float(reward.abs().sum()) > 0.0 for _, reward, _ in results[0])
    for (state, reward, obs), (state_1, reward_1, obs_1) in zip(*results, strict=True):
        assert torch.equal(state, state_1) and torch.equal(reward, reward_1)
        assert obs.keys() == obs_1.keys()
        assert all(torch.equal(obs[name], obs_1[name]) for name in obs)

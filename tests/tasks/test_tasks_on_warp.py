"""Every built-in task on MuJoCo Warp."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg, registry
from tests.robots import robot_file

pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")

FILES = {"Go1": "unitree_go1/go1.xml", "G1": "unitree_g1/g1.xml", "Yam": "i2rt_yam/yam.xml"}
QUICK = {"Cartpole-Swingup", "Reach"}
TASKS = [
    pytest.param(task, marks=() if task in QUICK else pytest.mark.slow)
    for task in registry.BUILTIN_TASKS
]


@pytest.mark.parametrize("task", TASKS)
def test_tasks_run_on_warp(task: str):
    """Build two worlds, step and reset them: all that is seen is finite, and nothing overflows."""
    for robot, file in FILES.items():
        if robot in task.split("-"):
            robot_file(file)
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine = 2, 1, "warp"
    if cfg.scene.terrain is not None and (ground := cfg.scene.terrain.terrain_generator):
        ground.num_rows, ground.num_cols, ground.seed = 2, 2, 1
    env = ManagerBasedRlEnv(cfg)
    assert env.sim.engine == "warp"
    generator = torch.Generator().manual_seed(2)
    shape = (2, env.action_manager.total_action_dim)
    before = env.sim.data.qpos.clone()
    for _ in range(3):
        obs, reward, *_ = env.step(2.0 * torch.rand(shape, generator=generator) - 1.0)
        assert all(torch.isfinite(value).all() for value in obs.values())
        assert torch.isfinite(reward).all()
    assert not env.sim.status.any() and not torch.equal(env.sim.data.qpos, before)
    env.reset(env_ids=torch.tensor([1]))
    assert env.episode_length_buf.tolist() == [3, 0]

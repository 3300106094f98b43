"""Every built-in task on MuJoCo Warp."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from tests.robots import robot_file
from tests.tasks.one_model import ONE_MODEL_TASKS

pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")

FILES = {"Go1": "unitree_go1/go1.xml", "G1": "unitree_g1/g1.xml", "Yam": "i2rt_yam/yam.xml"}
QUICK = {"Cartpole-Swingup", "Reach"}
needs_gpu = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here"),
)
on_each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
TASKS = [
    pytest.param(task, marks=() if task in QUICK else pytest.mark.slow) for task in ONE_MODEL_TASKS
]


def make_env(task: str, device: str, play: bool = False) -> ManagerBasedRlEnv:
    """Build two worlds of a task on MuJoCo Warp, with a small terrain."""
    for robot, file in FILES.items():
        if robot in task.split("-"):
            robot_file(file)
    cfg = load_env_cfg(task, play=play)
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine = 2, 1, "warp"
    if cfg.scene.terrain is not None and (ground := cfg.scene.terrain.terrain_generator):
        ground.num_rows, ground.num_cols, ground.seed = 2, 2, 1
    env = ManagerBasedRlEnv(cfg, device=device)
    assert env.sim.engine == "warp" and env.device.type == device
    return env


@on_each_device
@pytest.mark.parametrize("task", TASKS)
def test_tasks_run_on_warp(task: str, device: str):
    """Build two worlds, step and reset them: all that is seen is finite, and nothing overflows."""
    env = make_env(task, device)
    generator = torch.Generator().manual_seed(2)
    shape = (2, env.action_manager.total_action_dim)
    before = env.sim.data.qpos.clone()
    for _ in range(3):
        obs, reward, *_ = env.step(2.0 * torch.rand(shape, generator=generator) - 1.0)
        assert all(torch.isfinite(value).all() for value in obs.values())
        assert torch.isfinite(reward).all()
        assert {value.device.type for value in (*obs.values(), reward)} == {device}
    assert not env.sim.status.any() and not torch.equal(env.sim.data.qpos, before)
    env.reset(env_ids=torch.tensor([1]))
    assert env.episode_length_buf.tolist() == [3, 0]


def read(env: ManagerBasedRlEnv) -> dict[str, torch.Tensor]:
    """Return, on the CPU, what all sensors measure now and where all bodies are."""
    found = {}
    for name, sensor in env.scene.sensors.items():
        data = sensor.data
        parts = {"": data} if isinstance(data, torch.Tensor) else vars(data)
        past = [part for part in parts if part.endswith(("_time", "_history"))]
        found |= {f"{name}.{part}": parts[part] for part in parts if part not in past}
    for name, entity in env.scene.entities.items():
        for quantity in ("body_link_pose_w", "body_link_vel_w", "joint_pos", "joint_vel"):
            found[f"{name}.{quantity}"] = getattr(entity.data, quantity)
    tensors = {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
    return {name: value.cpu() for name, value in tensors.items()}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here")
@pytest.mark.parametrize("task", ONE_MODEL_TASKS)
def test_a_gpu_senses_what_the_cpu_does(task: str):
    """From the same state, read the same sensors and the same quantities of all entities."""
    here, there = (make_env(task, device, play=True) for device in ("cpu", "cuda"))
    for _ in range(20):
        here.step(torch.zeros(2, here.action_manager.total_action_dim))
    there.sim.set_state({name: value.cuda() for name, value in here.sim.get_state().items()})
    for env in (here, there):
        env.sim.forward()
    expected, found = read(here), read(there)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        close = torch.isclose(found[name].float(), value.float(), atol=2e-3, rtol=2e-3)
        edges = 0.02 if name.endswith((".rgb", ".depth", ".segmentation")) else 0.0
        assert int((~close).sum()) <= edges * close.numel(), (name, value, found[name])

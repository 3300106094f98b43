"""Worlds that depend on themselves alone: the same in batches of any size, and in any process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, manager_based_rl_env
from manyworlds.managers import command_manager
from manyworlds.sensor import CameraSensorCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.tracking.mdp import MotionCommandCfg
from manyworlds.tasks.velocity.mdp import velocity_command
from tests.cli.test_lab_tasks import motion_file as motion_file
from tests.robots import robot_file
from tests.tasks.one_model import ONE_MODEL_TASKS

STEPS = 40


@pytest.fixture
def task(request: pytest.FixtureRequest) -> str:
    """Return a task, if its robot's files are here."""
    for part, file in {
        "G1": "unitree_g1/g1.xml",
        "Go1": "unitree_go1/go1.xml",
        "Yam": "i2rt_yam/yam.xml",
    }.items():
        if part in request.param:
            robot_file(file)
    return request.param


def config(task: str, num_envs: int, motion: Path) -> ManagerBasedRlEnvCfg:
    """Configure a task with short episodes, and what a seed defines over all worlds left out."""
    cfg = load_env_cfg(task)
    cfg.seed = 11
    cfg.scene.num_envs = num_envs
    cfg.scene.total_envs = max(num_envs, 16)  # variants, and columns of the terrain
    cfg.sim.engine = "native"
    cfg.episode_length_s = 0.6
    for command in cfg.commands.values():
        command.resampling_time_range = (0.1, 0.3)
        if isinstance(command, MotionCommandCfg):
            command.motion_file = str(motion)
            command.sampling_mode = "uniform"  # others follow the failures of all worlds
    return cfg


@contextlib.contextmanager
def masks() -> Iterator[None]:
    """Name worlds by masks, as on GPUs, whose other paths round differently."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (manager_based_rl_env, command_manager, velocity_command):
            patch.setattr(module, "reads_are_free", lambda device: False)
        yield


def run(
    cfg: ManagerBasedRlEnvCfg, first: int, count: int, masked: bool = False
) -> list[dict[str, torch.Tensor]]:
    """Step with actions that depend on the world; return what each step shows of some worlds.

    Args:
        cfg: the task.
        first: first of these worlds.
        count: number of these worlds.
        masked: whether worlds that are reset, and those of events and commands, are named by masks,
            as on a GPU.
    """
    env = ManagerBasedRlEnv(cfg, device="cpu")
    width = env.action_manager.total_action_dim
    action_random = env.random_streams.stream("actions of the test")
    rows = slice(first, first + count)
    shown = []
    resets = 0
    for _ in range(STEPS):
        action = action_random.normal(shape=(width,))
        with masks() if masked else contextlib.nullcontext():
            obs, reward, terminated, truncated, _ = env.step(action)
        resets += int((terminated | truncated)[rows].sum())
        parts = {"state": env.sim.get_state()["state"], "reward": reward, "ended": terminated}
        for group, value in obs.items():
            terms = value if isinstance(value, dict) else {"": value}
            parts |= {f"{group}/{name}": tensor for name, tensor in terms.items()}
        for name in env.command_manager.active_terms:
            parts[f"command {name}"] = env.command_manager.get_command(name)
        shown.append({name: part[rows].clone() for name, part in parts.items()})
    assert resets or STEPS * env.step_dt < cfg.episode_length_s
    env.close()
    return shown


def assert_same(some: list[dict[str, torch.Tensor]], others: list[dict[str, torch.Tensor]]) -> None:
    """Compare everything, bit for bit."""
    for step, (one, other) in enumerate(zip(some, others, strict=True)):
        assert one.keys() == other.keys()
        for name, part in one.items():
            equal = torch.equal(part.nan_to_num(), other[name].nan_to_num())
            assert equal, f"{name} differs after step {step + 1}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        "Cartpole-Swingup",
        "Lift-Cube-Arm",
        "Multi-Cube-Seg-Arm",
        "Push-Variants",
        "Reach",
        "Tracking-Flat-Humanoid",
        "Velocity-Flat-G1",
        "Velocity-Rough-Quadruped",
    ],
    indirect=True,
)
def test_masks_name_the_same_worlds_as_ids(task, motion_file):
    """Step with worlds named by masks of fixed shape, and by ids: the same, bit for bit."""
    cfg = config(task, 6, motion_file)
    if any(isinstance(sensor, CameraSensorCfg) for sensor in cfg.scene.sensors):
        cfg.scene.num_envs = 2
    count = cfg.scene.num_envs
    assert_same(run(cfg, 0, count), run(cfg, 0, count, masked=True))


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(ONE_MODEL_TASKS), indirect=True)
def test_a_world_is_the_same_in_small_and_large_batches(task, motion_file):
    """Step 8 worlds alone and among 64: state, observations, rewards, commands, ends."""
    few = config(task, 8, motion_file)
    many = config(task, 64, motion_file)
    if any(isinstance(sensor, CameraSensorCfg) for sensor in few.scene.sensors):
        few.scene.num_envs = 2  # pictures of 64 worlds take minutes
        many.scene.num_envs = 8
    few.scene.total_envs = 64
    many.scene.total_envs = 64
    assert_same(run(few, 0, few.scene.num_envs), run(many, 0, few.scene.num_envs))


@pytest.mark.parametrize(
    "task", ["Velocity-Rough-Quadruped", "Push-Variants", "Lift-Cube-Arm"], indirect=True
)
def test_two_processes_have_the_worlds_of_one(task, motion_file):
    """Step worlds 6 to 9 alone, as another process does: they are those of the whole batch."""
    whole = config(task, 10, motion_file)
    part = config(task, 4, motion_file)
    part.scene.first_world = 6
    assert_same(run(part, 0, 4), run(whole, 6, 4))

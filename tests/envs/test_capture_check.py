"""Lines of a task that keep its control step from being captured as a CUDA graph."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.capture_check import CaptureReport, check_capture
from manyworlds.managers import EventTermCfg, RewardTermCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.validation.worlds import Worlds
from tests.tasks.one_model import ONE_MODEL_TASKS
from tests.tasks.small_terrain import shrink_terrain

pytest.importorskip("mujoco_warp")
pytestmark = pytest.mark.slow  # kernels are compiled at first


def reads_a_value(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Branch on a value."""
    if env.sim.data.qpos.sum() > 0:
        return torch.ones(env.num_envs)
    return torch.zeros(env.num_envs)


def selects_worlds(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Write the rows of a mask."""
    reward = torch.zeros(env.num_envs)
    moving = env.sim.data.qvel[:, 0] > 0
    reward[moving] = env.sim.data.qvel[moving, 0]
    return reward


def copies_a_list(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Make a tensor of numbers of Python."""
    return torch.tensor([1.0] * env.num_envs, device=env.device)


def draws(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Draw numbers that no world keeps."""
    return torch.rand(env.num_envs)


def counts_steps(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Multiply by a number of Python that differs in each step."""
    return env.sim.data.qpos[:, 0] * env.common_step_counter


def capturable(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Select by `where`, with buffers alone."""
    position = env.sim.data.qpos[:, 0]
    return torch.where(position > 0, position, env.episode_length_buf * 0.1)


def check(*rewards) -> CaptureReport:
    """Check the cartpole with these rewards."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.rewards = {func.__name__: RewardTermCfg(func=func, weight=1.0) for func in rewards}
    return check_capture(cfg)


def test_lines_of_terms_are_found():
    """Name term, line and reason of each kind of obstacle, and nothing in a clean term."""
    report = check(reads_a_value, selects_worlds, copies_a_list, draws, capturable)
    found = set()
    for obstacle in report.obstacles:
        if obstacle.file == __file__:
            name = obstacle.term.partition("'")[2][:-1]
            found.add((name, obstacle.code, obstacle.problem.split()[0]))
    assert found == {
        ("reads_a_value", "if env.sim.data.qpos.sum() > 0:", "reads"),
        ("selects_worlds", "reward[moving] = env.sim.data.qvel[moving, 0]", "has"),
        ("copies_a_list", "return torch.tensor([1.0] * env.num_envs, device=env.device)", "copies"),
        ("draws", "return torch.rand(env.num_envs)", "draws"),
    }
    assert not report.ok and "RewardManager term 'draws'" in str(report)


def test_numbers_of_python_that_change_are_found():
    """Find a step counter, which a graph would keep as it was at the capture."""
    before = {o.line for o in check(capturable).obstacles}
    after = [o.code for o in check(counts_steps).obstacles if o.line not in before]
    assert after == ["self.reward_buf = self.reward_manager.compute(self.step_dt)"]


def takes_ids(env: ManagerBasedRlEnv, env_ids: torch.Tensor | None) -> None:
    """Push by ids, which only the host knows."""
    env.scene.entity("cartpole").write_joint_velocity_to_sim(torch.ones(1, 2), env_ids=env_ids)


def takes_a_mask(env: ManagerBasedRlEnv, env_mask: torch.Tensor) -> None:
    """Push under a mask."""
    worlds = Worlds.masked(env_mask)
    env.scene.entity("cartpole").write_joint_velocity_to_sim(torch.ones(1, 2), env_ids=worlds)


def test_events_that_take_ids_are_named():
    """Name an event that needs ids, which wait for the device, and no event that takes a mask."""
    cfg = load_env_cfg("Cartpole-Balance")
    for func in (takes_ids, takes_a_mask):
        cfg.events[func.__name__] = EventTermCfg(
            func=func, mode="interval", interval_range_s=(1.0, 2.0)
        )
    found = [o for o in check_capture(cfg).obstacles if o.term]
    assert [o.term for o in found] == ["EventManager term 'takes_ids'"]
    assert found[0].code.startswith("def takes_ids(") and "takes ids of worlds" in str(found[0])


@pytest.mark.parametrize("task", ONE_MODEL_TASKS)
def test_shipped_tasks_can_be_captured(task):
    """Find no obstacle in any registered task, also where episodes end and events are due."""
    try:
        cfg = load_env_cfg(task)
        shrink_terrain(cfg)
        report = check_capture(cfg)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert report.ok, str(report)

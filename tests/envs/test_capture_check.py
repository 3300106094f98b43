"""Lines of a task that keep its control step from being captured as a CUDA graph."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.capture_check import CaptureReport, check_capture
from manyworlds.managers import RewardTermCfg
from manyworlds.tasks import load_env_cfg

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


OUTSIDE_TERMS = {
    "host = torch.cat(values).cpu().numpy()",
    "self.resetting.copy_(self.reset_buf)",
    "self.resetting.fill_(False)",
    "with self.random_streams.only(finished.mask):",
    'self.extras["final_obs"] = self.observation_manager.compute_final()',
    "self._reset_worlds(finished, ended=finished)",
    'self.event_manager.apply("interval", dt=self.step_dt, due=host[1 : 1 + len(due)])',
    "self.sim.refresh()",
    "self.obs_buf = self.observation_manager.compute(update_history=True)",
}
"""Lines of `ManagerBasedRlEnv` that depend on which episodes end and which events are due."""


@pytest.mark.parametrize(
    "task",
    ["Cartpole-Balance", "Velocity-Flat-Quadruped", "Velocity-Rough-Quadruped"],
)
def test_shipped_tasks_wait_for_resets_and_events_alone(task):
    """Find no obstacle in physics, terms, and observations of steps without resets and events."""
    found = check_capture(load_env_cfg(task)).obstacles
    assert {o.code for o in found} <= OUTSIDE_TERMS
    assert not any(o.term for o in found)

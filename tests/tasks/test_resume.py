"""Checkpoints of the registered tasks."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset

# One task of each kind that is quick to build and step, and one whose curricula change rewards.
TASKS = [
    *("Cartpole-Balance", "Cartpole-Swingup", "Reach", "Push-Variants", "Lift-Cube-Arm"),
    *("Lift-Cube-Yam", "Multi-Cube-Seg-Arm", "Tracking-Flat-Humanoid", "Velocity-Flat-Humanoid"),
    *("Velocity-Flat-Quadruped", "Velocity-Rough-Humanoid"),
]
CASES = [*((task, False) for task in TASKS), ("Velocity-Flat-Quadruped", True)]


def go_on(env: ManagerBasedRlEnv, actions: torch.Tensor) -> list[torch.Tensor]:
    """Take steps, in the third of which an episode runs out of time; return what is seen."""
    seen = []
    for k, action in enumerate(actions):
        if k == 2:
            env.episode_length_buf[1] = env.max_episode_length
        obs, reward, terminated, truncated, _ = env.step(action)
        for group in obs.values():
            seen += [
                part.clone() for part in (group.values() if isinstance(group, dict) else [group])
            ]
        seen += [reward.clone(), terminated.clone(), truncated.clone()]
    return seen


@pytest.mark.parametrize(("task", "for_cpu"), CASES)
def test_a_task_resumes_bit_for_bit_and_warns_of_nothing(task, for_cpu):
    """Go on for 20 steps from a checkpoint in a new environment: all is as without it."""
    cfg = load_env_cfg(task)
    if for_cpu:
        assert use_cpu_preset(task, cfg, load_rl_cfg(task))
    cfg.scene.num_envs, cfg.seed = 3, 11
    env = ManagerBasedRlEnv(cfg, "cpu")
    source = torch.Generator().manual_seed(4)
    width = env.action_manager.total_action_dim
    actions = 2 * torch.rand(26, 3, width, generator=source) - 1
    go_on(env, actions[:6])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = copy.deepcopy(env.state_dict())
    assert [str(warning.message) for warning in caught] == []
    expected = go_on(env, actions[6:])
    cfg.seed = 12
    other = ManagerBasedRlEnv(cfg, "cpu")
    other.load_state_dict(state)
    for one, two in zip(expected, go_on(other, actions[6:]), strict=True):
        assert torch.equal(one, two)
